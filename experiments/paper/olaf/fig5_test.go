package olaf

import (
	"math"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/result"
)

// The run behind Fig. 5 has an update that replaces another, one that merges, and two of a cluster inside while one leaves; the
// age grows with slope 1 and falls to that of the newest part of what leaves.
func TestFig5HasAMergeAndAReplacement(t *testing.T) {
	report, err := runFig5(&experiments.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := report.(*result.Result)
	var steps []string
	for _, row := range r.Blocks[0].Rows {
		steps = append(steps, row.Name)
	}
	all := strings.Join(steps, "\n")
	for _, want := range []string{"worker 2 of cluster 0: replaced", "worker 1 of cluster 0: aggregated", "cluster 0 leaves with 2 updates"} {
		if !strings.Contains(all, want) {
			t.Errorf("no step is %q in:\n%s", want, all)
		}
	}
	curve := r.Panels[0].Series[0]
	for i := 2; i < len(curve.X); i += 2 { // the highest point of each tooth
		rise, run := float64(curve.Y[i-1].Mean-curve.Y[i-2].Mean), curve.X[i-1]-curve.X[i-2]
		if math.Abs(rise-run) > 2*fig5Fall {
			t.Errorf("from %v to %v us the age grows by %v", curve.X[i-2], curve.X[i-1], rise)
		}
	}
	for at, want := range map[int]float64{2: 3.4, 4: 3.5, 6: 2} {
		if got := float64(curve.Y[at].Mean); math.Abs(got-want) > 1e-9 {
			t.Errorf("the age falls to %v, want %v, that of the newest update inside", got, want)
		}
	}
}
