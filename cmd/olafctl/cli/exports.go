package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/export"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
)

// Exports contains the paths to which a result is written, by the name of the format in export.Formats. A path is that
// of a folder if the format's field Folder is set.
type Exports struct {
	paths map[string]*string
	Force bool
}

// Add adds the flag that sets the path of the file to export in the given format.
func (e *Exports) Add(flags *pflag.FlagSet, format, usage string) {
	flags.StringVar(e.path(format), format, "", usage)
}

func (e *Exports) path(format string) *string {
	if e.paths == nil {
		e.paths = map[string]*string{}
	}
	if e.paths[format] == nil {
		e.paths[format] = new(string)
	}
	return e.paths[format]
}

// Path returns the path for a format, or "" if the format was not requested.
func (e *Exports) Path(format string) string { return *e.path(format) }

// IsEmpty reports whether no format was requested.
func (e *Exports) IsEmpty() bool {
	return !slices.ContainsFunc(slices.Collect(maps.Values(e.paths)), func(p *string) bool { return *p != "" })
}

// clone returns a copy whose paths can be changed independently.
func (e *Exports) clone() *Exports {
	c := &Exports{Force: e.Force}
	for name, path := range e.paths {
		*c.path(name) = *path
	}
	return c
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
	rest := e.clone()
	missing := rest.leaveOut(f, r)
	if rest.IsEmpty() {
		return UsageError("nothing was written: %s has no %s", f.ID(), strings.Join(missing, " and no "))
	}
	if archive.HasDocument(f) {
		*rest.path("json") = "" // written as the report's own document
	}
	if archive.HasDocumentOnly(f) {
		*rest.path("csv") = "" // written as the report's own table
	}
	if err := rest.WriteFiles(env, r, append(own, frameTargets(env, f, rest.Path("parquet"))...)...); err != nil {
		return err
	}
	if len(missing) > 0 {
		fmt.Fprintf(env.Stderr, "%s has no %s\n", f.ID(), strings.Join(missing, " and no "))
	}
	return e.RecordExports(env, s, f)
}

// leaveOut removes the requests for formats that a run does not have and returns their names.
func (e *Exports) leaveOut(f *store.Folder, r *sheets.Result) (missing []string) {
	if e.Path("parquet") != "" && archive.HasDocumentOnly(f) {
		*e.path("parquet"), missing = "", append(missing, "single runs for --parquet")
	}
	var figures []string
	for _, x := range export.Formats() {
		if path := e.path(x.Name); x.HasFigures() && *path != "" && len(x.List(*path, r)) == 0 {
			*path, figures = "", append(figures, "--"+x.Name)
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
	var files []string
	for _, x := range export.Formats() {
		path := e.Path(x.Name)
		if path == "-" {
			return UsageError("--%s -: export writes files, not standard output; give a name ('olafctl runs show ID "+
				"-o json' prints a run's document)", x.Name)
		}
		if !x.Folder {
			files = append(files, path)
		}
	}
	for _, x := range export.Formats() {
		if x.Extensions == nil {
			continue
		}
		if err := CheckExtension("--"+x.Name, e.Path(x.Name), x.Extensions...); err != nil {
			return err
		}
	}
	return CheckDistinct(files...)
}

// listTargets returns the files to write.
func (e *Exports) listTargets(r *sheets.Result) (targets []export.Target) {
	for _, x := range export.Formats() {
		if path := e.Path(x.Name); path != "" {
			targets = append(targets, x.List(path, r)...)
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
	if path := e.Path("json"); path != "" {
		targets = append(targets, bytes(path, "", d.JSON))
	}
	if dir := e.Path("csv"); dir != "" {
		targets = append(targets, bytes(filepath.Join(dir, paper.FileName(f.Manifest.Experiment)+".csv"), dir, d.Table))
	}
	return targets, nil
}

// WriteFiles checks all requested files and then writes them.
func (e *Exports) WriteFiles(env *Env, r *sheets.Result, more ...export.Target) error {
	return WriteTargets(env, append(e.listTargets(r), more...), e.Force)
}

// WriteTargets writes files and prints their names. Existing files are only replaced if force is set.
func WriteTargets(env *Env, targets []export.Target, force bool) error {
	if err := export.Files(targets, force); err != nil {
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
	for kind, path := range map[string]string{archive.KindWorkbook: e.Path("xlsx"), archive.KindReport: e.Path("report")} {
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
		labels := map[uint32]*archive.StoredRun{}
		for i := range runs {
			labels[runs[i].Ordinal] = &runs[i]
		}
		var failed error
		err = archive.VisitObservations(f, func(ordinal uint32, o *olaf.Observation) bool {
			run := labels[ordinal]
			if run == nil {
				return true // an interrupted run without results
			}
			failed = take(&export.Labelled{Queue: run.Run.Queue, OutRateBPS: run.Run.OutRateBPS, Run: run.Run.Index,
				Observation: *o})
			return failed == nil
		})
		return cmp.Or(failed, err)
	})}
}
