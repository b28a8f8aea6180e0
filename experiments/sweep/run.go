package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/sweep"
)

// ErrGone reports that a worker ended without an answer. The job is given to another worker.
var ErrGone = olaf.NewError(olaf.Failed, "a worker ended without an answer")

// ErrTransport reports that jobs or results could not be transferred. It ends the sweep instead of becoming a cell's
// outcome.
var ErrTransport = olaf.NewError(olaf.Device, "the work queue failed")

// Worker carries out jobs, one at a time. An error that matches ErrGone means that the worker has ended. An error that
// matches ErrTransport means that the connection failed. Any other error belongs to the job.
type Worker interface {
	Name() string
	Do(ctx context.Context, j Job) (result json.RawMessage, err error)
	Close() error
}

// credited is implemented by workers that delegate their jobs. By returns the maker of the last result.
type credited interface{ By() store.Maker }

// Results stores the results of lots. *store.Singles implements it.
type Results interface {
	Get(key string) (one store.Single, ok bool, err error)
	Put(store.Single) error
}

// Engine carries out the jobs of a plan.
type Engine struct {
	Plan    *Plan
	Results Results
	Workers int
	Start   func(ctx context.Context) (Worker, error)
	Host    string
	Now     func() time.Time
	// Shard is the number of this share of the cells, from 0, out of Shards. If Shards is 0, the engine works on all
	// cells.
	Shard, Shards int

	mu       sync.Mutex
	waiting  sync.Cond
	cells    []cell
	queue    []unit // units without a worker
	inflight int
	stopped  bool
	progress Progress
	faults   map[unit]int // workers lost per unit
	differ   []string
	foreign  []remoteResult
}

// unit is one lot of one cell.
type unit struct{ cell, lot int }

// mostFaulty is the number of workers that a job may lose before it counts as failed.
const mostFaulty = 3

// cell is the state of one cell while the plan is carried out.
type cell struct {
	lots   []json.RawMessage // by number; nil if missing
	parsed []*sweep.Lot      // lots of a plan with a rule for enough runs
	want   int               // number of lots wanted
	looks  int
	width  float64
	failed string
}

func (c *cell) isComplete() bool {
	return !slices.ContainsFunc(c.lots[:c.want], func(lot json.RawMessage) bool { return lot == nil })
}

// Progress describes how much of a sweep is done.
type Progress struct {
	Cells, Done, Failed int // numbers of cells
	Lots, LotsDone      int // known to be needed, and available
	Found               int // lots from earlier work
	Working             map[string]string
	Unkept              string    // why results are only in memory; empty if all are stored
	Failures            []Failure // the first ones
}

// Failure is a cell that failed, with the error.
type Failure struct{ Cell, Error string }

// mostFailures is the maximum number of failures that are listed.
const mostFailures = 100

// Progress returns the current progress. It is safe for concurrent use.
func (e *Engine) Progress() Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.progress
	p.Working, p.Failures = maps.Clone(p.Working), slices.Clone(p.Failures)
	return p
}

// Run executes the jobs whose results are missing and returns the outcome of every cell, in the order of the sweep.
// After an error, including that of ctx, it returns the outcomes so far. Progress.Unkept is set if some outcomes could
// not be stored. differences describes results that differ from earlier ones; they do not end the sweep.
func (e *Engine) Run(ctx context.Context) (cells []sweep.Outcome, differences []string, err error) {
	e.waiting.L = &e.mu
	e.faults = map[unit]int{}
	if err := e.fillQueue(); err != nil {
		return nil, nil, err
	}
	if len(e.queue) > 0 {
		err = e.runWorkers(ctx)
	}
	return e.collectOutcomes(), e.differ, err
}

// FindStored returns the outcomes of all cells that are available in the store. It executes nothing.
func (e *Engine) FindStored() ([]sweep.Outcome, error) {
	e.waiting.L = &e.mu
	err := e.fillQueue()
	return e.collectOutcomes(), err
}

// fillQueue looks up the stored results and queues the lots that are missing.
func (e *Engine) fillQueue() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress = Progress{Cells: len(e.Plan.Cells), Working: map[string]string{}}
	e.cells = make([]cell, len(e.Plan.Cells))
	for i := range e.cells {
		c := &e.cells[i]
		c.lots, c.width = make([]json.RawMessage, e.Plan.MaxLots()), math.NaN()
		c.want = len(c.lots)
		if e.Plan.Enough != nil {
			c.parsed, c.want = make([]*sweep.Lot, len(c.lots)), 1
		}
		for lot := 0; lot < c.want; lot++ {
			one, ok, err := e.Results.Get(e.Plan.Job(i, lot).Key)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := e.recordResult(unit{i, lot}, one.Result); err != nil {
				return err
			}
			e.progress.Found++
			if one.By.Worker != "" {
				e.foreign = append(e.foreign, remoteResult{unit: unit{i, lot}, Single: one})
			}
		}
		for lot := range c.want {
			if !e.isMine(i) {
				continue
			}
			if e.progress.Lots++; c.lots[lot] != nil {
				e.progress.LotsDone++
			} else {
				e.queue = append(e.queue, unit{i, lot})
			}
		}
		if !e.isMine(i) {
			e.progress.Cells--
		} else if c.isComplete() {
			e.progress.Done++
		}
	}
	e.Plan.shuffleUnits(e.queue)
	return nil
}

// isMine reports whether a cell belongs to the share that this engine works on.
func (e *Engine) isMine(cell int) bool { return e.Shards == 0 || cell%e.Shards == e.Shard }

// recordResult stores a result in its cell and decides whether the cell needs more runs. It examines lots in the order
// of their seeds, not in the order of their arrival.
func (e *Engine) recordResult(u unit, result json.RawMessage) error {
	c := &e.cells[u.cell]
	c.lots[u.lot] = result
	if e.Plan.Enough == nil {
		return nil
	}
	var err error
	if c.parsed[u.lot], err = sweep.ParseLot(result); err != nil {
		return err
	}
	for c.looks < c.want && c.parsed[c.looks] != nil {
		c.looks++
		enough := false
		if enough, c.width = e.Plan.Enough.Decide(c.parsed[:c.looks], e.Plan.Metrics, c.looks); enough ||
			c.looks == len(c.lots) {
			break
		}
		c.want = max(c.want, c.looks+1)
	}
	return nil
}

// runWorkers runs the workers until no lot is left.
func (e *Engine) runWorkers(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, e.stop)
	defer stop()
	for range min(e.Workers, max(len(e.queue), 1)) {
		g.Go(func() error { return e.runWorker(ctx) })
	}
	return g.Wait()
}

// stop wakes up the workers that wait for a job, so that they end.
func (e *Engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	e.waiting.Broadcast()
}

// nextUnit returns the next lot and waits until there is one. ok is false if no lot is left.
func (e *Engine) nextUnit(worker string) (u unit, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.progress.Working, worker)
	for len(e.queue) == 0 && e.inflight > 0 && !e.stopped {
		e.waiting.Wait()
	}
	if len(e.queue) == 0 || e.stopped {
		return u, false
	}
	u, e.queue = e.queue[0], e.queue[1:]
	e.inflight++
	e.progress.Working[worker] = e.Plan.cellName(&e.Plan.Cells[u.cell])
	return u, true
}

// startWorker starts a worker. If the worker ends before it is ready, startWorker tries again, up to a limit.
func (e *Engine) startWorker(ctx context.Context) (w Worker, err error) {
	for range mostFaulty {
		if w, err = e.Start(ctx); !errors.Is(err, ErrGone) {
			return w, err
		}
	}
	return nil, err
}

// runWorker executes lots with one worker. It replaces a worker that ends.
func (e *Engine) runWorker(ctx context.Context) error {
	w, err := e.startWorker(ctx)
	if err != nil {
		return err
	}
	for {
		u, ok := e.nextUnit(w.Name())
		if !ok {
			return errors.Join(ctx.Err(), w.Close())
		}
		job := e.Plan.Job(u.cell, u.lot)
		begun := e.Now()
		result, err := w.Do(ctx, job)
		switch {
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), w.Close())
		case errors.Is(err, ErrGone):
			e.requeue(u, err)
			_ = w.Close() // the worker has ended
			if w, err = e.startWorker(ctx); err != nil {
				return err
			}
			continue
		case errors.Is(err, ErrTransport):
			return errors.Join(err, w.Close())
		case err != nil:
			e.failCell(u, err)
			continue
		}
		by := store.Maker{Host: e.Host, Build: e.Plan.Build.String(), Finished: e.Now().UTC().Format(time.RFC3339),
			Seconds: e.Now().Sub(begun).Seconds()}
		if other, ok := w.(credited); ok {
			by = other.By()
		}
		if err := e.storeResult(u, store.Single{Key: job.Key, Result: result, By: by}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
}

// requeue gives the lot of a lost worker to another worker. After several losses it marks the lot as failed.
func (e *Engine) requeue(u unit, err error) {
	e.mu.Lock()
	e.faults[u]++
	often := e.faults[u] >= mostFaulty
	if !often {
		e.queue = append(e.queue, u)
		e.inflight--
	}
	e.waiting.Broadcast()
	e.mu.Unlock()
	if often {
		e.failCell(u, fmt.Errorf("%d workers ended while running it: %w", mostFaulty, err))
	}
}

// failCell marks a cell as failed and drops the lots that it still has in the queue.
func (e *Engine) failCell(u unit, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inflight--
	if c := &e.cells[u.cell]; c.failed == "" {
		c.failed = err.Error()
		if e.progress.Failed++; e.progress.Failed <= mostFailures {
			e.progress.Failures = append(e.progress.Failures, Failure{e.Plan.cellName(&e.Plan.Cells[u.cell]), c.failed})
		}
	}
	before := len(e.queue)
	e.queue = slices.DeleteFunc(e.queue, func(other unit) bool { return other.cell == u.cell })
	e.progress.Lots -= before - len(e.queue) + 1
	e.waiting.Broadcast()
}

// storeResult stores a result. If it differs from an earlier result, the first one counts and the difference is
// reported. If the store cannot be written, a sweep continues in memory, but an engine that works on a share of a sweep
// stops.
func (e *Engine) storeResult(u unit, one store.Single) error {
	err := e.Results.Put(one)
	unkept := ""
	switch {
	case errors.Is(err, store.ErrConflict):
		first, ok, lost := e.Results.Get(one.Key)
		if lost != nil || !ok {
			return errors.Join(err, lost)
		}
		e.mu.Lock()
		e.differ = append(e.differ, fmt.Sprintf("%s: %v", e.Plan.cellName(&e.Plan.Cells[u.cell]), err))
		e.mu.Unlock()
		one = first
	case err != nil && e.Shards > 0: // the other shares read this one from the store
		return err
	case err != nil:
		unkept = err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress.Unkept = cmp.Or(e.progress.Unkept, unkept)
	defer e.waiting.Broadcast()
	e.inflight--
	if one.By.Worker != "" {
		e.foreign = append(e.foreign, remoteResult{unit: u, Single: one})
	}
	c := &e.cells[u.cell]
	wanted := c.want
	if err := e.recordResult(u, one.Result); err != nil {
		return err
	}
	e.progress.LotsDone++
	if c.failed != "" {
		return nil
	}
	for lot := wanted; lot < c.want; lot++ {
		// Put them first, so that the cell is finished soon.
		e.queue = slices.Insert(e.queue, 0, unit{u.cell, lot})
		e.progress.Lots++
	}
	if c.isComplete() {
		e.progress.Done++
	}
	return nil
}

// collectOutcomes returns the outcomes of the cells, in the order of the sweep.
func (e *Engine) collectOutcomes() []sweep.Outcome {
	out := make([]sweep.Outcome, len(e.cells))
	for i := range e.cells {
		c, planned := &e.cells[i], &e.Plan.Cells[i]
		o := sweep.Outcome{Parameters: planned.Values, At: planned.at, State: sweep.Pending, Error: c.failed,
			Looks: c.looks, HalfWidth: c.width}
		for lot := range c.want {
			if c.lots[lot] == nil {
				break // later lots depend on the order of work
			}
			o.Lots, o.Keys = append(o.Lots, c.lots[lot]), append(o.Keys, e.Plan.Job(i, lot).Key)
		}
		switch {
		case c.failed != "":
			o.State = sweep.Failed
		case c.isComplete():
			o.State = sweep.Done
		}
		out[i] = o
	}
	return out
}
