package cells

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
)

// Lots executes lots of runs on private twins. It reuses the twins, because opening one takes longer than a short run.
// All specifications must have the same systems. Lots is safe for concurrent use; concurrent lots use separate twins.
type Lots struct {
	mu   sync.Mutex
	free []*testbed.Testbed
}

// Run executes n runs of a specification that has one configuration, beginning with run number from. They are the same
// runs as in the whole experiment. An invalid run is marked as such.
func (l *Lots) Run(ctx context.Context, s bench.Spec, from, n int) (runs []results.Run, err error) {
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

func runLot(ctx context.Context, bed *testbed.Testbed, s bench.Spec, from, n int) (runs []results.Run, err error) {
	s.Runs = from + n
	plan, err := bench.NewPlan(s)
	if err != nil {
		return nil, err
	}
	if len(plan.Configs) != 1 {
		return nil, fmt.Errorf("%w: %d configurations in what should be one", bench.ErrSpec, len(plan.Configs))
	}
	plan.Seeds = plan.Seeds[from:]
	outcome, err := bench.RunPlan(ctx, plan, bed, bench.NewStream())
	if err != nil {
		return nil, err
	}
	runs = outcome.Runs[0]
	for i := range runs {
		runs[i].Index += from
	}
	return runs, nil
}

// takeTwin returns an idle twin with the given options, or opens one. If own is set, the twin cannot be used for other
// lots.
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
