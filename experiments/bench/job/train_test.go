package job

import (
	"context"
	"math"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
)

func train(t *testing.T, name, mode string, loss float64, o system.Options) *Trained {
	t.Helper()
	s, err := system.All().Find(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Mode(mode)
	if err != nil {
		t.Fatal(err)
	}
	c := rl.Defaults()
	c.Workers, c.Iterations, c.PPO.Steps, c.PPO.Epochs = 3, 3, 60, 1
	spec := &Spec{System: s, Mode: m, Options: o}
	spec.Network.Link = closedloop.Link{Rate: 10 * olaf.Gbps, Overhead: 24, Loss: loss}
	out, err := Train(context.Background(), c, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Network.Hung {
		t.Fatalf("%s %s hung", name, mode)
	}
	return out
}

// TestSynchronousTrainingsAgree checks that synchronous training runs agree, however sums are made, except for the
// order of additions and the rounding of integers.
func TestSynchronousTrainingsAgree(t *testing.T) {
	first := train(t, "iswitch", "sync", 0, system.Options{})
	for name, other := range map[string]*Trained{
		"ps": train(t, "ps", "sync", 0, system.Options{}), "ring": train(t, "ring", "sync", 0, system.Options{}),
		"isw-x under loss":    train(t, "iswitch", "sync", 0.05, system.Options{Profile: "isw-x"}),
		"switchml":            train(t, "switchml", "sync", 0, system.Options{}),
		"switchml under loss": train(t, "switchml", "sync", 0.05, system.Options{Slots: 3}),
		"atp":                 train(t, "atp", "sync", 0, system.Options{}),
		"atp under loss":      train(t, "atp", "sync", 0.05, system.Options{Slots: 20, Window: 20}),
	} {
		if !other.Equal || !first.Equal {
			t.Errorf("%s: workers differ", name)
		}
		for i, w := range other.Weights {
			if d := math.Abs(float64(w - first.Weights[i])); d > 1e-4 {
				t.Fatalf("%s: weight %d is %g, by iSwitch %g", name, i, w, first.Weights[i])
			}
		}
	}
}

// TestAsynchronousWeightsAreEqual checks that every worker of asynchronous iSwitch ends with the same bits, without a
// server.
func TestAsynchronousWeightsAreEqual(t *testing.T) {
	out := train(t, "iswitch", "async", 0, system.Options{H: 2, Bound: 3})
	if !out.Equal || out.Network.Updates != 5 {
		t.Errorf("equal %v after %d updates, want 5", out.Equal, out.Network.Updates)
	}
}
