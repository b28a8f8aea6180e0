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

// Labour takes the jobs of one build from the queue and carries them out.
type Labour struct {
	Queue   *Queue
	Build   sweep.Build
	Workers int
	Start   func(context.Context) (sweep.Worker, error)
	Host    string
	ID      string // id of this worker, on its host
	Now     func() time.Time
	Done    atomic.Int64 // jobs done by this machine
	// Idle is the time without a job after which the work ends; 0 means never.
	Idle time.Duration
}

// Work carries out jobs until ctx ends.
func (l *Labour) Work(ctx context.Context) error {
	consumer, err := l.findConsumer(ctx)
	if err != nil {
		return markTransport(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for range l.Workers {
		g.Go(func() error { return l.runWorker(ctx, consumer) })
	}
	return g.Wait()
}

// findConsumer returns the stream's consumer for this build, which it creates if it does not exist.
func (l *Labour) findConsumer(ctx context.Context) (c jetstream.Consumer, err error) {
	err = l.Queue.keepTrying(ctx, func(ctx context.Context) (err error) {
		c, err = l.Queue.js.CreateOrUpdateConsumer(ctx, jobsStream,
			jetstream.ConsumerConfig{Durable: "w-" + l.Build.Hash(), FilterSubject: jobsSubjectOf(l.Build),
				AckPolicy: jetstream.AckExplicitPolicy, AckWait: silence, MaxDeliver: deliveries,
				MaxAckPending: 100_000})
		return err
	})
	return c, err
}

// wants is the timeout of one request for a job. Requests are repeated.
const wants = 2 * time.Second

func (l *Labour) runWorker(ctx context.Context, c jetstream.Consumer) error {
	w, err := l.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }() // the work is done either way
	idle := time.Duration(0)
	for ctx.Err() == nil {
		msg, err := c.Next(jetstream.FetchMaxWait(wants))
		if err != nil {
			trouble := !isQuiet(err) && ctx.Err() == nil
			if idle += wants; l.Idle > 0 && idle > l.Idle {
				if trouble {
					return markTransport(err)
				}
				return nil
			}
			if trouble {
				c = l.recoverConsumer(ctx, c, err)
			}
			continue
		}
		idle = 0
		if gone := l.doJob(ctx, w, msg); gone {
			_ = w.Close()
			if w, err = l.Start(ctx); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// recoverConsumer reports an error from the server, waits, and looks up the consumer again. The stream may have been
// deleted and created again.
func (l *Labour) recoverConsumer(ctx context.Context, c jetstream.Consumer, err error) jetstream.Consumer {
	pauseAgain(ctx)
	again, lost := l.findConsumer(ctx)
	switch {
	case ctx.Err() != nil:
	case lost != nil:
		l.Queue.remarkOnce(fmt.Sprintf("the queue hands out no jobs (%v%s); waiting", lost, serverAdvice(lost)))
	default:
		return again
	}
	return c
}

// isQuiet reports whether an error means that there is no job. Other errors may mean that there is no server.
func isQuiet(err error) bool {
	return errors.Is(err, jetstream.ErrNoMessages) || errors.Is(err, nats.ErrTimeout)
}

func pauseAgain(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(again):
	}
}

// doJob carries out a job, stores its outcome and then acknowledges the job. If the outcome cannot be stored, the job
// is handed out again. gone reports whether the worker has ended.
func (l *Labour) doJob(ctx context.Context, w sweep.Worker, msg jetstream.Msg) (gone bool) {
	j, err := readJob(msg.Data())
	if err != nil {
		_ = msg.Term() // no worker can do it
		return false
	}
	if a, there, err := l.Queue.findAnswer(ctx, j.Key); err == nil && there && a.Error == "" {
		_ = msg.Ack()
		return false
	}
	stop := l.reportProgress(ctx, msg)
	defer stop()
	begun := l.Now()
	a := answer{}
	if often := countDeliveries(msg); often > mostFaulty {
		a.Error = fmt.Sprintf("%d workers ended while running it", mostFaulty)
	} else {
		result, err := w.Do(ctx, j)
		switch {
		case ctx.Err() != nil:
			l.handBack(ctx, msg)
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
	a.By = store.Maker{Host: l.Host, Worker: l.ID, Build: l.Build.String(),
		Finished: l.Now().UTC().Format(time.RFC3339), Seconds: l.Now().Sub(begun).Seconds()}
	err = l.storeOutcome(ctx, j.Key, a)
	if errors.Is(err, nats.ErrMaxPayload) { // results from other workers would be as long
		a.Error, a.Result = fmt.Sprintf("its result of %d bytes is more than the queue takes", len(a.Result)), nil
		err = l.storeOutcome(ctx, j.Key, a)
	}
	if err != nil {
		l.handBack(ctx, msg)
		return false
	}
	l.Done.Add(1)
	_ = msg.Ack() // if this is lost, the result is found when the job comes again
	return false
}

// handBack submits a job again if the job did not kill its worker. Another worker gets it immediately. The count of
// deliveries, which counts killed workers, starts at one again.
func (l *Labour) handBack(ctx context.Context, msg jetstream.Msg) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if _, err := l.Queue.js.Publish(ctx, msg.Subject(), msg.Data()); err != nil {
		_ = msg.Nak()
		return
	}
	_ = msg.Ack() // if it is lost, the job is done twice, with the same result
}

func countDeliveries(msg jetstream.Msg) uint64 {
	meta, err := msg.Metadata()
	if err != nil {
		return 0
	}
	return meta.NumDelivered
}

// reportProgress reports to the server periodically that a job is in progress, until stop is called.
func (l *Labour) reportProgress(ctx context.Context, msg jetstream.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		ticker := time.NewTicker(silence / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = msg.InProgress() // if it fails, the next one may succeed
			}
		}
	}()
	return cancel
}

// storeOutcome stores the outcome of a job. If there already is a different result, it keeps that result and sets the
// new one aside.
func (l *Labour) storeOutcome(ctx context.Context, key string, a answer) error {
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
		pauseAgain(ctx)
	}
	if err != nil || !exists {
		return err
	}
	first, there, err := l.Queue.findAnswer(ctx, key)
	if err != nil || !there || a.Error != "" || first.Error != "" || bytes.Equal(first.Result, a.Result) {
		return err
	}
	name := fmt.Sprintf("%s.%s", key, shortDigest(a.Result))
	return l.Queue.keepTrying(ctx, func(ctx context.Context) error {
		_, err := l.Queue.differ.Put(ctx, name, raw)
		return err
	})
}

func shortDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}
