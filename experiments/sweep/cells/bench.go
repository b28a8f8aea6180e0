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

// readBench parses a specification and sets its systems.
func (c Carrier) readBench(spec json.RawMessage) (bench.Spec, error) {
	s, err := readSpec[bench.Spec](spec)
	s.Systems = c.Systems
	return s, err
}

// BenchPatience rejects a bench.Spec with closed-loop workers if a single run would take too long.
func (c Carrier) BenchPatience(spec json.RawMessage) error {
	s, err := c.readBench(spec)
	if err != nil {
		return err
	}
	s.Runs = 1
	return s.CheckPatience()
}

// cableLosses is a counter that only cards have, because the twins that run a cell's benches have no cable. It would be
// 0 in all their runs, and adding it would change the digests of all sweeps.
const cableLosses = "lost_on_cable"

// Bench executes the runs from to from+n of a bench.Spec that has one system and one output rate, on the twins in lots.
// The returned lot has all metrics of these runs. A counter that counted nothing is 0.
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
		return m.Name == cableLosses || m.Sparse && !runs[0].Value(m).Known()
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
