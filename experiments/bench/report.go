package bench

import (
	"io"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// Report is what an experiment found, ready to be printed, exported and compared with the paper.
type Report interface {
	// Document is the JSON form, with its schema.
	Document() any
	// WriteText prints it for people.
	WriteText(io.Writer, text.View) error
	// Table is the list for CSV: a header row, then rows.
	Table() (header []string, rows [][]string)
	// Paper compares with every published number the experiment reaches.
	Paper() []results.PaperRow
	// Err is nil when every run was valid and complete.
	Err() error
}

// Attaching is a Report with more than it prints: files that are kept beside its document, by their names.
type Attaching interface {
	Files() (map[string][]byte, error)
}
