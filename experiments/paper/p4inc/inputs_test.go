package p4inc

import (
	"flag"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sched/policy"
)

var campaign = flag.Bool("campaign", false, "change the inputs of the simulations too, which takes minutes")

// TestPredictionsDependOnInputs checks that every predicted number moves when an input of its experiment changes. A
// number that is 0 for one seed may not be 0 for ten, so all seeds are planned.
func TestPredictionsDependOnInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, e := range with(func(string) (policy.Solver, error) { return nil, policy.ErrAbsent }) {
		if simulates := e.Name > "p4inc/fig1" && e.Name < "p4inc/fig2" || e.Name == "p4inc/fig8"; simulates && !*campaign {
			continue
		}
		unmoved, err := e.FindUnmoved(t.Context(), experiments.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range unmoved {
			t.Errorf("%s is predicted, but none of %v moves it: call it arithmetic or an input", id, e.Inputs)
		}
	}
}
