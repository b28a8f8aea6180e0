package cells

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// readBench is read of a specification that is handed the systems.
func (c Carrier) readBench(spec json.RawMessage) (bench.Spec, error) {
	s, err := read[bench.Spec](spec)
	s.Systems = c.Systems
	return s, err
}

// BenchPatience refuses a bench.Spec of workers that wait of which a single run would take long.
func (c Carrier) BenchPatience(spec json.RawMessage) error {
	s, err := c.readBench(spec)
	if err != nil {
		return err
	}
	s.Runs = 1
	return s.Patience()
}

// Bench carries out runs from to from+n of a bench.Spec of one system at one output rate, on the twins that lots keeps.
func (c Carrier) Bench(ctx context.Context, lots *bench.Lots, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	s, err := c.readBench(spec)
	if err != nil {
		return nil, err
	}
	runs, err := lots.Run(ctx, s, from, n)
	if err != nil {
		return nil, err
	}
	have := slices.DeleteFunc(slices.Clone(runs[0].Declared.Metrics), func(m *metric.Metric) bool {
		return m.Sparse && !runs[0].Value(m).Known() // not to be had of such runs
	})
	lot := of(have)
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
