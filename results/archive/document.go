package archive

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/store"
)

// Files of an experiment whose report has a document of its own.
const (
	DocumentFile = "document.json"
	PrintedFile  = "printed.txt"
	TableFile    = "table.csv"
)

// ErrDocumentOnly says that an experiment was kept without single runs.
var ErrDocumentOnly = olaf.NewError(olaf.Usage, "kept with its document only")

// Document is a report of its own, in every form that it was printed in.
type Document struct {
	JSON    json.RawMessage
	Printed []byte // as it was printed then
	Table   []byte // CSV
}

// HasDocumentOnly says whether f is an experiment that was kept with its document alone.
func HasDocumentOnly(f *store.Folder) bool { return HasDocument(f) && !has(f, RunsFile) }

// HasDocument says whether f holds a report of its own, beside single runs or alone. Without it the bench is the document.
func HasDocument(f *store.Folder) bool { return has(f, DocumentFile) }

func has(f *store.Folder, name string) bool {
	_, err := os.Stat(f.Path(name))
	return err == nil
}

// LoadDocument reads a report of its own.
func LoadDocument(f *store.Folder) (*Document, error) {
	d := new(Document)
	if err := f.ReadJSON(DocumentFile, &d.JSON); err != nil {
		return nil, err
	}
	var err error
	if d.Printed, err = f.ReadFile(PrintedFile); err != nil {
		return nil, err
	}
	d.Table, err = f.ReadFile(TableFile)
	return d, err
}

// documentOnly is the error for what needs single runs.
func documentOnly(f *store.Folder) error {
	return fmt.Errorf("%w: %s has no single runs; print it with olafctl runs show %s, or write it with olafctl export", ErrDocumentOnly, f.ID(), f.ID())
}
