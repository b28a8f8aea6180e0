package olaf

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
)

// tiny returns two schemes that train in a moment.
func tiny() []scheme {
	a := rl.Defaults()
	a.Workers, a.Iterations = 3, 2
	a.PPO.Steps, a.PPO.Epochs = 60, 1
	b := a
	b.Mode = rl.Sync
	return []scheme{{"async", a}, {"sync", b}}
}

// TestPartsEqualWholeFigure checks that a figure made from parts that ran elsewhere has the same training runs as one
// that runs them itself.
func TestPartsEqualWholeFigure(t *testing.T) {
	parts := trainings(func(*experiments.Options) []scheme { return tiny() }, 2, 1)
	list, err := parts.List(experiments.Options{})
	if err != nil || len(list) != 4 || list[3].Name != "sync, seed 2" {
		t.Fatal(list, err)
	}
	done := map[string]json.RawMessage{}
	for _, p := range list {
		if done[string(p.Spec)], err = parts.Do(t.Context(), p.Spec); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	o := experiments.Options{Done: func(spec json.RawMessage) (json.RawMessage, bool) { found++; r, ok := done[string(spec)]; return r, ok }}
	together, err := trainSchemes(t.Context(), &o, tiny(), 2, 1)
	if err != nil || found != 4 {
		t.Fatal(found, err)
	}
	alone, err := trainSchemes(t.Context(), &experiments.Options{}, tiny(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(alone, together); d != "" {
		t.Errorf("put together it differs: %s", d)
	}
}

func TestFinishedTrainingsAreKept(t *testing.T) {
	keep := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	o := experiments.Options{Trainings: keep, Progress: func(done, total int) {
		if steps = done; done > perTraining { // in the second training
			cancel()
		}
	}}
	partial, err := trainSchemes(ctx, &o, tiny(), 2, 1)
	if !errors.Is(err, context.Canceled) || len(partial) != 2 || partial[0][0] == nil || partial[1][1] != nil {
		t.Fatalf("interrupted: %v, error %v", partial, err)
	}
	kept, _ := filepath.Glob(filepath.Join(keep, "training-*.json"))
	if len(kept) != 1 {
		t.Fatalf("%d trainings are kept, want the one that finished", len(kept))
	}
	o.Progress = func(done, total int) {
		if steps = done; total != 4*perTraining {
			t.Errorf("%d of %d", done, total)
		}
	}
	resumed, err := trainSchemes(context.Background(), &o, tiny(), 2, 1)
	if err != nil || steps != 4*perTraining {
		t.Fatalf("error %v at step %d", err, steps)
	}
	fresh, err := trainSchemes(context.Background(), &experiments.Options{}, tiny(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fresh, resumed); d != "" {
		t.Errorf("resumed differs from fresh: %s", d)
	}
}

func TestDamagedKeptTrainingIsReported(t *testing.T) {
	keep := t.TempDir()
	c := tiny()[0].Config
	path, err := storedPath(keep, &c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"curves": [`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := trainAll(context.Background(), &experiments.Options{Trainings: keep}, []rl.Config{c}); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("error %v", err)
	}
}

func TestCurvesOverTimeEndWithTheirTraining(t *testing.T) {
	l := &learned{Curves: [][]rl.Point{{{AtNS: 10, Reward: 1}, {AtNS: 40, Reward: 3}}, {{AtNS: 20, Reward: 5}}}, EndNS: 40}
	s := overTime("a", []*learned{l, nil}, 4, 100, 1)
	if !s.Y[0].Known() || float64(s.Y[0].Mean) != 3 || float64(s.Y[1].Mean) != 3 || s.Y[2].Known() {
		t.Errorf("%+v", s.Y)
	}
	if s := overIterations("a", []*learned{l}, 1); len(s.Y) != 2 || float64(s.Y[0].Mean) != 3 || float64(s.Y[1].Mean) != 3 {
		t.Errorf("%+v", s.Y)
	}
}

func TestCrossing(t *testing.T) {
	if n, ok := crossing([]float64{-3, -1, 2, -1}, 0); n != 3 || !ok {
		t.Errorf("%d %v", n, ok)
	}
	if n, ok := crossing([]float64{-3, -1}, 0); n != 2 || ok {
		t.Errorf("%d %v", n, ok)
	}
}

// TestFilterOffReusesFig8 checks that the training runs without the filter are those of Fig. 8, so that finished ones
// are found again.
func TestFilterOffReusesFig8(t *testing.T) {
	fig8 := map[string]scheme{}
	for _, s := range Fig8() {
		fig8[s.Name] = s
	}
	all, n := filterSchemes(&experiments.Options{}), len(filterThresholds)
	for i, name := range []string{"olaf 20G", "olaf 40G"} {
		if d := cmp.Diff(fig8[name].Config, all[i*n].Config); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if on := all[1].Config.Network; !on.RewardFilter || on.RewardThreshold != 25 || on.Through("fifo").RewardFilter {
		t.Errorf("%+v; want a threshold of 25, and none through fifo", on)
	}
}

// TestSchemesOfTheFiguresAreValid checks that every scheme of the figures can train.
func TestSchemesOfTheFiguresAreValid(t *testing.T) {
	for _, schemes := range [][]scheme{Fig2(), Fig3(), Fig8(), filterSchemes(&experiments.Options{})} {
		for _, s := range schemes {
			if err := s.Config.Check(); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
}
