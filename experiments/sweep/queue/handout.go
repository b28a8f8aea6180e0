package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/store"
)

// Handout hands out the jobs of one build through the queue. It starts the workers of an Engine. Each of these workers
// represents one job that waits in the queue.
type Handout struct {
	queue *Queue
	build sweep.Build
	mu    sync.Mutex
	wait  map[string]chan answer // by key
	last  int
	deaf  turn // fires when notices of results may have been lost
	lost  context.Context
}

// look is the interval at which a result is polled in case its notice was lost.
const look = 5 * time.Second

// NewHandout returns a Handout that follows the results in the queue until ctx ends.
func NewHandout(ctx context.Context, q *Queue, build sweep.Build) (*Handout, error) {
	h := &Handout{queue: q, build: build, wait: map[string]chan answer{}}
	if err := q.followBucket(ctx, resultsKept, h.passResult, h.deaf.wakeAll, jetstream.UpdatesOnly()); err != nil {
		return nil, fmt.Errorf("listen for results: %w", err)
	}
	began, err := q.creationTimes(ctx)
	if err != nil {
		return nil, markTransport(err)
	}
	lost, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	h.lost = lost
	go h.monitor(ctx, began, lose)
	return h, nil
}

// markTransport marks an error as an error of the queue. Such an error ends the sweep instead of becoming a cell's
// outcome.
func markTransport(err error) error {
	return fmt.Errorf("%w: %w%s", sweep.ErrTransport, err, serverAdvice(err))
}

// creationTimes returns the times at which the streams for jobs and results were created.
func (q *Queue) creationTimes(ctx context.Context) (at [2]time.Time, err error) {
	for i, name := range []string{jobsStream, "KV_" + resultBucket} {
		err = q.keepTrying(ctx, func(ctx context.Context) error {
			s, err := q.js.Stream(ctx, name)
			if err == nil {
				at[i] = s.CachedInfo().Created
			}
			return err
		})
		if err != nil {
			return at, fmt.Errorf("%s: %w", name, err)
		}
	}
	return at, nil
}

// monitor checks periodically whether the streams are still the original ones. If a stream was deleted, jobs or results
// of this sweep are lost, even if the stream was created again.
func (h *Handout) monitor(ctx context.Context, began [2]time.Time, lose context.CancelCauseFunc) {
	defer lose(nil)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, err := h.queue.creationTimes(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && now == began:
			continue
		case err == nil:
			err = errors.New("its streams were deleted and recreated")
		}
		lose(markTransport(err))
		return
	}
}

// passResult passes a result to the worker that waits for it.
func (h *Handout) passResult(entry jetstream.KeyValueEntry) {
	a := outcomeOf(entry.Value())
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.wait[entry.Key()]; c != nil {
		select {
		case c <- a:
		default: // it already has a result
		}
	}
}

// Start returns a worker that hands out one job at a time through the queue.
func (h *Handout) Start(context.Context) (sweep.Worker, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	return &place{Handout: h, name: fmt.Sprintf("queue %d", h.last)}, nil
}

// place is a sweep.Worker that hands out its jobs through the queue.
type place struct {
	*Handout
	name string
	by   store.Maker
}

// By returns the maker of the result that Do returned last.
func (p *place) By() store.Maker { return p.by }

func (p *place) Name() string { return p.name }
func (p *place) Close() error { return nil }

// Do submits a job to the queue and waits for its outcome. It submits a job again if it failed in an earlier sweep.
func (p *place) Do(ctx context.Context, j sweep.Job) (json.RawMessage, error) {
	c := make(chan answer, 1)
	p.mu.Lock()
	p.wait[j.Key] = c
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.wait, j.Key)
		p.mu.Unlock()
	}()
	a, there, err := p.queue.findAnswer(ctx, j.Key)
	switch {
	case err != nil:
		return nil, markTransport(err)
	case there && a.Error == "":
		return p.takeAnswer(a)
	}
	id := j.Key
	if there { // it failed, and its result was deleted; the old id would count as a duplicate
		id += nats.NewInbox()
		if err := p.queue.keepTrying(ctx, func(ctx context.Context) error {
			return p.queue.results.Delete(ctx, j.Key)
		}); err != nil {
			return nil, markTransport(err)
		}
	}
	if err := p.queue.publishJob(ctx, p.build, j, id); err != nil {
		return nil, markTransport(err)
	}
	return p.awaitResult(ctx, j.Key, c)
}

// awaitResult waits for the notice that a result exists. Missed notices are not repeated, so it also polls periodically
// and after a lost connection.
func (p *place) awaitResult(ctx context.Context, key string, notices <-chan answer) (json.RawMessage, error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-notices:
			return p.takeAnswer(a)
		case <-p.lost.Done():
			return nil, errors.Join(ctx.Err(), context.Cause(p.lost))
		case <-p.deaf.awaitNext().Done():
		case <-ticker.C:
		}
		a, there, err := p.queue.findAnswer(ctx, key)
		if err != nil {
			return nil, markTransport(err)
		}
		if there {
			return p.takeAnswer(a)
		}
	}
}

// takeAnswer records the maker of a job's outcome and returns the result or the error.
func (p *place) takeAnswer(a answer) (json.RawMessage, error) {
	p.by = a.By
	p.by.Worker = cmp.Or(p.by.Worker, "unnamed")
	return a.outcome()
}

// outcome returns the result of a job, or an error with the reason why there is none.
func (a *answer) outcome() (json.RawMessage, error) {
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Result, nil
}

// publishJob adds a job to the queue. The server drops a second job with the same id.
func (q *Queue) publishJob(ctx context.Context, build sweep.Build, j sweep.Job, id string) error {
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return q.keepTrying(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, jobsSubjectOf(build), raw, jetstream.WithMsgID(id))
		return err
	})
}

// findAnswer looks up the outcome of a job. there is false if it has none yet.
func (q *Queue) findAnswer(ctx context.Context, key string) (a answer, there bool, err error) {
	err = q.keepTrying(ctx, func(ctx context.Context) error {
		entry, err := q.results.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		there = true
		a = outcomeOf(entry.Value())
		return nil
	})
	return a, there, err
}

// Differences describes results for the wanted keys that differ from the first result under the same key, and names
// both makers. It considers results that workers set aside and results that overwrote another.
func (q *Queue) Differences(ctx context.Context, wanted func(key string) bool) (differences []string, err error) {
	aside, err := q.findSetAside(ctx, wanted)
	if err != nil {
		return nil, err
	}
	over, err := q.findOverwritten(ctx, wanted)
	return append(aside, over...), err
}

// describeDifference describes two different results under one key.
func describeDifference(key string, first, second *answer) string {
	who := func(by *store.Maker) string {
		return fmt.Sprintf("%s (worker %s, build %s, %s)", by.Host, cmp.Or(by.Worker, "unnamed"), by.Build, by.Finished)
	}
	return fmt.Sprintf("%.12s… of %s and of %s", key, who(&first.By), who(&second.By))
}

// findOverwritten describes results that were replaced by other results. Workers create results and never replace them.
func (q *Queue) findOverwritten(ctx context.Context, wanted func(key string) bool) (differences []string, err error) {
	prefix := "$KV." + resultBucket + "."
	stream, err := q.js.Stream(ctx, "KV_"+resultBucket)
	if err != nil {
		return nil, markTransport(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, markTransport(err)
	}
	for subject, n := range info.State.Subjects {
		key := strings.TrimPrefix(subject, prefix)
		if n < 2 || !wanted(key) {
			continue
		}
		entries, err := q.results.History(ctx, key)
		if err != nil {
			return nil, markTransport(err)
		}
		var first *answer
		for _, entry := range entries {
			a, err := readAnswer(entry.Value())
			switch {
			case entry.Operation() != jetstream.KeyValuePut || err != nil || a.Error != "":
			case first == nil:
				first = &a
			case !bytes.Equal(first.Result, a.Result):
				differences = append(differences, describeDifference(key, first, &a))
			}
		}
	}
	slices.Sort(differences)
	return differences, nil
}

// findSetAside describes the results that workers set aside because there already was a different one.
func (q *Queue) findSetAside(ctx context.Context, wanted func(key string) bool) (differences []string, err error) {
	keys, err := q.differ.Keys(ctx)
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range keys {
		if len(name) < keyLength || !wanted(name[:keyLength]) {
			continue
		}
		first, _, err := q.findAnswer(ctx, name[:keyLength])
		if err != nil {
			return nil, err
		}
		entry, err := q.differ.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		second, err := readAnswer(entry.Value())
		if err != nil {
			return nil, fmt.Errorf("job %.12s…, its second result: %w", name, err)
		}
		differences = append(differences, describeDifference(name, &first, &second))
	}
	return differences, nil
}
