package cells

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/test/raced"
	"github.com/olafctl/olaf/results"
)

// TestLotsEqualWholeBench checks that a bench in parts, one configuration and a few runs at a time, gives the runs of
// the whole under every profile, with lots of different cards in turn.
func TestLotsEqualWholeBench(t *testing.T) {
	raced.SkipRaced(t)
	var lots Lots // profiles that can share a twin use the same one
	defer func() { must(t, lots.Close()) }()
	numbers := map[string]string{}
	for _, profile := range engine.ProfileNames() {
		s := bench.DefaultSpec(system.All())
		s.Workload.UpdatesPerWorker, s.Runs, s.Slots = 20, 5, 4
		s.Profile = engine.Profile(profile)
		if s.Profile.ReadPorts() == 0 {
			cycles := 3
			s.DequeueCycles = &cycles // applies to the first system only
		}
		whole, err := bench.MeasureSpec(t.Context(), s, bench.Options{})
		must(t, err)
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
	if _, err := lots.Run(t.Context(), bench.DefaultSpec(system.All()), 0, 1); !errors.Is(err, bench.ErrSpec) {
		t.Errorf("a lot of two configurations gave %v, want ErrSpec", err)
	}
	for one, a := range numbers {
		for other, b := range numbers {
			if one < other && a == b {
				t.Errorf("%s and %s have the same numbers: nothing is held", one, other)
			}
		}
	}
}

// BenchmarkTinyLots measures the cost of a sweep's cell beyond its updates: every lot has another specification.
func BenchmarkTinyLots(b *testing.B) {
	s := bench.DefaultSpec(system.All())
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

// TestLotsHaveCountsOfZero checks that lots of one kind of cell have the same metrics: a counter that counted nothing is
// 0 in them, so that means over several lots, and comparisons between cells, include it. Only the losses on a cable
// are left out, because the twins of lots have none.
func TestLotsHaveCountsOfZero(t *testing.T) {
	carrier, lots := Carrier{Systems: system.All()}, new(Lots)
	defer func() { must(t, lots.Close()) }()
	loop := bench.DefaultSpec(carrier.Systems)
	loop.Queue, loop.Versus = "switchml", ""
	loop.MakeLoop(func(string) bool { return false }, false)
	loop.Loop.Values = 2000
	open := bench.DefaultSpec(carrier.Systems)
	for counter, s := range map[string]bench.Spec{"frames_lost": loop, "tc_withheld": open} {
		s.Workload.UpdatesPerWorker = 4
		one, err := s.SingleConfig(s.Queue, s.OutRates[0])
		must(t, err)
		spec, err := json.Marshal(one)
		must(t, err)
		lot, err := carrier.Bench(t.Context(), lots, spec, 0, 2)
		must(t, err)
		if got := lot.Of(counter); got[0] != 0 || got[1] != 0 {
			t.Errorf("%s in two runs without any is %v, want 0 and 0", counter, got)
		}
		if slices.Contains(lot.Metrics, cableLosses) {
			t.Errorf("a lot of %s has %s, which would change the digests of all sweeps", s.Queue, cableLosses)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
