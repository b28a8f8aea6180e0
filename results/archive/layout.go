package archive

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/table"
)

// Layouts contains functions that convert report documents to tables with figures. They are found by schema name
// without version, because all versions of a schema have the members that the figures show.
type Layouts map[string]func(document []byte) ([]table.Sheet, error)

// stated contains the members that all report documents have in common.
type stated struct {
	Schema     string             `json:"schema"`
	Config     json.RawMessage    `json:"config"`
	Statements []string           `json:"statements"`
	Paper      []results.PaperRow `json:"paper"`
}

// LoadExportable loads a stored run for the exporters. For an experiment that was stored as a document only, the result
// contains the document's content.
func LoadExportable(f *store.Folder, d Declarations, l Layouts) (*sheets.Result, error) {
	if HasDocumentOnly(f) {
		m := &f.Manifest
		r := &sheets.Result{DocumentOnly: true, Invalid: m.Reasons, Bench: &results.Bench{Schema: results.BenchSchema,
			Experiment: m.Experiment,
			Provenance: m.Provenance, Partial: m.Partial}}
		return r, layOut(r, f, l)
	}
	r, err := Load(f, d)
	if err != nil {
		return nil, err
	}
	return r, layOut(r, f, l)
}

// layOut adds the content of a report document to r.
func layOut(r *sheets.Result, f *store.Folder, l Layouts) error {
	if !HasDocument(f) {
		return nil
	}
	var document json.RawMessage
	if err := f.ReadJSON(DocumentFile, &document); err != nil {
		return err
	}
	var s stated
	if err := json.Unmarshal(document, &s); err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
	}
	b := r.Bench
	if r.DocumentOnly {
		b.Paper = s.Paper
		// documents of the first versions have no kind
		if slices.ContainsFunc(b.Paper, func(p results.PaperRow) bool { return p.Kind == "" }) {
			b.Schema = s.Schema
		}
		rejudgeRows(b)
	}
	if len(s.Config) > 0 { // the given form is shorter than the resolved one
		b.Config = s.Config
	}
	b.Statements = append(b.Statements, s.Statements...)
	kind, _, _ := strings.Cut(s.Schema, "/")
	lay, ok := l[kind]
	if !ok {
		return nil
	}
	var err error
	if r.Own, err = lay(document); err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
	}
	return nil
}
