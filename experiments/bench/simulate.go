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

// SimulateOptions contains settings of a Simulation that do not change its numbers.
type SimulateOptions struct {
	// Stream receives all events; it may be nil. Without a sink the Collector's metrics are not needed, so
	// Simulated.Runs contains counters only, and a simulation costs no more than its Results.
	Stream *Stream
	// First contains options for the first network under the first seed. If it has a watcher, the watcher ends that
	// run, not the context, and the run is additional to one per core.
	First netsim.Options
	// Failed, if set, is called with the first error of a run, while a watched run may still continue.
	Failed func(error)
	// Metrics measures all runs even if no sink needs the measurements.
	Metrics bool
	// run simulates one run; nil for netsim.Run.
	run func(context.Context, *netsim.Topology, netsim.Options) (*netsim.Result, error)
}

// SimulateAll carries out s in parallel on all cores and publishes events; the result does not depend on their number. If
// ctx ends, it returns the seeds that every network finished, and ctx's error.
func SimulateAll(ctx context.Context, s *Simulation, o SimulateOptions) (*Simulated, error) {
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
	if err := o.Stream.publishEvent(Started{Work: s}); err != nil {
		return nil, err
	}
	r := &simulator{Simulation: s, SimulateOptions: o, outline: outline, done: make([]finished, s.RunCount())}
	err = r.runNetworks(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	out := r.collectSeeds()
	return out, errors.Join(err, o.Stream.publishEvent(Finished{err, out.Partial}))
}

// simulator distributes runs to cores, seed by seed.
type simulator struct {
	*Simulation
	SimulateOptions
	outline *Outline
	next    atomic.Int64
	done    []finished // by ordinal
	stopped *netsim.Result
}

// finished is the result of one run.
type finished struct {
	there  bool
	run    results.Run
	result *netsim.Result // nil for an invalid run
}

func (r *simulator) runNetworks(ctx context.Context) error {
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
		// The watcher ends this run, so that it can be measured; the context would discard it.
		work(func(ctx context.Context) error {
			return r.runNetwork(context.WithoutCancel(ctx), results.NewCollector(results.Config{}), 0)
		})
	}
	for range runtime.GOMAXPROCS(0) {
		work(r.runRemaining)
	}
	return g.Wait()
}

// runRemaining simulates the remaining runs, on one core.
func (r *simulator) runRemaining(ctx context.Context) error {
	c := results.NewCollector(results.Config{})
	for {
		ordinal := int(r.next.Add(1)) - 1
		if ordinal >= r.RunCount() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.runNetwork(ctx, c, ordinal); err != nil {
			return err
		}
	}
}

// runNetwork simulates and accounts for one run.
func (r *simulator) runNetwork(ctx context.Context, c *results.Collector, ordinal int) error {
	id := RunID{Config: ordinal % len(r.Networks), Index: ordinal / len(r.Networks)}
	network, seed := &r.Networks[id.Config], r.Seeds[id.Index]
	if err := r.Stream.publishEvent(RunStarted{id}); err != nil {
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
	tap := r.newTap(id, c, opt.Observer, stop)
	if tap != nil {
		opt.Observer = tap
	}
	result, err := r.run(ctx, &t, opt)
	if tap != nil {
		err = errors.Join(err, tap.publishBatch())
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
	done.run, done.result = r.accountRun(c, result, err), result
	done.run.Queue, done.run.OutRateBPS = network.Name, int64(r.outline.Configurations[id.Config].Measure.OutRate)
	done.run.Index, done.run.Seed = id.Index, seed
	if !done.run.Valid() {
		done.result = nil
	}
	if err := r.Stream.publishEvent(RunDone{id, &done.run}); err != nil {
		return err
	}
	done.there = true
	return nil
}

// needsMetrics reports whether the metrics of runs are needed.
func (r *simulator) needsMetrics() bool { return r.Metrics || r.Stream.hasSinks() }

// accountRun measures a run from what the tap observed or, if its metrics are not needed, only checks its validity.
func (r *simulator) accountRun(c *results.Collector, result *netsim.Result, broken error) (run results.Run) {
	totals := olaf.NewCounts(system.NetworkDeclaration().Ledger)
	if broken == nil {
		totals = result.Totals.Clone()
	}
	if r.needsMetrics() {
		totals.Add("received", c.ObservedCount()-totals.Of("received"))
		run = c.Finish(totals)
	} else {
		run.Counters = totals
		if err := totals.Check(); err != nil {
			run.Invalid = []string{err.Error()}
		}
	}
	if broken != nil {
		run.Invalid = []string{broken.Error()} // other errors only follow from this one
	}
	return run
}

// collectSeeds sorts the seeds that every network finished by network.
func (r *simulator) collectSeeds() *Simulated {
	n := len(r.Networks)
	out := &Simulated{Simulation: r.Simulation, Stopped: r.stopped, Runs: make([][]results.Run, n),
		Results: make([][]*netsim.Result, n)}
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

// tapBatch is the number of frames that a tap publishes together.
const tapBatch = 1024

// tap passes the deliveries of one run to its Collector, to the stream, and to another observer.
type tap struct {
	collector *results.Collector
	other     netsim.Observer // may be nil
	stream    *Stream         // nil if the frames are not needed
	id        RunID
	stop      context.CancelCauseFunc
	err       error

	frames []olaf.Observation
	inside []olaf.Contributor // of all frames, concatenated
}

// newTap returns nil if there are no listeners.
func (r *simulator) newTap(id RunID, c *results.Collector, other netsim.Observer, stop context.CancelCauseFunc) *tap {
	if !r.needsMetrics() {
		if other == nil {
			return nil
		}
		return &tap{other: other}
	}
	c.Reset(r.outline.Configurations[id.Config].Measure)
	t := &tap{collector: c, other: other, id: id, stop: stop}
	if r.Stream.wantsRun(id) {
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
	// The simulator reuses the list. When inside grows, earlier frames keep their old memory.
	from := len(t.inside)
	if seen.Contributors != nil {
		t.inside = append(t.inside, seen.Contributors...)
		seen.Contributors = t.inside[from:len(t.inside):len(t.inside)]
	}
	if t.frames = append(t.frames, seen); len(t.frames) == tapBatch {
		if err := t.publishBatch(); err != nil {
			t.stop(err)
		}
	}
}

// publishBatch publishes the collected frames. After an error it publishes nothing more.
func (t *tap) publishBatch() error {
	if t.stream == nil || t.err != nil || len(t.frames) == 0 {
		return t.err
	}
	t.err = t.stream.publishEvent(Observed{t.id, t.frames})
	t.frames, t.inside = t.frames[:0], t.inside[:0]
	return t.err
}
