// Package export writes a result to files. The formats are a directory of CSV or Parquet tables, a JSON document, a
// workbook, a report, and single figures. A file appears only when it is complete, and existing files are replaced only
// on request.
package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/report"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/xlsx"
)

// ErrExists is the error for a target that already exists.
var ErrExists = olaf.NewError(olaf.Usage, "exists")

// Target is a file to write, with the function that writes its content.
type Target struct {
	Path   string
	Write  func(io.Writer) error
	Folder string // folder, created if missing; for other files the folder must exist
}

// Files writes all targets. If one of them exists and force is not set, it fails before writing anything.
func Files(targets []Target, force bool) error {
	for _, t := range targets {
		if err := t.check(force); err != nil {
			return err
		}
	}
	for _, t := range targets {
		if err := t.write(force); errors.Is(err, ErrExists) {
			return err
		} else if err != nil {
			return fmt.Errorf("%s can't be written: %w; choose another place", t.Path, err)
		}
	}
	return nil
}

func (t *Target) check(force bool) error {
	if err := absent(t.Path, force); err != nil {
		return err
	}
	folder := filepath.Dir(t.Path)
	if _, err := os.Stat(folder); t.Folder == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be written: the folder %s does not exist: %w", t.Path, folder, fs.ErrNotExist)
	}
	return nil
}

// absent returns an error if a file already exists at path and force is not set.
func absent(path string, force bool) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil && !force:
		return fmt.Errorf("%s %w; add --force to replace it, or choose another name", path, ErrExists)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s can't be written: %w; choose another place", path, err)
	}
	return nil
}

func (t *Target) write(force bool) (err error) {
	if t.Folder != "" {
		if err := os.MkdirAll(t.Folder, 0o755); err != nil {
			return err
		}
	}
	file, err := renameio.NewPendingFile(t.Path, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	if err := t.Write(file); err != nil {
		return err
	}
	if force {
		return file.CloseAtomicallyReplace()
	}
	return appear(file, t.Path)
}

// link creates a hard link. Tests replace it to simulate a file system without hard links.
var link = os.Link

// appear renames a finished file to its final name. It returns an error if another process has created a file with this
// name in the meantime.
func appear(file *renameio.PendingFile, path string) error {
	if err := file.Sync(); err != nil {
		return err
	}
	switch err := link(file.Name(), path); {
	case err == nil:
		return nil // the caller removes the other name
	case errors.Is(err, fs.ErrExist):
		return absent(path, false)
	}
	if err := absent(path, false); err != nil { // without hard links, another process may create the file in between
		return err
	}
	return file.CloseAtomicallyReplace()
}

// workbook returns a target that writes r as an Excel workbook.
func workbook(path string, r *sheets.Result) Target {
	return Target{Path: path, Write: func(w io.Writer) error { return xlsx.Write(w, sheets.Book(r)) }}
}

// Report returns a target that writes r as an HTML page.
func Report(path string, r *sheets.Result) Target {
	return Target{Path: path, Write: func(w io.Writer) error { return report.Write(w, r) }}
}

// Document returns a target that writes an indented JSON document.
func Document(path string, document any) Target {
	return Target{Path: path, Write: func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(document)
	}}
}

// csv returns a target in dir for each sheet of r. Texts that a spreadsheet would interpret as a formula are quoted.
func csv(dir string, r *sheets.Result) []Target {
	var targets []Target
	for _, s := range sheets.Book(r).Sheets {
		quoteFormulas(&s)
		targets = append(targets, Target{filepath.Join(dir, FileName(&s)+".csv"), s.WriteCSV, dir})
	}
	return targets
}

// quoteFormulas puts an apostrophe before each text that a spreadsheet would interpret as a formula.
func quoteFormulas(s *table.Sheet) {
	columns := slices.Clone(s.Columns)
	for i := range columns {
		columns[i].Header = quoteFormula(columns[i].Header)
	}
	s.Columns = columns
	rows := make([][]table.Cell, len(s.Rows))
	for i, row := range s.Rows {
		rows[i] = slices.Clone(row)
		for k := range rows[i] {
			if rows[i][k].Kind == table.String {
				rows[i][k].Text = quoteFormula(rows[i][k].Text)
			}
		}
	}
	s.Rows = rows
}

func quoteFormula(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil || text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	return "'" + text
}

// Figures returns a target in dir for each sheet that has a figure. format is one of figure.Formats. The targets for a
// paper's figures and tables come first.
func Figures(dir, format string, r *sheets.Result) (targets []Target) {
	taken := map[string]int{}
	all := sheets.Book(r).Sheets
	slices.SortStableFunc(all, func(a, b table.Sheet) int {
		of := func(s *table.Sheet) int {
			switch {
			case numbered.MatchString(strings.ToLower(s.Name)):
				return 0
			case s.Name == sheets.PublishedName:
				return 1
			}
			return 2
		}
		return of(&a) - of(&b)
	})
	for _, s := range all {
		if !figure.HasData(&s) {
			continue
		}
		name := FileName(&s)
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, taken[name])
		}
		targets = append(targets, Figure(dir, format, name, &s))
	}
	return targets
}

// Figure returns a target in dir that writes the figure of one sheet.
func Figure(dir, format, name string, s *table.Sheet) Target {
	return Target{filepath.Join(dir, name+"."+format), func(w io.Writer) error { return figure.Write(w, format, s) }, dir}
}

var numbered = regexp.MustCompile(`^(fig|table)\.? (\d)`)

var notInNames = regexp.MustCompile(`[^\pL\pN._+]+`)

// longestName is the maximum length of a file name that consists of several words. A longer name is cut between words.
const longestName = 24

// FileName returns the name of a sheet in a form for file names, such as fig10-age for "Fig. 10 age". It has no commas
// and is cut only between words.
func FileName(s *table.Sheet) string {
	name := numbered.ReplaceAllString(strings.ToLower(s.Name), "$1$2")
	words := strings.Split(strings.Trim(notInNames.ReplaceAllString(name, "-"), "-."), "-")
	name = words[0]
	for _, word := range words[1:] {
		if len(name)+1+len(word) > longestName {
			break
		}
		name += "-" + word
	}
	return name
}
