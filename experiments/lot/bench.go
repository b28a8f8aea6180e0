package lot

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results/sweep"
)

// Bench carries out runs from to from+n of a bench.Spec of one system at one output rate, on the twins that lots keeps.
func Bench(ctx context.Context, lots *bench.Lots, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	s, err := read[bench.Spec](spec)
	if err != nil {
		return nil, err
	}
	runs, err := lots.Run(ctx, s, from, n)
	if err != nil {
		return nil, err
	}
	lot := of(runs[0].Declared.Metrics)
	for i := range runs {
		r := &runs[i]
		one := sweep.Run{Seed: r.Seed, Invalid: strings.Join(r.Invalid, "; ")}
		for _, m := range r.Declared.Metrics {
			one.Values = append(one.Values, r.Value(m))
		}
		lot.Runs = append(lot.Runs, one)
	}
	return lot, nil
}
