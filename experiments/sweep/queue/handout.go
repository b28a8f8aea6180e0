package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/olafctl/olaf/experiments/sweep"
)

// Handout hands out the jobs of one build. What it starts are workers as an engine has them; each is one job that waits in the queue.
type Handout struct {
	queue *Queue
	build sweep.Build
	mu    sync.Mutex
	wait  map[string]chan answer // by key
	last  int
	deaf  turn // results were not told of for a while
}

// look is how often a result is looked for that nobody told of.
const look = 5 * time.Second

// NewHandout begins to listen for results, until ctx ends.
func NewHandout(ctx context.Context, q *Queue, build sweep.Build) (*Handout, error) {
	h := &Handout{queue: q, build: build, wait: map[string]chan answer{}}
	if err := q.follow(ctx, resultsKept, h.told, h.deaf.happens, jetstream.UpdatesOnly()); err != nil {
		return nil, fmt.Errorf("listen for results: %w", err)
	}
	return h, nil
}

// told hands a result to whoever waits for it.
func (h *Handout) told(entry jetstream.KeyValueEntry) {
	a := outcomeOf(entry.Value())
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.wait[entry.Key()]; c != nil {
		select {
		case c <- a:
		default: // it has one
		}
	}
}

// Start is one more job at a time.
func (h *Handout) Start(context.Context) (sweep.Worker, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	return &place{h, fmt.Sprintf("queue %d", h.last)}, nil
}

// place is a job in the queue.
type place struct {
	*Handout
	name string
}

func (p *place) Name() string { return p.name }
func (p *place) Close() error { return nil }

// Do hands a job in and waits until somebody has done it. One that failed before is tried again.
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
	a, there, err := p.queue.answer(ctx, j.Key)
	switch {
	case err != nil:
		return nil, err
	case there && a.Error == "":
		return a.Result, nil
	}
	id := j.Key
	if there { // it failed, and has been forgotten under its first name
		id += nats.NewInbox()
		if err := p.queue.keepTrying(ctx, func(ctx context.Context) error { return p.queue.results.Delete(ctx, j.Key) }); err != nil {
			return nil, err
		}
	}
	if err := p.queue.publish(ctx, p.build, j, id); err != nil {
		return nil, err
	}
	return p.await(ctx, j.Key, c)
}

// await waits to be told of a result, and looks for it now and then and when the connection was lost, as what was said meanwhile is
// not said again.
func (p *place) await(ctx context.Context, key string, told <-chan answer) (json.RawMessage, error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-told:
			return a.outcome()
		case <-p.deaf.await().Done():
		case <-ticker.C:
		}
		a, there, err := p.queue.answer(ctx, key)
		if err != nil {
			return nil, err
		}
		if there {
			return a.outcome()
		}
	}
}

// outcome is a job's result, or why there is none.
func (a *answer) outcome() (json.RawMessage, error) {
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Result, nil
}

// publish puts a job into the queue; the server drops one of the same id.
func (q *Queue) publish(ctx context.Context, build sweep.Build, j sweep.Job, id string) error {
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return q.keepTrying(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, subject(build), raw, jetstream.WithMsgID(id))
		return err
	})
}

// answer looks what a job came to; there is false where nobody knows yet.
func (q *Queue) answer(ctx context.Context, key string) (a answer, there bool, err error) {
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

// Differences lists the second results of some keys that were others, with both makers.
func (q *Queue) Differences(ctx context.Context, wanted func(key string) bool) (said []string, err error) {
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
		first, _, err := q.answer(ctx, name[:keyLength])
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
		said = append(said, fmt.Sprintf("%.12s… of %s (%s) and of %s (%s)", name, first.By.Host, first.By.Finished, second.By.Host, second.By.Finished))
	}
	return said, nil
}
