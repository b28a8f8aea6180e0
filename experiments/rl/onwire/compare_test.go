package onwire

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/results/compare"
)

// TestCompareStoredTrainings compares stored training runs: each kind by its own name, or one kind with the other, also
// within one run.
func TestCompareStoredTrainings(t *testing.T) {
	var real []*Training
	for seed := range uint64(2) {
		one := believed(t)
		one.Seed, one.ArrivedPct = 3+seed, []float64{90, 70}
		one.Curves = [][]rl.Point{{{AtNS: 1, Reward: 1000}, {AtNS: 2, Reward: 1001 + float64(seed)}}}
		real = append(real, one)
	}
	invalid := believed(t)
	invalid.System, invalid.Curves, invalid.Invalid = "fifo", nil, []string{"a frame got lost"}
	f := keep(t, append(real, invalid)...)

	side := func(kind string) *Side {
		s, err := SideOf(f, kind)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := side(Simulated), side(Real)
	d, err := compare.CompareResults(&a.Side, &b.Side)
	if err != nil {
		t.Fatal(err)
	}
	if d.A != f.ID()+", simulated" || d.B != f.ID()+", real packets" || len(d.Config) != 0 {
		t.Errorf("%s, %s: %+v", d.A, d.B, d.Config)
	}
	found := map[string]compare.Line{}
	for _, l := range d.Lines {
		found[l.Queue+" "+l.Metric] = l
	}
	last := found["olaf reward_2"]
	if last.Title != "Reward, iteration 2" || last.A.N != 2 || last.B.Mean != 1001.5 || last.Difference.N != 2 ||
		last.Difference.Mean != last.B.Mean-last.A.Mean {
		t.Errorf("%+v", last)
	}
	if l := found["olaf arrived_2_pct"]; l.B.Mean != 70 || l.A.N != 0 {
		t.Errorf("of the last packet: %+v", l)
	}
	if l := found["fifo reward_2"]; l.A.N != 2 || l.B.N != 0 {
		t.Errorf("what is invalid was compared: %+v", l)
	}
	if said := strings.Join(d.Warnings, "; "); !strings.Contains(said, "excluded as invalid: 1 of 1 runs") {
		t.Error(said)
	}

	both := side("")
	if both.Name != f.ID() || len(both.Runs) != 7 || both.Runs[0].Queue != "olaf, simulated" ||
		both.Runs[4].Queue != "olaf, real packets" {
		t.Errorf("%s: %d runs, %+v", both.Name, len(both.Runs), both.Runs[0])
	}
	figure := DrawCurves(a, b)
	if len(figure.Panels) != 2 || len(figure.Panels[0].Series) != 2 || figure.Panels[0].Series[1].Name != "B: olaf, real packets" ||
		len(figure.Panels[1].Series) != 1 {
		t.Errorf("%+v", figure.Panels)
	}
	simulated := keep(t)
	for _, kind := range []string{Real, "unreal"} {
		if _, err := SideOf(simulated, kind); !errors.Is(err, ErrKind) ||
			!strings.Contains(err.Error(), "trainings are real or simulated") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
