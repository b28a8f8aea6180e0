package archive

import (
	"encoding/json"
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

// PlanFile is the name of the file with the plan, from which an experiment can be run again.
const PlanFile = "plan.json"

// ErrDocumentOnly is the error for an operation that needs single runs, on an experiment that was stored without them.
var ErrDocumentOnly = olaf.NewError(olaf.Usage, "stored with its document only")

// ErrDiffers is the error for a stored run that has different results when it is repeated.
var ErrDiffers = olaf.NewError(olaf.Missed, "the run does not repeat")

// Document is the report of an experiment in all forms in which it is printed.
type Document struct {
	JSON    json.RawMessage
	Printed []byte // text as printed when it was stored
	Table   []byte // CSV
}

// HasDocumentOnly reports whether f contains a report document but no single runs.
func HasDocumentOnly(f *store.Folder) bool { return HasDocument(f) && !hasFile(f, RunsFile) }

// HasDocument reports whether f contains a report document, with or without single runs. If it does not, the bench
// itself is the document.
func HasDocument(f *store.Folder) bool { return hasFile(f, DocumentFile) }

func hasFile(f *store.Folder, name string) bool {
	_, err := os.Stat(f.Path(name))
	return err == nil
}

// LoadDocument reads the report document of a stored experiment.
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
