// Package export implements 'olafctl export', which creates files from a stored run.
package export

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/results/store"
)

func New(env *cli.Env) *cobra.Command {
	var (
		where cli.StoreFlag
		to    cli.Exports
	)
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Export a stored run as workbook, CSV, Parquet, JSON, HTML or figures",
		Long: `Export a stored run: a workbook with charts, one CSV or Parquet file per sheet, the JSON document, a self-contained HTML
report, or figures. The same run gives the same bytes. A run is named by its id, a unique prefix of it, or "last".`,
		Example: `  olafctl export last --xlsx out.xlsx --report report.html
  olafctl export last --csv tables/ --parquet frames/ --json out.json --svg figures/ --pdf figures/`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: where.CompleteRuns(env, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if to == (cli.Exports{Force: to.Force}) {
				return cli.UsageError("nothing to write: add --xlsx, --csv, --parquet, --json, --report, --svg, " +
					"--pdf or --png")
			}
			if err := to.CheckNames(); err != nil {
				return err
			}
			return where.WithRun(env, args[0],
				func(s *store.Store, f *store.Folder) error { return to.ExportRun(env, s, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to.Xlsx, "xlsx", "", "workbook with charts (.xlsx)")
	flags.StringVar(&to.Csv, "csv", "", "folder for one CSV file per sheet")
	flags.StringVar(&to.Parquet, "parquet", "",
		"folder for one Parquet file per sheet and one with the kept frames (on the twin those of the first seed)")
	flags.StringVar(&to.Json, "json", "", "JSON document")
	flags.StringVar(&to.Report, "report", "", "self-contained HTML report")
	flags.StringVar(&to.Svg, "svg", "", "folder for the figures as SVG")
	flags.StringVar(&to.Pdf, "pdf", "", "folder for the figures as PDF")
	flags.StringVar(&to.Png, "png", "", "folder for the figures as PNG")
	cli.AddForce(flags, &to.Force, "existing files")
	where.Add(cmd)
	return cmd
}
