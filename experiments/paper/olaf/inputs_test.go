package olaf

import (
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
)

// TestPredictionsDependOnInputs checks that every predicted number moves when an input of its experiment changes.
func TestPredictionsDependOnInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, e := range Experiments(system.All()).ShortOnes() {
		unmoved, err := e.FindUnmoved(t.Context(), experiments.Options{Quick: true, Runs: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range unmoved {
			t.Errorf("%s is predicted, but none of %v moves it: call it arithmetic or an input", id, e.Inputs)
		}
	}
}
