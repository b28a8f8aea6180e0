package olaf

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

// TestFragmentsTearModels checks the ends of every curve: one frame is never torn and its age is that of a frame, and
// with few slots all updates in 64 frames are torn.
func TestFragmentsTearModels(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	report, err := runFragments(t.Context(), system.All(), experiments.Options{Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	panels := report.(*result.Result).Panels
	last := len(fragmentCounts) - 1
	for k, s := range panels[0].Series {
		whole, frame := panels[1].Series[k].Y, panels[2].Series[k].Y
		if s.Y[0].Mean != 0 || whole[0].Mean != frame[0].Mean {
			t.Errorf("%s: one frame is torn in %v %%, and its model %v µs old beside %v", s.Name, s.Y[0].Mean, whole[0].Mean,
				frame[0].Mean)
		}
		if whole[last].Mean < frame[last].Mean || s.Y[last].Mean == 0 {
			t.Errorf("%s in 64 frames: torn in %v %%, a model %v µs old beside frames of %v", s.Name, s.Y[last].Mean,
				whole[last].Mean, frame[last].Mean)
		}
	}
	if torn := panels[0].Series[1].Y[last].Mean; torn != 100 {
		t.Errorf("64 frames through 8 slots: %v %% torn, want all", torn)
	}
}

// TestFragmentsAreJudgedByTheRun checks with made-up curves that verdicts follow only from the run; nothing about the
// result is written down beforehand.
func TestFragmentsAreJudgedByTheRun(t *testing.T) {
	curve := func(first, rest float64) (s result.Series) {
		for i := range fragmentCounts {
			y := rest
			if i == 0 {
				y = first
			}
			s.Y = append(s.Y, result.Describe([]float64{y}))
		}
		return s
	}
	panel := func(place, all, fifo result.Series) result.Panel {
		return result.Panel{Series: []result.Series{place, all, fifo}}
	}
	run := func(torn, whole, lostAll float64) *result.Result {
		return &result.Result{Panels: []result.Panel{panel(curve(0, torn), curve(0, 100), curve(0, 90)),
			panel(curve(1, whole), curve(1, 1), curve(1, 1)), panel(curve(1, 1), curve(1, 1), curve(1, 1)),
			panel(curve(10, 5), curve(10, lostAll), curve(10, 10))}}
	}
	for _, c := range []struct {
		name   string
		of     *result.Result
		missed []int
	}{
		{"as expected", run(60, 2, 80), nil},
		{"few torn, models too old, few lost", run(20, 3, 40), []int{1, 2, 3}},
	} {
		for i, e := range judgeFragments(c.of) {
			if missed := slices.Contains(c.missed, i); e.cameOut == missed {
				t.Errorf("%s: %q came out: %t, want %t", c.name, e.what, e.cameOut, !missed)
			}
		}
	}
}
