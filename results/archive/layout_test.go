package archive

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/table"
)

// document stores an experiment that consists of only this document.
func document(t *testing.T, m store.Manifest, text string) *store.Folder {
	t.Helper()
	s := opened(t)
	w, err := s.Create("toy", noon)
	if err != nil {
		t.Fatal(err)
	}
	m.Experiment = "toy"
	if err := errors.Join(w.Put(DocumentFile, []byte(text)), w.Put(PrintedFile, nil), w.Put(TableFile, nil)); err != nil {
		t.Fatal(err)
	}
	return finished(t, s, w, m)
}

// TestDocumentsAreExportable checks that an experiment without single runs exports the contents of its document in the
// registered layout, and that nothing in it is judged by runs that it does not have.
func TestDocumentsAreExportable(t *testing.T) {
	const text = `{"schema": "toy/v1", "config": {"seeds": 3}, "statements": ["a toy"], "paper": [{"id": "toy/a", "row": "a", "column": "b", "kind": "value", "published": 2, "ours": {"mean": 1, "n": 1}}]}`
	layouts := Layouts{"toy": func([]byte) ([]table.Sheet, error) {
		return []table.Sheet{{Name: "Toy", Columns: []table.Column{{Header: "x"}}, Rows: [][]table.Cell{{table.N(1)}}}}, nil
	}}
	f := document(t, store.Manifest{Valid: true}, text)
	if _, err := Load(f, toy.Declarations); !errors.Is(err, ErrDocumentOnly) {
		t.Errorf("runs were loaded where there are none: %v", err)
	}
	r, err := LoadExportable(f, toy.Declarations, layouts)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sheets.Book(r).Sheets {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "README Summary Toy" || !r.Valid() ||
		len(r.Bench.Statements) != 1 || !strings.HasPrefix(r.Validity(), "yes") {
		t.Errorf("%s, %s, %v", got, r.Validity(), r.Bench.Statements)
	}
	if r, err = LoadExportable(f, toy.Declarations, nil); err != nil || len(r.Own) != 0 ||
		len(sheets.PublishedSheet(r.Bench).Rows) != 1 {
		t.Errorf("of a document that nobody knows: %v, %v", r, err)
	}
	old := strings.Replace(text, `"kind": "value", `, "", 1)
	if r, err = LoadExportable(document(t, store.Manifest{Valid: true}, old), toy.Declarations,
		layouts); err != nil || len(r.Bench.Paper) != 0 || len(r.Own) != 1 {
		t.Errorf("of a claim of the first version that is made no longer: %v, %v", r, err)
	}
	f = document(t, store.Manifest{Partial: true, Reasons: []string{"stopped"}}, text)
	if r, err = LoadExportable(f, toy.Declarations, layouts); err != nil || r.Valid() || r.Validity() != "no: stopped" {
		t.Errorf("%s, %v", r.Validity(), err)
	}
	f = document(t, store.Manifest{}, `{"schema": 5}`)
	if _, err = LoadExportable(f, toy.Declarations, layouts); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a document of another form: %v", err)
	}
}
