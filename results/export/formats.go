package export

import (
	"slices"

	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/sheets"
)

// Format is a kind of file that a result is exported to.
type Format struct {
	Name       string   // name of the format and of its flag
	About      string   // help for the flag of 'olafctl export'
	Extensions []string // extensions that the file may have; nil if any
	Folder     bool     // whether the path is a folder for several files
	// List returns the files to write for r; it may be empty for figures.
	List func(path string, r *sheets.Result) []Target
}

// formats are the formats in the order in which they are written.
var formats = []Format{
	{Name: "xlsx", About: "workbook with charts (.xlsx)", Extensions: []string{".xlsx"}, List: listOne(workbook)},
	{Name: "json", About: "JSON document", List: listOne(func(path string, r *sheets.Result) Target {
		return Document(path, r.Bench)
	})},
	{Name: "report", About: "self-contained HTML report", Extensions: []string{".html", ".htm"}, List: listOne(Report)},
	{Name: "csv", About: "folder for one CSV file per sheet", Folder: true, List: csv},
	{Name: "parquet", About: "folder for one Parquet file per sheet and one with the kept frames (on the twin those of " +
		"the first seed)", Folder: true, List: Parquet},
	listFigures("svg", "SVG"), listFigures("pdf", "PDF"), listFigures("png", "PNG"),
}

// Formats returns the formats in the order in which they are written.
func Formats() []Format { return slices.Clone(formats) }

// HasFigures reports whether the format is one of figure.Formats.
func (f *Format) HasFigures() bool { return slices.Contains(figure.Formats(), f.Name) }

// listOne returns the List of a format with one file.
func listOne(of func(string, *sheets.Result) Target) func(string, *sheets.Result) []Target {
	return func(path string, r *sheets.Result) []Target { return []Target{of(path, r)} }
}

// listFigures returns a format of figures.
func listFigures(name, title string) Format {
	return Format{Name: name, About: "folder for the figures as " + title, Folder: true,
		List: func(path string, r *sheets.Result) []Target { return Figures(path, name, r) }}
}
