package archive

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/store"
)

// Files for an experiment with its own report document.
const (
	DocumentFile = "document.json"
	PrintedFile  = "printed.txt"
	TableFile    = "table.csv"
)

// PlanFile is the file with the plan for running an experiment again.
const PlanFile = "plan.json"

// ErrDocumentOnly reports that the experiment was stored without single runs.
var ErrDocumentOnly = olaf.NewError(olaf.Usage, "stored with its document only")

// ErrDiffers reports that a stored run gives different results when repeated.
var ErrDiffers = olaf.NewError(olaf.Missed, "the run does not repeat")

// Document is an experiment's own report in all its printed forms.
type Document struct {
	JSON    json.RawMessage
	Printed []byte // as printed when it was stored
	Table   []byte // CSV
}

// HasDocumentOnly reports whether f was stored with its document alone.
func HasDocumentOnly(f *store.Folder) bool { return HasDocument(f) && !hasFile(f, RunsFile) }

// HasDocument reports whether f contains a report document, with or without single runs. Otherwise the bench is the
// document.
func HasDocument(f *store.Folder) bool { return hasFile(f, DocumentFile) }

func hasFile(f *store.Folder, name string) bool {
	_, err := os.Stat(f.Path(name))
	return err == nil
}

// LoadDocument reads a report document.
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

// documentOnly returns the error for an operation that needs single runs.
func documentOnly(f *store.Folder) error {
	return fmt.Errorf("%w: %s has no single runs; print it with "+
		"olafctl runs show %s, or write it with olafctl export", ErrDocumentOnly, f.ID(), f.ID())
}
