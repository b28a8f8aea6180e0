package bench

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/raced"
	"github.com/olafctl/olaf/results"
)

// TestLotsAreTheWholeBench checks that a bench in parts, one configuration and a few runs at a time, gives the runs of
// the whole under every profile, with lots of different cards in turn.
func TestLotsAreTheWholeBench(t *testing.T) {
	raced.SkipRaced(t)
	var lots Lots // the same twin for all that can share one
	defer func() { must(t, lots.Close()) }()
	numbers := map[string]string{}
	for _, profile := range engine.ProfileNames() {
		s := usualSpec()
		s.Workload.UpdatesPerWorker, s.Runs, s.Slots = 20, 5, 4
		s.Profile = engine.Profile(profile)
		if s.Profile.ReadPorts() == 0 {
			cycles := 3
			s.DequeueCycles = &cycles // for the first system only
		}
		whole := mustBench(t, s, Options{})
		for i, rows := range whole.Outcome.Runs {
			c := &whole.Outcome.Plan.Configs[i]
			one, err := s.SingleConfig(c.Queue, c.OutRate)
			must(t, err)
			var parts []results.Run
			for from := 0; from < s.Runs; from += 2 {
				lot, err := lots.Run(t.Context(), one, from, min(2, s.Runs-from))
				must(t, err)
				parts = append(parts, lot...)
			}
			if why := results.Difference(rows, parts); why != "" {
				t.Errorf("%s, %s at %v: %s", profile, c.Queue, c.OutRate, why)
			}
			if i == 0 {
				raw, err := json.Marshal(rows)
				must(t, err)
				numbers[profile] = string(raw)
			}
		}
	}
	for one, a := range numbers {
		for other, b := range numbers {
			if one < other && a == b {
				t.Errorf("%s and %s have the same numbers: nothing is held", one, other)
			}
		}
	}
}

// TestAlone checks that settings that cannot affect a configuration are dropped, and that unknown systems are rejected.
func TestAlone(t *testing.T) {
	s := usualSpec()
	cycles := 3
	s.DequeueCycles = &cycles
	versus, err := s.SingleConfig(s.Versus, 5*olaf.Gbps)
	must(t, err)
	s.DequeueCycles, s.Runs = nil, 7
	if plain, err := s.SingleConfig(s.Versus, 5*olaf.Gbps); err != nil || results.Difference(plain, versus) != "" {
		t.Error(results.Difference(plain, versus), err)
	}
	if _, err := s.SingleConfig("nobody", olaf.Gbps); !errors.Is(err, ErrSpec) {
		t.Error(err)
	}
	s.Versus = ""
	if _, err := s.SingleConfig(usualSpec().Versus, olaf.Gbps); !errors.Is(err, ErrSpec) {
		t.Error(err)
	}
	if _, err := new(Lots).Run(t.Context(), usualSpec(), 0, 1); !errors.Is(err, ErrSpec) {
		t.Error(err)
	}
}

// BenchmarkTinyLots measures the cost of a sweep's cell beyond its updates: every lot has another specification.
func BenchmarkTinyLots(b *testing.B) {
	s := usualSpec()
	s.Workload.UpdatesPerWorker, s.Workload.Workers, s.Runs, s.Versus = 2, 9, 1, ""
	var lots Lots
	defer lots.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Slots = 2 + i%100
		one, err := s.SingleConfig(s.Queue, olaf.Rate(1+i%50)*olaf.Gbps)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := lots.Run(b.Context(), one, 0, 1); err != nil {
			b.Fatal(err)
		}
	}
}
