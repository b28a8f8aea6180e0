// Package export implements 'olafctl export', which creates files from a stored run.
package export

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/results/export"
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
			if to.IsEmpty() {
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
	for _, x := range export.Formats() {
		to.Add(flags, x.Name, x.About)
	}
	cli.AddForce(flags, &to.Force, "existing files")
	where.Add(cmd)
	return cmd
}
