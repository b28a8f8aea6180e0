package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// SimulateOptions are the sides of a Simulation that do not change its numbers.
type SimulateOptions struct {
	// Stream hears of everything; nil for nobody. Without a sink nobody can use the Collector's metrics, so that runs are
	// only accounted for: Simulated.Runs then hold counters, and a simulation costs no more than its Results.
	Stream *Stream
	// First belongs to the first network under the first seed. Where it has a watcher, that one ends the run and
	// not the context, and the run comes on top of those that fill the cores.
	First netsim.Options
	// Failed is told of the first run that fails, beside which one that is watched still goes on; nil for nobody.
	Failed func(error)
	// Metrics has all runs measured, also where no sink of the stream takes what is measured.
	Metrics bool
	// run simulates one; nil for netsim.Run.
	run func(context.Context, *netsim.Topology, netsim.Options) (*netsim.Result, error)
}

// Simulate carries s out side by side on all cores and publishes what happens; what comes back is the same whatever their
// number. When ctx ends, the seeds that every network finished come back beside its error.
func Simulate(ctx context.Context, s *Simulation, o SimulateOptions) (*Simulated, error) {
	outline, err := s.Outline()
	if err != nil {
		return nil, err
	}
	if o.Stream == nil {
		o.Stream = NewStream()
	}
	if o.run == nil {
		o.run = netsim.Run
	}
	if err := o.Stream.publish(Started{Work: s}); err != nil {
		return nil, err
	}
	r := &simulator{Simulation: s, SimulateOptions: o, outline: outline, done: make([]finished, s.Runs())}
	err = r.all(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	out := r.collect()
	return out, errors.Join(err, o.Stream.publish(Finished{err, out.Partial}))
}

// simulator hands runs to cores, seed by seed.
type simulator struct {
	*Simulation
	SimulateOptions
	outline *Outline
	next    atomic.Int64
	done    []finished // by ordinal
	stopped *netsim.Result
}

// finished is what came of one run.
type finished struct {
	there  bool
	run    results.Run
	result *netsim.Result // nil of an invalid run
}

func (r *simulator) all(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var once sync.Once
	work := func(do func(context.Context) error) {
		g.Go(func() error {
			err := do(ctx)
			if err != nil && r.Failed != nil && ctx.Err() == nil {
				once.Do(func() { r.Failed(err) })
			}
			return err
		})
	}
	if r.First.Watcher != nil {
		r.next.Store(1)
		// Its watcher ends this run, so that what was done can be measured; the context would throw it away.
		work(func(ctx context.Context) error {
			return r.one(context.WithoutCancel(ctx), results.NewCollector(results.Config{}), 0)
		})
	}
	for range runtime.GOMAXPROCS(0) {
		work(r.many)
	}
	return g.Wait()
}

// many simulates what is left, on one core.
func (r *simulator) many(ctx context.Context) error {
	c := results.NewCollector(results.Config{})
	for {
		ordinal := int(r.next.Add(1)) - 1
		if ordinal >= r.Runs() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.one(ctx, c, ordinal); err != nil {
			return err
		}
	}
}

// one is one run from its first event to its account.
func (r *simulator) one(ctx context.Context, c *results.Collector, ordinal int) error {
	id := RunID{Config: ordinal % len(r.Networks), Index: ordinal / len(r.Networks)}
	network, seed := &r.Networks[id.Config], r.Seeds[id.Index]
	if err := r.Stream.publish(RunStarted{id}); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := *network.Topology
	t.Seed = seed
	var opt netsim.Options
	if ordinal == 0 {
		opt = r.First
	}
	tap := r.tap(id, c, opt.Observer, stop)
	if tap != nil {
		opt.Observer = tap
	}
	result, err := r.run(ctx, &t, opt)
	if tap != nil {
		err = errors.Join(err, tap.flush())
	}
	switch broken := errors.Is(err, netsim.ErrAccounting); {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !broken:
		return fmt.Errorf("%s: seed %d: %w", network.Name, seed, err)
	case !broken && result.Time != t.Warmup+t.Duration:
		r.stopped = result
		return nil
	}
	done := &r.done[ordinal]
	done.run, done.result = r.account(c, result, err), result
	done.run.Queue, done.run.OutRateBPS = network.Name, int64(r.outline.Configurations[id.Config].Measure.OutRate)
	done.run.Index, done.run.Seed = id.Index, seed
	if !done.run.Valid() {
		done.result = nil
	}
	if err := r.Stream.publish(RunDone{id, &done.run}); err != nil {
		return err
	}
	done.there = true
	return nil
}

// measures says whether anybody takes the metrics of runs.
func (r *simulator) measures() bool { return r.Metrics || r.Stream.lossless() }

// account measures a run by what the tap saw, or, where nobody wants its metrics, only says whether it is valid.
func (r *simulator) account(c *results.Collector, result *netsim.Result, broken error) (run results.Run) {
	totals := olaf.NewCounts(system.Networked().Ledger)
	if broken == nil {
		totals = result.Totals.Clone()
	}
	if r.measures() {
		totals.Add("received", c.ObservedCount()-totals.Of("received"))
		run = c.Finish(totals)
	} else {
		run.Counters = totals
		if err := totals.Check(); err != nil {
			run.Invalid = []string{err.Error()}
		}
	}
	if broken != nil {
		run.Invalid = []string{broken.Error()} // nothing else that is wrong says more
	}
	return run
}

// collect sorts the seeds that every network finished by network.
func (r *simulator) collect() *Simulated {
	n := len(r.Networks)
	out := &Simulated{Simulation: r.Simulation, Stopped: r.stopped, Runs: make([][]results.Run, n), Results: make([][]*netsim.Result, n)}
	for seed := range r.Seeds {
		of := r.done[seed*n : (seed+1)*n]
		whole := true
		for i := range of {
			whole = whole && of[i].there
		}
		if !whole {
			out.Partial = true
			continue
		}
		for i := range of {
			out.Runs[i] = append(out.Runs[i], of[i].run)
			if of[i].result != nil {
				out.Results[i] = append(out.Results[i], of[i].result)
			}
		}
	}
	return out
}

// tapBatch is how many frames a tap gathers before it publishes them.
const tapBatch = 1024

// tap takes the deliveries of one run to its Collector, to the stream, and to another observer.
type tap struct {
	collector *results.Collector
	other     netsim.Observer // nil for none
	stream    *Stream         // nil where nobody wants the frames
	id        RunID
	stop      context.CancelCauseFunc
	err       error

	frames []olaf.Observation
	inside []olaf.Contributor // of all frames, one after the other
}

// tap is nil where nobody listens.
func (r *simulator) tap(id RunID, c *results.Collector, other netsim.Observer, stop context.CancelCauseFunc) *tap {
	if !r.measures() {
		if other == nil {
			return nil
		}
		return &tap{other: other}
	}
	c.Reset(r.outline.Configurations[id.Config].Measure)
	t := &tap{collector: c, other: other, id: id, stop: stop}
	if r.Stream.wants(id) {
		t.stream, t.frames = r.Stream, make([]olaf.Observation, 0, tapBatch)
	}
	return t
}

// Deliver implements netsim.Observer.
func (t *tap) Deliver(server, worker int, o *olaf.Observation) {
	if t.other != nil {
		t.other.Deliver(server, worker, o)
	}
	if t.collector == nil {
		return
	}
	t.collector.Observe(o)
	if t.stream == nil {
		return
	}
	seen := *o
	// The list is the simulator's own; growing inside leaves earlier frames with the memory that they have.
	from := len(t.inside)
	if seen.Contributors != nil {
		t.inside = append(t.inside, seen.Contributors...)
		seen.Contributors = t.inside[from:len(t.inside):len(t.inside)]
	}
	if t.frames = append(t.frames, seen); len(t.frames) == tapBatch {
		if err := t.flush(); err != nil {
			t.stop(err)
		}
	}
}

// flush publishes what was gathered. After an error nothing more is published.
func (t *tap) flush() error {
	if t.stream == nil || t.err != nil || len(t.frames) == 0 {
		return t.err
	}
	t.err = t.stream.publish(Observed{t.id, t.frames})
	t.frames, t.inside = t.frames[:0], t.inside[:0]
	return t.err
}
