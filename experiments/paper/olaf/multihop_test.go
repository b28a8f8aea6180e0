package olaf

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

// TestMultiHopTables checks that the tables have the paper's orderings with few seeds, and a verdict in every cell.
func TestMultiHopTables(t *testing.T) {
	for _, e := range []experiments.Experiment{table2, table3} {
		report, err := e.Run(context.Background(), experiments.Options{Runs: 4})
		if err != nil {
			t.Fatal(err)
		}
		rows := report.(*bench.SimulationResult).Rows
		fifo, merged := &rows[0], &rows[1]
		const loss = "loss_packets_pct"
		if !(fifo.Stats.Of(loss).Mean > 80 && merged.Stats.Of(loss).Mean < 12) {
			t.Errorf("%s: losses %v and %v", e.Name, fifo.Stats.Of(loss).Mean, merged.Stats.Of(loss).Mean)
		}
		for g := range 2 {
			if a, b := fifo.Groups[g].Stats.Of(aomWorker), merged.Groups[g].Stats.Of(aomCluster); !(a.Mean > 4*b.Mean) {
				t.Errorf("%s group %d: FIFO's age %v, Olaf's %v", e.Name, g, a.Mean, b.Mean)
			}
		}
		for _, p := range report.Paper() {
			judged := paper.Verdict(p.Verdict).Judges() && strings.Contains(p.Note, "both ends of the interval agree")
			if !p.Ours.Known() || !judged && p.Verdict != string(paper.TooShort) || !strings.Contains(p.Note, "4 of 100 runs") {
				t.Errorf("%s of 4 seeds is %q with the note %q, want a verdict that both ends of the interval have, or too short", p.ID, p.Verdict, p.Note)
			}
			if jain := p.Column == "jain"; jain && !slices.ContainsFunc(p.Sensitivity, func(s results.Sensitivity) bool { return s.Assumption == "per worker" }) {
				t.Errorf("%s stands without the index per worker: %+v", p.ID, p.Sensitivity)
			}
		}
		var page strings.Builder
		if err := report.WriteText(&page, text.View{Explain: true}); err != nil || !strings.Contains(page.String(), "(N = SENDERS)") {
			t.Errorf("%v\n%s", err, page.String())
		}
		for line := range strings.Lines(page.String()) {
			if n := utf8.RuneCountInString(line); n > text.PlainWidth+1 { // including the newline
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if header, rows := report.Table(); len(rows) != 4*(10+2*3) || len(rows[0]) != len(header) {
			t.Errorf("%s: %d rows of CSV", e.Name, len(rows))
		}
	}
}

// TestControlNarrowsTheGap checks that control narrows the gap between the groups and raises the fairness (Table 3).
func TestControlNarrowsTheGap(t *testing.T) {
	report, err := table3.Run(context.Background(), experiments.Options{Runs: 3, Seed: 50})
	if err != nil {
		t.Fatal(err)
	}
	o := experiments.Options{Runs: 3, Seed: 50}
	made := newMultiHopTable("olaf/table3", "Table 3", &o)
	made.config.Period2 = 300 * olaf.Millisecond
	if err := made.runVariants(context.Background(), &o, fifoPlain, olafPlain, olafN, olafSenders); err != nil {
		t.Fatal(err)
	}
	rows := made.rows
	plain, clusters, senders := &rows[1], &rows[2], &rows[3]
	if before, after := plain.Stats.Of("jain").Mean, senders.Stats.Of("jain").Mean; !(senders.gap() < plain.gap()) || !(after > before) {
		t.Errorf("N = senders: gap %v → %v, Jain %v → %v", plain.gap(), senders.gap(), before, after)
	}
	wide, narrow := senders.narrowsFrom(plain), clusters.narrowsFrom(plain)
	if !(wide.Mean-wide.CI95 > narrow.Mean) || wide.N != 3 {
		t.Errorf("the gap narrows by %v ± %v where N counts senders, by %v ± %v where it counts clusters", wide.Mean, wide.CI95, narrow.Mean, narrow.CI95)
	}
	for _, p := range report.Paper() {
		n := p.ID == "olaf/table3.olaf_tc.aom_s1" && (p.Ours.Mean != clusters.publishedAge(0).Mean || p.Sensitivity[1].Ours.Mean != senders.publishedAge(0).Mean || p.Sensitivity[1].Assumption != "N = senders")
		if n || p.ID == "olaf/table3.fifo.jain" && p.Ours.Mean != rows[0].Stats.Of("jain").Mean {
			t.Errorf("%s is %v beside %+v", p.ID, p.Ours.Mean, p.Sensitivity)
		}
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
	within := map[string][2]results.Float{"olaf/fig10.fifo.s1_at_0.1": {5000, 10000}, "olaf/fig10.fifo.s2_stable": {30, 90}, "olaf/fig10.olaf_tc.s1_falls": {60, 100}, "olaf/fig10.olaf_tc.s2_flat_and_low": {2, 6}}
	// Two runs have a verdict only if both ends of the interval agree.
	verdicts := []string{string(paper.TooShort), string(paper.BoundMet), string(paper.Holds)}
	for _, p := range report.Paper() {
		if limits := within[p.ID]; !(p.Ours.Mean > limits[0] && p.Ours.Mean < limits[1]) || !slices.Contains(verdicts, p.Verdict) {
			t.Errorf("%s: %s, ours %v", p.ID, p.Verdict, p.Ours.Mean)
		}
	}
}

// TestMultiHopDeterminism checks that the document is the same for any number of cores, and that an interrupt leaves
// complete rows.
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
	r := report.(*bench.SimulationResult)
	if err == nil || !r.Partial || len(r.Rows) != 4 || r.Err() == nil {
		t.Errorf("%v, partial %v, %d rows", err, r.Partial, len(r.Rows))
	}
	for _, row := range r.Rows {
		if row.Runs != r.Rows[0].Runs || row.Runs >= 30 {
			t.Errorf("%s is over %d seeds", row.Name, row.Runs)
		}
	}
}

// heard is a sink that calls a function for every event.
type heard func(bench.Event)

func (h heard) Event(e bench.Event) error {
	h(e)
	return nil
}
