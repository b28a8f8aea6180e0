package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/report"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/xlsx"
)

func newPendingFile(path string) (*renameio.PendingFile, error) {
	pending, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return pending, nil
}

// exports are the files that a result can be written to.
type exports struct {
	xlsx, json, report string
	csv                string // a folder
	force              bool
}

func newExportCmd(env *environment) *cobra.Command {
	var (
		where storeFlag
		to    exports
	)
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write a kept run as workbook, CSV, JSON or HTML report",
		Long: `Write a kept run in forms that people can hand on: a workbook with charts, one CSV file a sheet, the JSON document, and a
report in one HTML file that needs no network. The same run gives the same bytes.`,
		Example: `  olafctl export last --xlsx out.xlsx --report report.html
  olafctl export last --csv tables/ --json out.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if to == (exports{force: to.force}) {
				return usageError("nothing to write: give --xlsx, --csv, --json or --report")
			}
			return where.withRun(env, args[0], func(_ *store.Store, f *store.Folder) error {
				r, err := experiments.Load(f)
				if err != nil {
					return err
				}
				return to.write(env, r)
			})
		},
	}
	cmd.Flags().StringVar(&to.xlsx, "xlsx", "", "workbook with charts")
	cmd.Flags().StringVar(&to.csv, "csv", "", "folder for one CSV file a sheet")
	cmd.Flags().StringVar(&to.json, "json", "", "JSON document")
	cmd.Flags().StringVar(&to.report, "report", "", "self-contained HTML report")
	cmd.Flags().BoolVar(&to.force, "force", false, "replace files that exist")
	where.add(cmd)
	return cmd
}

// write writes every file that was asked for. All targets are checked before the first one is written.
func (e *exports) write(env *environment, r *sheets.Result) error {
	book := sheets.Book(r)
	targets := []struct {
		path  string
		write func(io.Writer) error
	}{
		{e.xlsx, func(w io.Writer) error { return xlsx.Write(w, book) }},
		{e.json, func(w io.Writer) error { return writeJSON(w, r.Bench) }},
		{e.report, func(w io.Writer) error { return report.Write(w, r) }},
	}
	if e.csv != "" {
		if err := makeDir(e.csv); err != nil {
			return err
		}
		for i := range book.Sheets {
			s := &book.Sheets[i]
			targets = append(targets, struct {
				path  string
				write func(io.Writer) error
			}{filepath.Join(e.csv, csvName(s)), s.WriteCSV})
		}
	}
	for _, t := range targets {
		if err := refuseExisting(t.path, e.force); err != nil {
			return err
		}
	}
	var errs []error
	for _, t := range targets {
		if t.path == "" {
			continue
		}
		if err := writeFile(t.path, e.force, t.write); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(env.stderr, "wrote %s\n", t.path)
	}
	return errors.Join(errs...)
}

// csvName is a sheet's file name.
func csvName(s *table.Sheet) string {
	return strings.ToLower(strings.ReplaceAll(s.Name, " ", "_")) + ".csv"
}
