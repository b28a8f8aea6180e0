// Package export writes a result as files: a directory of CSV or Parquet tables, a JSON document, a workbook, a report, or
// single figures. A file appears only when it is whole, and one that is there is only replaced when told so.
package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/report"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/xlsx"
)

// ErrExists says that a target is there already.
var ErrExists = errors.New("the file exists")

// Target is one file to be written.
type Target struct {
	Path  string
	Write func(io.Writer) error
}

// Files writes all targets. Unless force is set it refuses, before it writes anything, when one of them is there.
func Files(targets []Target, force bool) error {
	for _, t := range targets {
		if _, err := os.Lstat(t.Path); !force && err == nil {
			return fmt.Errorf("%w: %s; choose another name, or replace it with --force", ErrExists, t.Path)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s can't be written: %w; choose another place", t.Path, err)
		}
	}
	for _, t := range targets {
		if err := write(t); err != nil {
			return fmt.Errorf("%s can't be written: %w; choose another place", t.Path, err)
		}
	}
	return nil
}

func write(t Target) (err error) {
	if err := os.MkdirAll(filepath.Dir(t.Path), 0o755); err != nil {
		return err
	}
	file, err := renameio.NewPendingFile(t.Path, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	if err := t.Write(file); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

// Workbook is r as an Excel workbook.
func Workbook(path string, r *sheets.Result) Target {
	return Target{path, func(w io.Writer) error { return xlsx.Write(w, sheets.Book(r)) }}
}

// Report is r as an HTML page.
func Report(path string, r *sheets.Result) Target {
	return Target{path, func(w io.Writer) error { return report.Write(w, r) }}
}

// Document is a JSON document, indented.
func Document(path string, document any) Target {
	return Target{path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(document)
	}}
}

// CSV is a file a sheet in dir.
func CSV(dir string, r *sheets.Result) []Target {
	var targets []Target
	for _, s := range sheets.Book(r).Sheets {
		targets = append(targets, Target{filepath.Join(dir, fileName(&s)+".csv"), s.WriteCSV})
	}
	return targets
}

// Figures is a file a chart in dir, as svg or png.
func Figures(dir, format string, r *sheets.Result) ([]Target, error) {
	draw, ok := map[string]func(io.Writer, *table.Sheet, *table.Chart) error{"svg": figure.SVGFile, "png": figure.PNG}[format]
	if !ok {
		return nil, fmt.Errorf("figures are svg or png, not %q", format)
	}
	var targets []Target
	for _, s := range sheets.Book(r).Sheets {
		for i := range s.Charts {
			name := fileName(&s)
			if len(s.Charts) > 1 {
				name = fmt.Sprintf("%s-%d", name, i+1)
			}
			targets = append(targets, Target{filepath.Join(dir, name+"."+format), func(w io.Writer) error { return draw(w, &s, &s.Charts[i]) }})
		}
	}
	return targets, nil
}

func fileName(s *table.Sheet) string { return strings.ToLower(s.Name) }
