package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/export"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
)

// exports are the files that a result can be written to; csv, parquet, svg, pdf and png are folders.
type exports struct {
	xlsx, json, report          string
	csv, parquet, svg, pdf, png string
	force                       bool
}

func newExportCmd(env *cli.Env) *cobra.Command {
	var (
		where cli.StoreFlag
		to    exports
	)
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write a kept run as workbook, CSV, Parquet, JSON, HTML report or figures",
		Long: `Write a kept run in forms that people can hand on: a workbook with charts, one CSV or Parquet file a sheet, the JSON
document, a report in one HTML file that needs no network, and single figures. Figures show ours with its interval and what
the paper printed as crosses. The same run gives the same bytes. A run is named by its id, an unambiguous beginning of it, or
"last".`,
		Example: `  olafctl export last --xlsx out.xlsx --report report.html
  olafctl export last --csv tables/ --parquet frames/ --json out.json --svg figures/ --pdf figures/`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: where.CompleteRuns(env, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if to == (exports{force: to.force}) {
				return cli.UsageError("nothing to write: give --xlsx, --csv, --parquet, --json, --report, --svg, --pdf or --png")
			}
			if err := to.check(); err != nil {
				return err
			}
			return where.WithRun(env, args[0], func(s *store.Store, f *store.Folder) error { return to.export(env, s, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to.xlsx, "xlsx", "", "workbook with charts")
	flags.StringVar(&to.csv, "csv", "", "folder for one CSV file a sheet")
	flags.StringVar(&to.parquet, "parquet", "", "folder for one Parquet file a sheet, and one with every frame")
	flags.StringVar(&to.json, "json", "", "JSON document")
	flags.StringVar(&to.report, "report", "", "self-contained HTML report")
	flags.StringVar(&to.svg, "svg", "", "folder for the figures as SVG")
	flags.StringVar(&to.pdf, "pdf", "", "folder for the figures as PDF")
	flags.StringVar(&to.png, "png", "", "folder for the figures as PNG")
	flags.BoolVar(&to.force, "force", false, "replace files that exist")
	where.Add(cmd)
	return cmd
}

// export writes a kept run to all files that were asked for, and lets the store know them.
func (e *exports) export(env *cli.Env, s *store.Store, f *store.Folder) error {
	own, err := e.document(f)
	if err != nil {
		return err
	}
	if e.parquet != "" && archive.HasDocumentOnly(f) {
		return fmt.Errorf("%w: %s holds no single runs for --parquet; leave it out", archive.ErrDocumentOnly, f.ID())
	}
	r, err := archive.Exportable(f, env.Declared, env.Layouts)
	if err != nil {
		return err
	}
	rest := *e
	if archive.HasDocument(f) {
		rest.json = "" // that document is the report's own
	}
	if archive.HasDocumentOnly(f) {
		rest.csv = "" // and so is its table
	}
	if err := rest.write(env, r, append(own, frames(env, f, e.parquet)...)...); err != nil {
		return err
	}
	return e.remember(env, s, f)
}

// check refuses names that other programs would not know what to do with, one name for two files, and standard output,
// which has no second file, no --force, and a command of its own.
func (e *exports) check() error {
	for _, to := range []struct{ flag, path string }{
		{"--xlsx", e.xlsx}, {"--csv", e.csv}, {"--parquet", e.parquet}, {"--json", e.json}, {"--report", e.report}, {"--svg", e.svg}, {"--pdf", e.pdf}, {"--png", e.png},
	} {
		if to.path == "-" {
			return cli.UsageError("%s -: export writes files, not standard output; give a name ('olafctl runs show ID -o json' prints a run's document)", to.flag)
		}
	}
	for _, err := range []error{
		cli.EndsIn("--xlsx", e.xlsx, ".xlsx"), cli.EndsIn("--report", e.report, ".html", ".htm"), cli.Distinct(e.xlsx, e.json, e.report),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// targets lists the files that were asked for.
func (e *exports) targets(r *sheets.Result) (targets []export.Target) {
	one := func(of func(string, *sheets.Result) export.Target) func(string) []export.Target {
		return func(path string) []export.Target { return []export.Target{of(path, r)} }
	}
	figures := func(format string) func(string) []export.Target {
		return func(path string) []export.Target { return export.Figures(path, format, r) }
	}
	for _, t := range []struct {
		path string
		of   func(path string) []export.Target
	}{
		{e.xlsx, one(export.Workbook)},
		{e.json, func(path string) []export.Target { return []export.Target{export.Document(path, r.Bench)} }},
		{e.report, one(export.Report)},
		{e.csv, func(path string) []export.Target { return export.CSV(path, r) }},
		{e.parquet, func(path string) []export.Target { return export.Parquet(path, r) }},
		{e.svg, figures("svg")}, {e.pdf, figures("pdf")}, {e.png, figures("png")},
	} {
		if t.path != "" {
			targets = append(targets, t.of(t.path)...)
		}
	}
	return targets
}

// document is the JSON document and the table of a kept report that has its own, where they were asked for.
func (e *exports) document(f *store.Folder) (targets []export.Target, err error) {
	if !archive.HasDocument(f) {
		return nil, nil
	}
	d, err := archive.LoadDocument(f)
	if err != nil {
		return nil, err
	}
	bytes := func(path, folder string, content []byte) export.Target {
		return export.Target{Path: path, Folder: folder, Write: func(w io.Writer) error { _, err := w.Write(content); return err }}
	}
	if e.json != "" {
		targets = append(targets, bytes(e.json, "", d.JSON))
	}
	if e.csv != "" {
		targets = append(targets, bytes(filepath.Join(e.csv, paper.FileName(f.Manifest.Experiment)+".csv"), e.csv, d.Table))
	}
	return targets, nil
}

// write writes every file that was asked for; all are checked before the first one is written.
func (e *exports) write(env *cli.Env, r *sheets.Result, more ...export.Target) error {
	targets := append(e.targets(r), more...)
	if err := export.Files(targets, e.force); err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Fprintf(env.Stderr, "wrote %s\n", t.Path)
	}
	return nil
}

// remember notes which exports must come out the same again (olafctl runs verify). The files are written by then: a store that
// may only be read is worth a remark and costs no exit code.
func (e *exports) remember(env *cli.Env, s *store.Store, f *store.Folder) error {
	for kind, path := range map[string]string{archive.KindWorkbook: e.xlsx, archive.KindReport: e.report} {
		if path == "" {
			continue
		}
		err := archive.Remember(s, f, kind, toolVersion(), env.Declared, env.Layouts)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
			fmt.Fprintf(env.Stderr, "not noted in the store, so that 'runs verify' does not repeat it: %s\n", cli.OneLine(err))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// frames is the file with every kept frame, when a Parquet folder was asked for.
func frames(env *cli.Env, f *store.Folder, dir string) []export.Target {
	if dir == "" {
		return nil
	}
	return []export.Target{export.Observations(dir, func(take func(*export.Labelled) error) error {
		runs, err := archive.Runs(f, env.Declared)
		if err != nil {
			return err
		}
		labels := map[uint32]*archive.Kept{}
		for i := range runs {
			labels[runs[i].Ordinal] = &runs[i]
		}
		var failed error
		err = archive.Observations(f, func(ordinal uint32, o *olaf.Observation) bool {
			run := labels[ordinal]
			if run == nil {
				return true // of a run that the stop left without numbers
			}
			failed = take(&export.Labelled{Queue: run.Run.Queue, OutRateBPS: run.Run.OutRateBPS, Run: run.Run.Index, Observation: *o})
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		return err
	})}
}
