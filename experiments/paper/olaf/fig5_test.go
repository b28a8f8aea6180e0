package olaf

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/result"
)

// TestFig5HasAMergeAndAReplacement checks that the run behind Fig. 5 has an update that replaces another, one that
// merges, and two of a cluster inside while one leaves. The age must grow with slope 1 and fall to the age of the
// newest update in each leaving frame.
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
	curve := r.Panels[1].Series[0]
	for i := 2; i < len(curve.X); i += 2 { // the peak of each tooth
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

// TestFigs4And11FollowTheSteps checks the curves of the engine's state against what the steps did: two updates merged into one slot
// count twice (Fig. 4), and head and tail differ exactly while one update of the cluster leaves and another waits (Fig. 11).
func TestFigs4And11FollowTheSteps(t *testing.T) {
	report, err := runFig5(&experiments.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := report.(*result.Result)
	at := func(s result.Series, us float64) (y float64) {
		for i, x := range s.X {
			if x <= us {
				y = float64(s.Y[i].Mean)
			}
		}
		return y
	}
	inside, ends := r.Panels[0].Series, r.Panels[2].Series
	for _, c := range []struct{ us, updates0, updates1, head, tail float64 }{
		{0.5, 1, 0, 1, 1},  // the first update is on the wire
		{1.5, 1, 1, 1, 1},  // cluster 1's waits behind it
		{3, 1, 1, 3, 3},    // worker 2's second update has replaced its first
		{5.7, 2, 1, 3, 1},  // one of cluster 0 is on the wire, one waits
		{6.3, 1, 1, 1, 1},  // the first has left
		{6.7, 2, 1, 1, 1},  // worker 1's is merged into the slot
		{13.5, 0, 0, 0, 0}, // all have left
	} {
		got := []float64{at(inside[0], c.us), at(inside[1], c.us), at(ends[0], c.us), at(ends[1], c.us)}
		if want := []float64{c.updates0, c.updates1, c.head, c.tail}; !slices.Equal(got, want) {
			t.Errorf("at %v us updates by cluster, head and tail are %v, want %v", c.us, got, want)
		}
	}
}
