package cells

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// readBench parses a specification and adds the systems to it.
func (c Carrier) readBench(spec json.RawMessage) (bench.Spec, error) {
	s, err := readSpec[bench.Spec](spec)
	s.Systems = c.Systems
	return s, err
}

// BenchPatience rejects a bench.Spec of closed-loop workers if a single run would take long.
func (c Carrier) BenchPatience(spec json.RawMessage) error {
	s, err := c.readBench(spec)
	if err != nil {
		return err
	}
	s.Runs = 1
	return s.CheckPatience()
}

// Bench executes runs from to from+n of a bench.Spec with one system and one output rate, on the twins in lots.
func (c Carrier) Bench(ctx context.Context, lots *Lots, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	s, err := c.readBench(spec)
	if err != nil {
		return nil, err
	}
	runs, err := lots.Run(ctx, s, from, n)
	if err != nil {
		return nil, err
	}
	have := slices.DeleteFunc(slices.Clone(runs[0].Declared.Metrics), func(m *metric.Metric) bool {
		return m.Sparse && !hasValue(runs, m)
	})
	lot := newLot(have)
	for i := range runs {
		r := &runs[i]
		one := sweep.Run{Seed: r.Seed, Invalid: strings.Join(r.Invalid, "; ")}
		for _, m := range have {
			one.Values = append(one.Values, r.Value(m))
		}
		lot.Runs = append(lot.Runs, one)
	}
	return lot, nil
}

// hasValue reports whether a sparse metric belongs into a lot: a run has a value other than 0, or it is tc_withheld, which
// is in every lot whose runs have it, and so in the digests of sweeps.
func hasValue(runs []results.Run, m *metric.Metric) bool {
	return slices.ContainsFunc(runs, func(r results.Run) bool {
		v := r.Value(m)
		return v.Known() && (v != 0 || m.Name == "tc_withheld")
	})
}
