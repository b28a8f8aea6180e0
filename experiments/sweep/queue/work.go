package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/store"
)

// Labour takes jobs of one build from the queue and does them.
type Labour struct {
	Queue   *Queue
	Build   sweep.Build
	Workers int
	Start   func(context.Context) (sweep.Worker, error)
	Host    string
	ID      string // of this worker, beside others of the host
	Now     func() time.Time
	Done    atomic.Int64 // jobs that this machine did
	// Idle ends the work when there was none for so long; 0 for never.
	Idle time.Duration
}

// Work takes jobs until ctx ends.
func (l *Labour) Work(ctx context.Context) error {
	consumer, err := l.consumer(ctx)
	if err != nil {
		return transport(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for range l.Workers {
		g.Go(func() error { return l.worker(ctx, consumer) })
	}
	return g.Wait()
}

// consumer finds or makes this build's share of the stream.
func (l *Labour) consumer(ctx context.Context) (c jetstream.Consumer, err error) {
	err = l.Queue.keepTrying(ctx, func(ctx context.Context) (err error) {
		c, err = l.Queue.js.CreateOrUpdateConsumer(ctx, jobsStream, jetstream.ConsumerConfig{Durable: "w-" + l.Build.Hash(), FilterSubject: subject(l.Build),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: silence, MaxDeliver: deliveries, MaxAckPending: 100_000})
		return err
	})
	return c, err
}

// wants is how long one question for a job waits for one.
const wants = 2 * time.Second

func (l *Labour) worker(ctx context.Context, c jetstream.Consumer) error {
	w, err := l.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }() // it is done either way
	idle := time.Duration(0)
	for ctx.Err() == nil {
		msg, err := c.Next(jetstream.FetchMaxWait(wants))
		if err != nil {
			trouble := !quiet(err) && ctx.Err() == nil
			if idle += wants; l.Idle > 0 && idle > l.Idle {
				if trouble {
					return transport(err)
				}
				return nil
			}
			if trouble {
				c = l.recover(ctx, c, err)
			}
			continue
		}
		idle = 0
		if gone := l.one(ctx, w, msg); gone {
			_ = w.Close()
			if w, err = l.Start(ctx); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// recover reports an error of the server, waits, and finds the consumer again: the stream may have been deleted and made
// anew meanwhile.
func (l *Labour) recover(ctx context.Context, c jetstream.Consumer, err error) jetstream.Consumer {
	pause(ctx)
	again, lost := l.consumer(ctx)
	switch {
	case ctx.Err() != nil:
	case lost != nil:
		l.Queue.remarkOnce(fmt.Sprintf("the queue hands out no jobs (%v%s); waiting", lost, remedy(lost)))
	default:
		return again
	}
	return c
}

// quiet says that there was no job, as opposed to no server.
func quiet(err error) bool {
	return errors.Is(err, jetstream.ErrNoMessages) || errors.Is(err, nats.ErrTimeout)
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(again):
	}
}

// one does a job and acknowledges it once its outcome is stored. What can't be stored is left to be handed out again. gone says
// that the worker is.
func (l *Labour) one(ctx context.Context, w sweep.Worker, msg jetstream.Msg) (gone bool) {
	j, err := readJob(msg.Data())
	if err != nil {
		_ = msg.Term() // nobody can do it
		return false
	}
	if a, there, err := l.Queue.answer(ctx, j.Key); err == nil && there && a.Error == "" {
		_ = msg.Ack()
		return false
	}
	stop := l.beat(ctx, msg)
	defer stop()
	begun := l.Now()
	a := answer{}
	if often := delivered(msg); often > mostFaulty {
		a.Error = fmt.Sprintf("%d workers ended over it", mostFaulty)
	} else {
		result, err := w.Do(ctx, j)
		switch {
		case ctx.Err() != nil:
			_ = msg.Nak() // somebody else has it at once
			return false
		case errors.Is(err, sweep.ErrGone):
			_ = msg.Nak()
			return true
		case err != nil:
			a.Error = err.Error()
		default:
			a.Result = result
		}
	}
	a.By = store.Maker{Host: l.Host, Worker: l.ID, Build: l.Build.String(), Finished: l.Now().UTC().Format(time.RFC3339), Seconds: l.Now().Sub(begun).Seconds()}
	err = l.store(ctx, j.Key, a)
	if errors.Is(err, nats.ErrMaxPayload) { // nobody's would be shorter
		a.Error, a.Result = fmt.Sprintf("its result of %d bytes is more than the queue takes", len(a.Result)), nil
		err = l.store(ctx, j.Key, a)
	}
	if err != nil {
		return false // handed out again
	}
	l.Done.Add(1)
	_ = msg.Ack() // if it is lost, the result is found when the job comes again
	return false
}

func delivered(msg jetstream.Msg) uint64 {
	meta, err := msg.Metadata()
	if err != nil {
		return 0
	}
	return meta.NumDelivered
}

// beat says that a job is worked on, until stop.
func (l *Labour) beat(ctx context.Context, msg jetstream.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		ticker := time.NewTicker(silence / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = msg.InProgress() // the next one may get through
			}
		}
	}()
	return cancel
}

// store creates the outcome. Where there is a result already that is another one, both are kept.
func (l *Labour) store(ctx context.Context, key string, a answer) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	exists := false
	for {
		err = l.Queue.keepTrying(ctx, func(ctx context.Context) error {
			_, err := l.Queue.results.Create(ctx, key, raw)
			if exists = errors.Is(err, jetstream.ErrKeyExists); exists {
				return nil
			}
			return err
		})
		if !noRoom(err) || ctx.Err() != nil {
			break
		}
		l.Queue.remarkOnce(fmt.Sprintf("the queue takes no results (%v); %s; waiting for room", err, moreRoom))
		pause(ctx)
	}
	if err != nil || !exists {
		return err
	}
	first, there, err := l.Queue.answer(ctx, key)
	if err != nil || !there || a.Error != "" || first.Error != "" || bytes.Equal(first.Result, a.Result) {
		return err
	}
	name := fmt.Sprintf("%s.%s", key, digest(a.Result))
	return l.Queue.keepTrying(ctx, func(ctx context.Context) error {
		_, err := l.Queue.differ.Put(ctx, name, raw)
		return err
	})
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
