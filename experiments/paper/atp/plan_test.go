package atp

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/system"
)

// A plan that was written and read gives the same document and the same single runs, a name a cell and a run a seed.
func TestPlanIsReadAgain(t *testing.T) {
	p := &Plan{Seeds: []uint64{4, 5}, Systems: system.All(), Grid: &Grid{
		Setting:  Setting{System: "atp", Model: vgg(t), Jobs: 2, Workers: 2, Fraction: 0.0005, Updates: 1},
		Sharings: []string{system.Static, system.Dynamic}, Amounts: []string{"0.5pta"}, Losses: []float64{0, 0.001},
	}}
	said := func(p *Plan) (document, runs []byte) {
		r, err := p.Run(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if document, err = json.Marshal(r.Document()); err != nil {
			t.Fatal(err)
		}
		files, err := r.Files()
		if err != nil || len(r.Rows()) != 4 {
			t.Fatalf("%d rows: %v", len(r.Rows()), err)
		}
		return document, files[RunsFile]
	}
	document, runs := said(p)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	back := &Plan{Systems: p.Systems}
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	if d, r := said(back); !bytes.Equal(d, document) || !bytes.Equal(r, runs) {
		t.Errorf("read back it gives\n%s\n%s, not\n%s\n%s", d, r, document, runs)
	}
	found, err := job.NamedRuns(runs)
	if err != nil || len(found) != p.Runs() {
		t.Fatalf("%d runs of %d: %v", len(found), p.Runs(), err)
	}
	for i, want := range []string{"static, 0.5pta (202), 0 % lost", "dynamic, 0.5pta (202), 0 % lost", "static, 0.5pta (202), 0.1 % lost", "dynamic, 0.5pta (202), 0.1 % lost"} {
		if a, b := found[2*i], found[2*i+1]; a.Queue != want || b.Queue != want || a.Seed != 4 || b.Seed != 5 {
			t.Errorf("%s, %d and %s, %d; want %s", a.Queue, a.Seed, b.Queue, b.Seed, want)
		}
	}
}
