package experiments

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
)

// share is a part of a bench that one machine can run alone. It contains every configuration for some of the seeds.
type share struct {
	Spec bench.Spec `json:"spec"` // specification of the whole bench
	From int        `json:"from"` // number of the first run
	Runs int        `json:"runs"`
}

// sharedRuns is the maximum number of seeds in a share.
const sharedRuns = 10

// divideShares divides a bench into shares, in the order of its seeds.
func divideShares(s *bench.Spec) (all []share) {
	for from := 0; from < s.Runs; from += sharedRuns {
		all = append(all, share{*s, from, min(sharedRuns, s.Runs-from)})
	}
	return all
}

// shared is the result of a share in its JSON form.
type shared struct {
	Device        fpga.Identity        `json:"device"`
	TablesHash    string               `json:"tables_hash"`
	P4InfoHash    string               `json:"p4info_hash"`
	Runs          [][]results.Run      `json:"runs"` // by configuration and seed
	Departures    trace.DepartureError `json:"departures"`
	DeparturesSum olaf.Duration        `json:"departures_sum"` // sum for the mean
}

// run runs the share on a new twin. If the share was read from JSON, the caller must set its systems first.
func (s *share) run(ctx context.Context) (*shared, error) {
	plan, err := bench.NewPlan(s.Spec)
	if err != nil {
		return nil, err
	}
	if s.From < 0 || s.Runs < 1 || s.From+s.Runs > len(plan.Seeds) {
		return nil, fmt.Errorf("%w: runs %d to %d of a bench of %d", bench.ErrSpec, s.From, s.From+s.Runs, len(plan.Seeds))
	}
	plan.Seeds = plan.Seeds[s.From:][:s.Runs]
	open := s.Spec.Opening(testbed.Access{})
	open.Cards = 1
	bed, err := testbed.OpenTestbed(ctx, "", open)
	if err != nil {
		return nil, err
	}
	out, err := bench.RunPlan(ctx, plan, bed, bench.NewStream())
	if err := errors.Join(err, bed.Close()); err != nil {
		return nil, err
	}
	for _, runs := range out.Runs {
		for i := range runs {
			runs[i].Index += s.From
		}
	}
	return &shared{out.Device, out.TablesHash, out.P4InfoHash, out.Runs, out.Departures, out.Departures.Sum}, nil
}

// combineShares combines the results of a bench's shares. The measurement is identical to the result of
// bench.MeasureSpec on a twin.
func combineShares(s *bench.Spec, parts []*shared, beside bench.PaperComparison) (*bench.Measurement, error) {
	plan, err := bench.NewPlan(*s)
	if err != nil {
		return nil, err
	}
	out := &bench.Outcome{Plan: plan, Runs: make([][]results.Run, len(plan.Configs))}
	for _, p := range parts {
		if len(p.Runs) != len(plan.Configs) {
			return nil, fmt.Errorf("%w: a share of another bench, of %d configurations and not %d", bench.ErrSpec,
				len(p.Runs), len(plan.Configs))
		}
		out.Device, out.TablesHash, out.P4InfoHash = p.Device, p.TablesHash, p.P4InfoHash
		p.Departures.Sum = p.DeparturesSum
		out.Departures.Merge(p.Departures)
		for i := range p.Runs {
			out.Runs[i] = append(out.Runs[i], p.Runs[i]...)
		}
	}
	for i := range out.Runs {
		declared := plan.Declaration(&plan.Configs[i])
		for k := range out.Runs[i] {
			out.Runs[i][k].Declare(declared)
		}
		out.Partial = out.Partial || len(out.Runs[i]) < len(plan.Seeds)
	}
	return bench.NewMeasurement(out, beside)
}
