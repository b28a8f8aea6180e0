package result

import (
	"io"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// Report is the result of an experiment in a form that can be printed, exported and compared with the paper.
type Report interface {
	// Document returns the JSON form, with its schema.
	Document() any
	// WriteText prints the report as text.
	WriteText(io.Writer, text.View) error
	// Table returns a header and the rows for CSV.
	Table() (header []string, rows [][]string)
	// Paper returns the comparisons with all published numbers that the experiment reproduces.
	Paper() []results.PaperRow
	// Err returns nil if every run was valid and complete.
	Err() error
}

// Attaching is a Report with additional files, which are stored by name next to its document.
type Attaching interface {
	Files() (map[string][]byte, error)
}
