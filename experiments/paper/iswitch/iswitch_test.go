package iswitch

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// TestClaims checks that every claimed number is no worse than declared, and that A2C and DDPG, to which nothing was
// fitted, are within 18 % in Table 4 and 15 % in Table 3.
func TestClaims(t *testing.T) {
	reached := map[string]bool{}
	for _, e := range Experiments(system.All()) {
		report, err := e.Run(context.Background(), experiments.Options{})
		if err != nil || report.Err() != nil {
			t.Fatal(e.Name, err, report.Err())
		}
		for _, missed := range paper.FindMisses(report.Paper()) {
			t.Errorf("%s is %s, expected %s", missed.ID, missed.Verdict, missed.Expected)
		}
		for _, row := range report.Paper() {
			reached[row.ID] = true
			limit := map[string]float64{"iswitch/table4": 18, "iswitch/table3": 15}[e.Name]
			async := row.Row == "async speedup over ps" // based on Table 5
			if limit > 0 && row.Basis == string(paper.Predicted) && !async && math.Abs(float64(row.DeviationPct)) > limit {
				t.Errorf("%s deviates by %.1f %%, more than %g", row.ID, float64(row.DeviationPct), limit)
			}
		}
	}
	for _, c := range paper.ListClaims() {
		if paper.SystemOf(c.ID) == "iswitch" && c.Untestable == "" && !reached[c.ID] {
			t.Errorf("no experiment reaches %s", c.ID)
		}
	}
}

// TestTable4 checks that the predictions for Table 4 have the paper's order; for PPO and DDPG our server is 1 and 3 %
// ahead of AllReduce. Wires and switches alone miss the paper by 40 %, which is why hosts' costs are fitted.
func TestTable4(t *testing.T) {
	report, err := runTable4(context.Background(), &lab{set: system.All(), options: &experiments.Options{}}, experiments.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table := report.(*result.Result)
	times, wires, printed := table.Blocks[0], table.Blocks[2], table.Blocks[3]
	for i, row := range times.Rows {
		order := func(b result.Block) (columns []int) {
			cells := b.Rows[i].Cells
			columns = []int{0, 1, 2}
			slices.SortFunc(columns, func(a, b int) int { return cmp.Compare(cells[a].Mean, cells[b].Mean) })
			return columns
		}
		if ours, theirs := order(times), order(printed); !slices.Equal(ours, theirs) {
			t.Errorf("%s: from the fastest on %v, in the paper %v", row.Name, ours, theirs)
		}
	}
	if got := meanDeviation(&wires, &printed); got < 0.35 || got > 0.45 {
		t.Errorf("wires alone miss the paper by %.3f, not by 0.40", got)
	}
	if got := meanDeviation(&times, &printed); got > 0.06 {
		t.Errorf("with what hosts take the paper is missed by %.3f", got)
	}
}

func TestModels(t *testing.T) {
	if _, err := FindModel("vgg"); !errors.Is(err, system.ErrOptions) {
		t.Errorf("an unknown model: %v", err)
	}
	for _, m := range Models() {
		if got, err := FindModel(m.Name); err != nil || got != m {
			t.Errorf("%s: %+v, %v", m.Name, got, err)
		}
	}
}

// TestJobsCompareWithPrintedNumbers checks that a job on the unchanged cluster is compared with its cell and the
// table's number, and a job on a changed cluster with none.
func TestJobsCompareWithPrintedNumbers(t *testing.T) {
	m := Models()[3]
	l := lab{set: system.All(), options: &experiments.Options{}}
	for want, a := range map[string]approach{"table4.ddpg.ps": syncPS, "table4.ddpg.ar": allReduce, "table4.ddpg.isw": syncSwitch, "table5.ddpg.ps": asyncPS, "table5.ddpg.isw": asyncSwitch} {
		spec := printedJob(t, &l, a, m)
		p := job.Plan{Title: "one", Seeds: []uint64{1}, Jobs: []*job.Spec{spec}, Printed: Printed(m, spec, 0)}
		r, err := p.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		table, err := l.iteration(t.Context(), a, m, LabWorkers, false)
		if err != nil {
			t.Fatal(err)
		}
		ours := float64(table.Mean)
		if a.mode == "sync" {
			ours *= m.Sync / 3.6e6
		}
		rows := r.Paper()
		if len(rows) != 1 || rows[0].ID != "iswitch/"+want || math.Abs(float64(rows[0].Ours.Mean)/ours-1) > 1e-9 || rows[0].Basis != "predicted" && a != asyncSwitch {
			t.Errorf("%s: %+v, want %g", want, rows, ours)
		}
		for name, change := range map[string]func(*job.Spec){
			"workers": func(s *job.Spec) { s.Network.Workers = 3 }, "loss": func(s *job.Spec) { s.Network.Link.Loss = 0.01 },
			"hosts": func(s *job.Spec) { s.Network.Worker = closedloop.Costs{} }, "spread": func(s *job.Spec) { s.Job.Jitter = 0.1 },
			"slots": func(s *job.Spec) { s.Options.Slots = 9000 }, "H": func(s *job.Spec) { s.Options.H = 2 },
		} {
			other := *spec
			if change(&other); Printed(m, &other, 0) != nil {
				t.Errorf("%s with other %s is printed", want, name)
			}
		}
	}
}

// printedJob returns the job that lab.run runs.
func printedJob(t *testing.T, l *lab, a approach, m Model) *job.Spec {
	t.Helper()
	if _, err := l.run(t.Context(), a, m, LabWorkers, false); err != nil {
		t.Fatal(err)
	}
	played := *l.done[key{a, m.Name, LabWorkers, false}].Spec
	played.Job.PerPacket = 0 // defined by the system's parts
	return &played
}
