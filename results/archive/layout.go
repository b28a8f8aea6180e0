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

// Layouts make tables with their figures of the documents that reports have of their own, by the schema of these without its
// version: what is drawn has the same members in all.
type Layouts map[string]func(document []byte) ([]table.Sheet, error)

// stated is what the documents of all reports have in common.
type stated struct {
	Schema     string             `json:"schema"`
	Config     json.RawMessage    `json:"config"`
	Statements []string           `json:"statements"`
	Paper      []results.PaperRow `json:"paper"`
}

// Exportable is a stored run in the form that every exporter takes. Of an experiment that was kept with its document alone, it
// is what that says.
func Exportable(f *store.Folder, d Declarations, l Layouts) (*sheets.Result, error) {
	if HasDocumentOnly(f) {
		m := &f.Manifest
		r := &sheets.Result{DocumentOnly: true, Invalid: m.Reasons, Bench: &results.Bench{Schema: results.BenchSchema, Experiment: m.Experiment,
			Provenance: m.Provenance, Partial: m.Partial}}
		return r, layOut(r, f, l)
	}
	r, err := Load(f, d)
	if err != nil {
		return nil, err
	}
	return r, layOut(r, f, l)
}

// layOut adds what a report's own document says.
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
		if slices.ContainsFunc(b.Paper, func(p results.PaperRow) bool { return p.Kind == "" }) { // as the first versions had none
			b.Schema = s.Schema
		}
		judgeAnew(b)
	}
	if len(s.Config) > 0 { // shorter than what was resolved from it
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
