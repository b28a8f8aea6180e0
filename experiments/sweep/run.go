package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/sweep"
)

// ErrGone says that a worker ended without an answer. Its job is given to another one.
var ErrGone = olaf.NewError(olaf.Failed, "a worker is gone")

// ErrTransport says that jobs or results could not be passed on. It ends the sweep and is no outcome of a cell.
var ErrTransport = olaf.NewError(olaf.Device, "the work queue failed")

// Worker carries out jobs, one at a time. An error that matches ErrGone is of the worker, one that matches ErrTransport is
// of the way to it, any other is of the job.
type Worker interface {
	Name() string
	Do(ctx context.Context, j Job) (result json.RawMessage, err error)
	Close() error
}

// credited is a Worker that lets others do its jobs and names the maker of its last result.
type credited interface{ By() store.Maker }

// Results are where results are kept; *store.Singles is one.
type Results interface {
	Get(key string) (one store.Single, ok bool, err error)
	Put(store.Single) error
}

// Engine carries a plan out.
type Engine struct {
	Plan    *Plan
	Results Results
	Workers int
	Start   func(ctx context.Context) (Worker, error)
	Host    string
	Now     func() time.Time
	// Shard is which of Shards shares of the cells is worked on, from 0; with 0 Shards all of them are.
	Shard, Shards int

	mu       sync.Mutex
	waiting  sync.Cond
	cells    []cell
	queue    []unit // that nobody works on
	inflight int
	stopped  bool
	progress Progress
	faults   map[unit]int // how often its worker ended
	differ   []string
	foreign  []taken
}

// unit is one lot of one cell.
type unit struct{ cell, lot int }

// mostFaulty is how often a job may take its worker with it before it counts as failed.
const mostFaulty = 3

// cell is how far a cell is.
type cell struct {
	lots   []json.RawMessage // by number; nil of those that are not there
	parsed []*sweep.Lot      // of a plan that decides how many are enough
	want   int               // lots
	looks  int
	width  float64
	failed string
}

func (c *cell) done() bool {
	for i := range c.want {
		if c.lots[i] == nil {
			return false
		}
	}
	return true
}

// Progress is how far a sweep is.
type Progress struct {
	Cells, Done, Failed int // cells
	Lots, LotsDone      int // that are known to be needed, and are there
	Found               int // lots that were there before
	Working             map[string]string
	Failures            []Failure // the first of them
}

// Failure is a cell that failed, and why.
type Failure struct{ Cell, Error string }

// mostFailures is how many are told of.
const mostFailures = 100

// Progress is the newest state; it is safe at any time.
func (e *Engine) Progress() Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.progress
	p.Working = make(map[string]string, len(e.progress.Working))
	for name, on := range e.progress.Working {
		p.Working[name] = on
	}
	p.Failures = slices.Clone(p.Failures)
	return p
}

// Run carries out what is not there yet, and returns what there is of every cell, in the order of the sweep. After an error, that
// of ctx included, that is what there was until then; all of it is stored. Results that came out otherwise before are told by
// differences, and do not end the sweep.
func (e *Engine) Run(ctx context.Context) (cells []sweep.Outcome, differences []string, err error) {
	e.waiting.L = &e.mu
	e.faults = map[unit]int{}
	if err := e.begin(); err != nil {
		return nil, nil, err
	}
	if len(e.queue) > 0 {
		err = e.work(ctx)
	}
	return e.outcomes(), e.differ, err
}

// Found is what there is of every cell without working.
func (e *Engine) Found() ([]sweep.Outcome, error) {
	e.waiting.L = &e.mu
	err := e.begin()
	return e.outcomes(), err
}

// begin looks up what is there.
func (e *Engine) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress = Progress{Cells: len(e.Plan.Cells), Working: map[string]string{}}
	e.cells = make([]cell, len(e.Plan.Cells))
	for i := range e.cells {
		c := &e.cells[i]
		c.lots, c.width = make([]json.RawMessage, e.Plan.Lots()), math.NaN()
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
			if err := e.take(unit{i, lot}, one.Result); err != nil {
				return err
			}
			e.progress.Found++
			if one.By.Worker != "" {
				e.foreign = append(e.foreign, taken{unit: unit{i, lot}, Single: one})
			}
		}
		for lot := range c.want {
			if !e.mine(i) {
				continue
			}
			if e.progress.Lots++; c.lots[lot] != nil {
				e.progress.LotsDone++
			} else {
				e.queue = append(e.queue, unit{i, lot})
			}
		}
		if !e.mine(i) {
			e.progress.Cells--
		} else if c.done() {
			e.progress.Done++
		}
	}
	e.Plan.shuffle(e.queue)
	return nil
}

// mine says whether a cell is in the share that is worked on.
func (e *Engine) mine(cell int) bool { return e.Shards == 0 || cell%e.Shards == e.Shard }

// take takes a result in, and decides whether its cell wants more: lots are looked at in the order of seeds, whichever came
// first.
func (e *Engine) take(u unit, result json.RawMessage) error {
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
		if enough, c.width = e.Plan.Enough.Decide(c.parsed[:c.looks], e.Plan.Metrics, c.looks); enough || c.looks == len(c.lots) {
			break
		}
		c.want = max(c.want, c.looks+1)
	}
	return nil
}

// work lets workers take jobs until none is left.
func (e *Engine) work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, e.stop)
	defer stop()
	for range min(e.Workers, max(len(e.queue), 1)) {
		g.Go(func() error { return e.worker(ctx) })
	}
	return g.Wait()
}

// stop wakes those who wait for a job.
func (e *Engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	e.waiting.Broadcast()
}

// next waits for a job; ok is false when none is left.
func (e *Engine) next(worker string) (u unit, ok bool) {
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
	e.progress.Working[worker] = e.Plan.where(&e.Plan.Cells[u.cell])
	return u, true
}

// start starts a worker. One that is gone before it was ready is no reason to give up, unless that goes on.
func (e *Engine) start(ctx context.Context) (w Worker, err error) {
	for range mostFaulty {
		if w, err = e.Start(ctx); !errors.Is(err, ErrGone) {
			return w, err
		}
	}
	return nil, err
}

// worker works through jobs, with another worker where one is gone.
func (e *Engine) worker(ctx context.Context) error {
	w, err := e.start(ctx)
	if err != nil {
		return err
	}
	for {
		u, ok := e.next(w.Name())
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
			e.gone(u, err)
			_ = w.Close() // it is gone
			if w, err = e.start(ctx); err != nil {
				return err
			}
			continue
		case errors.Is(err, ErrTransport):
			return errors.Join(err, w.Close())
		case err != nil:
			e.fail(u, err)
			continue
		}
		by := store.Maker{Host: e.Host, Build: e.Plan.Build.String(), Finished: e.Now().UTC().Format(time.RFC3339), Seconds: e.Now().Sub(begun).Seconds()}
		if other, ok := w.(credited); ok {
			by = other.By()
		}
		if err := e.done(u, store.Single{Key: job.Key, Result: result, By: by}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
}

// gone gives a job that lost its worker to another one; one that does so again and again has failed.
func (e *Engine) gone(u unit, err error) {
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
		e.fail(u, fmt.Errorf("%d workers ended over it: %w", mostFaulty, err))
	}
}

// fail gives a cell up, and what is left of it.
func (e *Engine) fail(u unit, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inflight--
	if c := &e.cells[u.cell]; c.failed == "" {
		c.failed = err.Error()
		if e.progress.Failed++; e.progress.Failed <= mostFailures {
			e.progress.Failures = append(e.progress.Failures, Failure{e.Plan.where(&e.Plan.Cells[u.cell]), c.failed})
		}
	}
	before := len(e.queue)
	e.queue = slices.DeleteFunc(e.queue, func(other unit) bool { return other.cell == u.cell })
	e.progress.Lots -= before - len(e.queue) + 1
	e.waiting.Broadcast()
}

// done stores a result. One that came out otherwise before is told of; the first one counts.
func (e *Engine) done(u unit, one store.Single) error {
	err := e.Results.Put(one)
	if differs := errors.Is(err, store.ErrConflict); differs {
		first, ok, lost := e.Results.Get(one.Key)
		if lost != nil || !ok {
			return errors.Join(err, lost)
		}
		e.mu.Lock()
		e.differ = append(e.differ, fmt.Sprintf("%s: %v", e.Plan.where(&e.Plan.Cells[u.cell]), err))
		e.mu.Unlock()
		one = first
	} else if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.waiting.Broadcast()
	e.inflight--
	if one.By.Worker != "" {
		e.foreign = append(e.foreign, taken{unit: u, Single: one})
	}
	c := &e.cells[u.cell]
	wanted := c.want
	if err := e.take(u, one.Result); err != nil {
		return err
	}
	e.progress.LotsDone++
	if c.failed != "" {
		return nil
	}
	for lot := wanted; lot < c.want; lot++ {
		// Before the others, so that a cell ends soon.
		e.queue = slices.Insert(e.queue, 0, unit{u.cell, lot})
		e.progress.Lots++
	}
	if c.done() {
		e.progress.Done++
	}
	return nil
}

// outcomes are what there is, in the order of the sweep.
func (e *Engine) outcomes() []sweep.Outcome {
	out := make([]sweep.Outcome, len(e.cells))
	for i := range e.cells {
		c, planned := &e.cells[i], &e.Plan.Cells[i]
		o := sweep.Outcome{Parameters: planned.Values, At: planned.at, State: sweep.Pending, Error: c.failed, Looks: c.looks, HalfWidth: c.width}
		for lot := range c.want {
			if c.lots[lot] == nil {
				break // what comes behind a gap depends on the order
			}
			o.Lots, o.Keys = append(o.Lots, c.lots[lot]), append(o.Keys, e.Plan.Job(i, lot).Key)
		}
		switch {
		case c.failed != "":
			o.State = sweep.Failed
		case c.done():
			o.State = sweep.Done
		}
		out[i] = o
	}
	return out
}
