package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
)

// Alone is the specification of one of the systems of s at one output rate, which runs nothing else: under the same seeds it gives
// the numbers that this configuration has in s. What it leaves out decides nothing of these, so that equal configurations
// are equal specifications, wherever they come from.
func (s *Spec) Alone(name string, rate olaf.Rate) (Spec, error) {
	of, err := s.find(name)
	if err != nil {
		return Spec{}, err
	}
	if !slices.Contains(s.Queues(), name) {
		return Spec{}, fmt.Errorf("%w: %s is not among %v", ErrSpec, name, s.Queues())
	}
	one := *s
	one.Experiment, one.Runs, one.OutRates = DefaultSpec().Experiment, 1, []olaf.Rate{rate}
	if one.Queue, one.Versus = name, ""; name != s.Queue {
		one.DequeueCycles, one.MergeCycles = nil, nil // of the system under test alone
	}
	if !of.Adds() {
		one.H = nil
	}
	return one, nil
}

// Lot carries out n runs of a specification of one configuration on a twin of its own, from the run of the given number on: the
// same runs as in the whole experiment. A run that is not valid says so itself.
func Lot(ctx context.Context, s Spec, from, n int) (runs []results.Run, err error) {
	s.Runs = from + n
	plan, err := NewPlan(s)
	if err != nil {
		return nil, err
	}
	if len(plan.Configs) != 1 {
		return nil, fmt.Errorf("%w: %d configurations in what should be one", ErrSpec, len(plan.Configs))
	}
	plan.Seeds = plan.Seeds[from:]
	bed, err := testbed.Open(ctx, "", testbed.OpenOptions{Cards: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	outcome, err := Run(ctx, plan, bed, NewStream())
	if err != nil {
		return nil, err
	}
	runs = outcome.Runs[0]
	for i := range runs {
		runs[i].Index += from
	}
	return runs, nil
}
