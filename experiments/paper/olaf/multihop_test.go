package olaf

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results/paper"
)

// With a few seeds the tables already have the paper's orderings, and every cell has a verdict.
func TestMultiHopTables(t *testing.T) {
	for _, e := range []experiments.Experiment{table2, table3} {
		report, err := e.Run(context.Background(), experiments.Options{Runs: 4})
		if err != nil {
			t.Fatal(err)
		}
		r := report.(*MultiHopReport)
		fifo, merged := &r.Rows[0], &r.Rows[1]
		const loss = "loss_packets_pct"
		if !(fifo.Stats.Of(loss).Mean > 80 && merged.Stats.Of(loss).Mean < 12) {
			t.Errorf("%s: losses %v and %v", e.Name, fifo.Stats.Of(loss).Mean, merged.Stats.Of(loss).Mean)
		}
		for g := range 2 {
			if !(fifo.published(g).Mean > 4*merged.published(g).Mean) {
				t.Errorf("%s group %d: FIFO's age %v, Olaf's %v", e.Name, g, fifo.published(g).Mean, merged.published(g).Mean)
			}
		}
		for _, p := range report.Paper() {
			if p.Verdict == string(paper.NotTestable) {
				t.Errorf("%s has no value", p.ID)
			}
		}
		var text strings.Builder
		if err := report.WriteText(&text); err != nil || !strings.Contains(text.String(), "\nN = senders ") {
			t.Errorf("%v\n%s", err, text.String())
		}
		above, _, _ := strings.Cut(text.String(), "\nvalid: ")
		for line := range strings.Lines(above) {
			if n := utf8.RuneCountInString(line); n > 121 { // with its end
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if !strings.Contains(text.String(), "counts as reproduced within ±100 %: packets or constituents") {
			t.Errorf("a wide tolerance is not told\n%s", text.String())
		}
		if header, rows := report.Table(); len(rows) != 4*(10+2*3) || len(rows[0]) != len(header) {
			t.Errorf("%s: %d rows of CSV", e.Name, len(rows))
		}
	}
}

// Control narrows the gap between the groups and raises the fairness (Table 3).
func TestControlNarrowsTheGap(t *testing.T) {
	report, err := table3.Run(context.Background(), experiments.Options{Runs: 3, Seed: 50})
	if err != nil {
		t.Fatal(err)
	}
	rows := report.(*MultiHopReport).Rows
	if plain, control := &rows[1], &rows[2]; !(control.gap() < plain.gap()) || !(control.Stats.Of("jain").Mean > plain.Stats.Of("jain").Mean) {
		t.Errorf("gap %v → %v, Jain %v → %v", plain.gap(), control.gap(), plain.Stats.Of("jain").Mean, control.Stats.Of("jain").Mean)
	}
}

func TestFig10Shapes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	report, err := fig10.Run(context.Background(), experiments.Options{Runs: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Paper() {
		if p.Verdict != string(paper.Reproduced) {
			t.Errorf("%s: %s, ours %v", p.ID, p.Verdict, p.Ours.Mean)
		}
	}
}

// The document is the same for any number of cores, and an interrupt leaves the whole rows.
func TestMultiHopDeterminism(t *testing.T) {
	var texts [2][]byte
	for i, procs := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		report, err := table2.Run(context.Background(), experiments.Options{Runs: 2})
		if err != nil {
			t.Fatal(err)
		}
		if texts[i], err = json.Marshal(report.Document()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("one and two cores differ")
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := heard(func(e bench.Event) {
		if d, ok := e.(bench.RunDone); ok && d.Run.Index == 2 {
			cancel()
		}
	})
	report, err := table2.Run(ctx, experiments.Options{Runs: 30, Stream: bench.NewStream(l)})
	r := report.(*MultiHopReport)
	if err == nil || !r.Partial || len(r.Rows) != 4 || r.Err() == nil {
		t.Errorf("%v, partial %v, %d rows", err, r.Partial, len(r.Rows))
	}
	for _, row := range r.Rows {
		if row.Runs != r.Rows[0].Runs || row.Runs >= 30 {
			t.Errorf("%s is over %d seeds", row.Name, row.Runs)
		}
	}
}

// heard is a sink that does something at every event.
type heard func(bench.Event)

func (h heard) Event(e bench.Event) error {
	h(e)
	return nil
}
