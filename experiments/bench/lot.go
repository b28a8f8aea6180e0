package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
)

// SingleConfig returns the specification of a single system from s at one output rate. With the same seeds it gives
// that configuration's numbers in s. It drops everything that cannot affect them, so that equal configurations have
// equal specifications.
func (s *Spec) SingleConfig(name string, rate olaf.Rate) (Spec, error) {
	of, err := s.findSystem(name)
	if err != nil {
		return Spec{}, err
	}
	if !slices.Contains(s.Queues(), name) {
		return Spec{}, fmt.Errorf("%w: %s is not among %v", ErrSpec, name, s.Queues())
	}
	if s.Topology == ToBoth {
		return Spec{}, olaf.InField("topology",
			fmt.Errorf("%w: a cell has one topology; ask for %s or %s", ErrSpec, ToServer, ToWorkers))
	}
	one := *s
	one.Experiment, one.Runs, one.OutRates = benchName, 1, []olaf.Rate{rate}
	if one.Queue, one.Versus = name, ""; name != s.Queue {
		one.DequeueCycles, one.MergeCycles = nil, nil // only for the system under test
	}
	if !of.Adds() {
		one.H = nil
	}
	if !filtersReward(of) {
		one.RewardFilter, one.RewardThreshold = false, 0
	}
	return one, nil
}

// Lots executes lots of runs on private twins, which it reuses, because opening one takes longer than a short run. All
// specifications must have the same systems. It is safe for concurrent use; concurrent lots use separate twins.
type Lots struct {
	mu   sync.Mutex
	free []*testbed.Testbed
}

// Run executes a specification with one configuration n times, starting with run number from: the same runs as in the
// whole experiment. An invalid run is marked as such.
func (l *Lots) Run(ctx context.Context, s Spec, from, n int) (runs []results.Run, err error) {
	o := s.Opening(testbed.Access{})
	o.Cards = 1
	own := o.ReadPorts != 0 || o.Unit != nil // not usable for other lots
	bed, err := l.takeTwin(ctx, o, own)
	if err != nil {
		return nil, err
	}
	runs, err = runLot(ctx, bed, s, from, n)
	if err != nil || own { // its state is unknown
		return runs, errors.Join(err, bed.Close())
	}
	l.returnTwin(bed)
	return runs, nil
}

func runLot(ctx context.Context, bed *testbed.Testbed, s Spec, from, n int) (runs []results.Run, err error) {
	s.Runs = from + n
	plan, err := NewPlan(s)
	if err != nil {
		return nil, err
	}
	if len(plan.Configs) != 1 {
		return nil, fmt.Errorf("%w: %d configurations in what should be one", ErrSpec, len(plan.Configs))
	}
	plan.Seeds = plan.Seeds[from:]
	outcome, err := RunPlan(ctx, plan, bed, NewStream())
	if err != nil {
		return nil, err
	}
	runs = outcome.Runs[0]
	for i := range runs {
		runs[i].Index += from
	}
	return runs, nil
}

// takeTwin returns an idle twin.
func (l *Lots) takeTwin(ctx context.Context, o testbed.OpenOptions, own bool) (*testbed.Testbed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 && !own {
		bed := l.free[last]
		l.free = l.free[:last]
		return bed, nil
	}
	return testbed.OpenTestbed(ctx, "", o)
}

func (l *Lots) returnTwin(bed *testbed.Testbed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, bed)
}

// Close closes the idle twins.
func (l *Lots) Close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, bed := range l.free {
		err = errors.Join(err, bed.Close())
	}
	l.free = nil
	return err
}
