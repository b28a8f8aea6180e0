package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/export"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
)

// Exports contains the paths of the files to which a result is written. Csv, Parquet, Svg, Pdf and Png are folders.
type Exports struct {
	Xlsx, Json, Report          string
	Csv, Parquet, Svg, Pdf, Png string
	Force                       bool
}

// ExportRun writes the requested files for a stored run and records them in the store. It prints which requested
// formats the run does not have, and returns an error if it has none of them.
func (e *Exports) ExportRun(env *Env, s *store.Store, f *store.Folder) error {
	own, err := e.documentTargets(f)
	if err != nil {
		return err
	}
	r, err := archive.LoadExportable(f, env.Declared, env.Layouts)
	if err != nil {
		return err
	}
	rest := *e
	missing := rest.leaveOut(f, r)
	if rest == (Exports{Force: e.Force}) {
		return UsageError("nothing was written: %s has no %s", f.ID(), strings.Join(missing, " and no "))
	}
	if archive.HasDocument(f) {
		rest.Json = "" // written as the report's own document
	}
	if archive.HasDocumentOnly(f) {
		rest.Csv = "" // written as the report's own table
	}
	if err := rest.WriteFiles(env, r, append(own, frameTargets(env, f, rest.Parquet)...)...); err != nil {
		return err
	}
	if len(missing) > 0 {
		fmt.Fprintf(env.Stderr, "%s has no %s\n", f.ID(), strings.Join(missing, " and no "))
	}
	return e.RecordExports(env, s, f)
}

// leaveOut removes the requests for formats that a run does not have and returns their names.
func (e *Exports) leaveOut(f *store.Folder, r *sheets.Result) (missing []string) {
	if e.Parquet != "" && archive.HasDocumentOnly(f) {
		e.Parquet, missing = "", append(missing, "single runs for --parquet")
	}
	var figures []string
	for _, to := range []struct {
		flag, format string
		path         *string
	}{{"--svg", "svg", &e.Svg}, {"--pdf", "pdf", &e.Pdf}, {"--png", "png", &e.Png}} {
		if *to.path != "" && len(export.Figures(*to.path, to.format, r)) == 0 {
			*to.path, figures = "", append(figures, to.flag)
		}
	}
	if len(figures) > 0 {
		missing = append(missing, "figures for "+strings.Join(figures, ", "))
	}
	return missing
}

// CheckNames rejects file names with a wrong extension, the same name for two files, and standard output. To print a
// result, use 'runs show'.
func (e *Exports) CheckNames() error {
	for _, to := range []struct{ flag, path string }{
		{"--xlsx", e.Xlsx}, {"--csv", e.Csv}, {"--parquet", e.Parquet}, {"--json", e.Json}, {"--report", e.Report},
		{"--svg", e.Svg}, {"--pdf", e.Pdf}, {"--png", e.Png},
	} {
		if to.path == "-" {
			return UsageError("%s -: export writes files, not standard output; give a name ('olafctl runs show ID "+
				"-o json' prints a run's document)", to.flag)
		}
	}
	for _, err := range []error{
		CheckExtension("--xlsx", e.Xlsx, ".xlsx"), CheckExtension("--report", e.Report, ".html", ".htm"),
		CheckDistinct(e.Xlsx, e.Json, e.Report),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// listTargets returns the files to write.
func (e *Exports) listTargets(r *sheets.Result) (targets []export.Target) {
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
		{e.Xlsx, one(export.Workbook)},
		{e.Json, func(path string) []export.Target { return []export.Target{export.Document(path, r.Bench)} }},
		{e.Report, one(export.Report)},
		{e.Csv, func(path string) []export.Target { return export.CSV(path, r) }},
		{e.Parquet, func(path string) []export.Target { return export.Parquet(path, r) }},
		{e.Svg, figures("svg")}, {e.Pdf, figures("pdf")}, {e.Png, figures("png")},
	} {
		if t.path != "" {
			targets = append(targets, t.of(t.path)...)
		}
	}
	return targets
}

// documentTargets returns the files to write for a stored report that has its own JSON document and table.
func (e *Exports) documentTargets(f *store.Folder) (targets []export.Target, err error) {
	if !archive.HasDocument(f) {
		return nil, nil
	}
	d, err := archive.LoadDocument(f)
	if err != nil {
		return nil, err
	}
	bytes := func(path, folder string, content []byte) export.Target {
		return export.Target{Path: path, Folder: folder,
			Write: func(w io.Writer) error { _, err := w.Write(content); return err }}
	}
	if e.Json != "" {
		targets = append(targets, bytes(e.Json, "", d.JSON))
	}
	if e.Csv != "" {
		targets = append(targets, bytes(filepath.Join(e.Csv, paper.FileName(f.Manifest.Experiment)+".csv"), e.Csv,
			d.Table))
	}
	return targets, nil
}

// WriteFiles checks all requested files and then writes them.
func (e *Exports) WriteFiles(env *Env, r *sheets.Result, more ...export.Target) error {
	targets := append(e.listTargets(r), more...)
	if err := export.Files(targets, e.Force); err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Fprintf(env.Stderr, "wrote %s\n", t.Path)
	}
	return nil
}

// RecordExports records which exports 'olafctl runs verify' must reproduce. If the store is read-only or full, it only
// prints a remark, because the files are already written.
func (e *Exports) RecordExports(env *Env, s *store.Store, f *store.Folder) error {
	for kind, path := range map[string]string{archive.KindWorkbook: e.Xlsx, archive.KindReport: e.Report} {
		if path == "" {
			continue
		}
		err := archive.StoreExportDigest(s, f, kind, ToolVersion(), env.Declared, env.Layouts)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
			fmt.Fprintf(env.Stderr, "not recorded in the store, so 'runs verify' will not check this file: %s\n",
				OneLine(err))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// frameTargets returns the file with all stored frames if a Parquet folder was requested.
func frameTargets(env *Env, f *store.Folder, dir string) []export.Target {
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
		err = archive.VisitObservations(f, func(ordinal uint32, o *olaf.Observation) bool {
			run := labels[ordinal]
			if run == nil {
				return true // a run without results because of an interruption
			}
			failed = take(&export.Labelled{Queue: run.Run.Queue, OutRateBPS: run.Run.OutRateBPS, Run: run.Run.Index,
				Observation: *o})
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		return err
	})}
}
