package olaf

import (
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/result"
)

// TestTornModelsAreCounted checks with short training runs, with models in 1 to 64 frames, that one frame is never
// torn, that several are, and that the curves have a reward for each number of frames.
func TestTornModelsAreCounted(t *testing.T) {
	report, err := runTornTraining(t.Context(), experiments.Options{Runs: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	panels := report.(*result.Result).Panels
	for k, queue := range tornQueues {
		for i, frames := range tornFrames {
			reward, torn := panels[0].Series[k].Y[i].Mean, panels[2].Series[k].Y[i].Mean
			if reward == 0 || (torn > 0) != (frames > 1) || torn > 100 {
				t.Errorf("%s in %d frames: reward %v, and %v %% of the models torn", queue, frames, reward, torn)
			}
		}
	}
}

// TestFewSeedsDecideNothing checks the verdicts on curves with 2 seeds, whose intervals overlap although every mean is
// as expected, and with 20 seeds with the same spread, whose intervals do not overlap.
func TestFewSeedsDecideNothing(t *testing.T) {
	for seeds, want := range map[int]string{1: undecided, 2: undecided, 20: cameOut} {
		spread := func(mean float64) (values []float64) {
			for i := range seeds {
				values = append(values, mean+float64(8*(i%2)-4))
			}
			return values
		}
		curve := func(means ...float64) (s result.Series) {
			for _, mean := range means {
				s.Y = append(s.Y, result.Describe(spread(mean)))
			}
			return s
		}
		f := &result.Result{Panels: []result.Panel{
			{Series: []result.Series{curve(60, 60, 60, 60), curve(50, 50, 50, 50)}},
			{Series: []result.Series{curve(100, 100, 100, 100)}},
			{Series: []result.Series{curve(0, 60, 60, 60), curve(0, 90, 90, 90)}},
		}}
		for _, k := range []int{0, 1} {
			f.Panels[2].Series[k].Y[0] = result.Describe(make([]float64, seeds)) // a model of one frame is never torn
		}
		lines := judgeTorn(f)
		if slices.ContainsFunc(lines, func(line string) bool { return !strings.HasPrefix(line, want+": ") }) {
			t.Errorf("%d seeds give\n%s\nwant each to begin with %q", seeds, strings.Join(lines, "\n"), want)
		}
	}
}
