package rl

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
)

// Clock is the clock of a real machine.
type Clock interface {
	// NowNS returns the time since some origin.
	NowNS() int64
	// ThreadCPUNS returns the CPU time of the calling thread, or NowNS if it is not available.
	ThreadCPUNS() int64
	// Sleep waits for ns or until the context ends.
	Sleep(ctx context.Context, ns int64)
}

// TrainLive carries out the training run c on a wall clock. Every worker is a thread, and slower workers sleep for the
// remainder of their period. The run depends on the machine and its scheduler and cannot be repeated. TrainLive
// supports only an ideal network and modes in which workers do not wait.
func TrainLive(ctx context.Context, c Config, clock Clock, observer Observer) (*Outcome, error) {
	if c.Mode == Sync || c.Network.Kind != Ideal {
		return nil, fmt.Errorf("%w: on a wall clock there are the modes %s and %s on an %s network", ErrConfig, Async, Periodic, Ideal)
	}
	t, err := newTraining(&c, observer)
	if err != nil {
		return nil, err
	}
	live := &live{training: t, clock: clock, origin: clock.NowNS()}
	var all sync.WaitGroup
	for _, w := range t.workers {
		all.Go(func() { live.work(ctx, w) })
	}
	all.Wait()
	t.close()
	return &t.out, cmp.Or(t.failed, ctx.Err())
}

// live is the state of a training run on a wall clock. The mutex guards all state that workers share.
type live struct {
	*training
	mu     sync.Mutex
	clock  Clock
	origin int64
}

func (l *live) work(ctx context.Context, w *worker) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range l.config.Iterations {
		if !l.takeUp(ctx, w) {
			return
		}
		began, cpu := l.clock.NowNS(), l.clock.ThreadCPUNS()
		w.fly(l.config)
		w.cost = l.clock.ThreadCPUNS() - cpu
		l.clock.Sleep(ctx, int64(float64(l.clock.NowNS()-began)*(w.speed-1)))
		l.handOver(ctx, w)
	}
}

// takeUp copies the newest weights to a worker and reports whether the training continues.
func (l *live) takeUp(ctx context.Context, w *worker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.start, w.base = w.received, w.version
	over := l.config.Until > 0 && l.clock.NowNS()-l.origin > int64(l.config.Until.NS())
	return !over && l.failed == nil && ctx.Err() == nil
}

func (l *live) handOver(ctx context.Context, w *worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil || l.failed != nil {
		return
	}
	w.finishNS = max(l.clock.NowNS()-l.origin, l.now)
	l.hand(w)
}
