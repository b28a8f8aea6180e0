package trace

import (
	"context"
	"time"
)

// machineClock is this machine's clock.
type machineClock struct{ origin time.Time }

// newMachineClock returns a clock that counts from origin.
func newMachineClock(origin time.Time) machineClock { return machineClock{origin} }

// NowNS returns the time since the origin in ns.
func (c machineClock) NowNS() int64 { return int64(time.Since(c.origin)) }

// Sleep waits for ns nanoseconds or until the context ends.
func (c machineClock) Sleep(ctx context.Context, ns int64) {
	if ns <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
