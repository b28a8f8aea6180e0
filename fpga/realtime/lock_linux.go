package realtime

import "sync/atomic"

// Lock is a mutex whose waiters stay on their thread. One of package sync lets the scheduler wake them, by way of threads that
// other programs may keep from running. It is held for microseconds. The zero Lock is free.
type Lock struct{ held atomic.Bool }

// triesAwake is how often a waiter looks before it sleeps, so that whoever holds the lock can run on its processor.
const triesAwake = 1000

// Lock waits until nobody holds it.
func (l *Lock) Lock() {
	for tries := 0; !l.held.CompareAndSwap(false, true); tries++ {
		if tries >= triesAwake {
			nap(leastNapNS)
		}
	}
}

// Unlock lets the next one have it.
func (l *Lock) Unlock() { l.held.Store(false) }
