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

// Handout hands out the jobs of one build. What it starts are workers as an engine has them; each is one job that waits in the queue.
type Handout struct {
	queue *Queue
	build sweep.Build
	mu    sync.Mutex
	wait  map[string]chan answer // by key
	last  int
	deaf  turn // results were not told of for a while
	lost  context.Context
}

// look is how often a result is looked for that nobody told of.
const look = 5 * time.Second

// NewHandout begins to listen for results, until ctx ends.
func NewHandout(ctx context.Context, q *Queue, build sweep.Build) (*Handout, error) {
	h := &Handout{queue: q, build: build, wait: map[string]chan answer{}}
	if err := q.follow(ctx, resultsKept, h.told, h.deaf.happens, jetstream.UpdatesOnly()); err != nil {
		return nil, fmt.Errorf("listen for results: %w", err)
	}
	began, err := q.made(ctx)
	if err != nil {
		return nil, transport(err)
	}
	lost, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	h.lost = lost
	go h.monitor(ctx, began, lose)
	return h, nil
}

// transport marks an error as the queue's own, which ends the sweep and is not an outcome of a cell.
func transport(err error) error {
	return fmt.Errorf("%w: %w%s", sweep.ErrTransport, err, remedy(err))
}

// made returns when the streams for jobs and for results were created.
func (q *Queue) made(ctx context.Context) (at [2]time.Time, err error) {
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

// monitor looks now and then whether the streams of the beginning are still there. A deleted one, even
// if it was made anew, has lost jobs or results that this sweep waits for.
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
		now, err := h.queue.made(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && now == began:
			continue
		case err == nil:
			err = errors.New("its streams were deleted and recreated")
		}
		lose(transport(err))
		return
	}
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
	return &place{Handout: h, name: fmt.Sprintf("queue %d", h.last)}, nil
}

// place is a job in the queue.
type place struct {
	*Handout
	name string
	by   store.Maker
}

// By returns the maker of the last result.
func (p *place) By() store.Maker { return p.by }

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
		return nil, transport(err)
	case there && a.Error == "":
		return p.take(a)
	}
	id := j.Key
	if there { // it failed, and has been forgotten under its first name
		id += nats.NewInbox()
		if err := p.queue.keepTrying(ctx, func(ctx context.Context) error { return p.queue.results.Delete(ctx, j.Key) }); err != nil {
			return nil, transport(err)
		}
	}
	if err := p.queue.publish(ctx, p.build, j, id); err != nil {
		return nil, transport(err)
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
			return p.take(a)
		case <-p.lost.Done():
			return nil, errors.Join(ctx.Err(), context.Cause(p.lost))
		case <-p.deaf.await().Done():
		case <-ticker.C:
		}
		a, there, err := p.queue.answer(ctx, key)
		if err != nil {
			return nil, transport(err)
		}
		if there {
			return p.take(a)
		}
	}
}

// take notes the maker of a job's outcome and returns it.
func (p *place) take(a answer) (json.RawMessage, error) {
	if p.by = a.By; p.by.Worker == "" {
		p.by.Worker = "unnamed"
	}
	return a.outcome()
}

// outcome returns a job's result, or the reason why there is none.
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

// Differences lists results of some keys that differ from the first one of their key, with both makers: those that workers
// put aside, and those that took the place of another one.
func (q *Queue) Differences(ctx context.Context, wanted func(key string) bool) (said []string, err error) {
	aside, err := q.setAside(ctx, wanted)
	if err != nil {
		return nil, err
	}
	over, err := q.overwritten(ctx, wanted)
	return append(aside, over...), err
}

// differs describes two results of a key.
func differs(key string, first, second *answer) string {
	who := func(by *store.Maker) string {
		return fmt.Sprintf("%s (worker %s, build %s, %s)", by.Host, cmp.Or(by.Worker, "unnamed"), by.Build, by.Finished)
	}
	return fmt.Sprintf("%.12s… of %s and of %s", key, who(&first.By), who(&second.By))
}

// overwritten lists keys under which results were replaced by others. Workers create results and never replace them.
func (q *Queue) overwritten(ctx context.Context, wanted func(key string) bool) (said []string, err error) {
	prefix := "$KV." + resultBucket + "."
	stream, err := q.js.Stream(ctx, "KV_"+resultBucket)
	if err != nil {
		return nil, transport(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, transport(err)
	}
	for subject, n := range info.State.Subjects {
		key := strings.TrimPrefix(subject, prefix)
		if n < 2 || !wanted(key) {
			continue
		}
		entries, err := q.results.History(ctx, key)
		if err != nil {
			return nil, transport(err)
		}
		var first *answer
		for _, entry := range entries {
			a, err := readAnswer(entry.Value())
			switch {
			case entry.Operation() != jetstream.KeyValuePut || err != nil || a.Error != "":
			case first == nil:
				first = &a
			case !bytes.Equal(first.Result, a.Result):
				said = append(said, differs(key, first, &a))
			}
		}
	}
	slices.Sort(said)
	return said, nil
}

// setAside lists second results that workers put aside.
func (q *Queue) setAside(ctx context.Context, wanted func(key string) bool) (said []string, err error) {
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
		said = append(said, differs(name, &first, &second))
	}
	return said, nil
}
