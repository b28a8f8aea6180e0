package realtime

import "sync/atomic"

// Lock is a mutex whose waiters stay on their thread. The scheduler wakes the waiters of a sync.Mutex through threads
// that other programs may keep from running. Locks are held for microseconds. The zero Lock is free.
type Lock struct{ held atomic.Bool }

// triesAwake is the number of polls before a waiter sleeps, so that a lock holder on its processor can run.
const triesAwake = 1000

// Lock waits until the lock is free and takes it.
func (l *Lock) Lock() {
	for tries := 0; !l.held.CompareAndSwap(false, true); tries++ {
		if tries >= triesAwake {
			napFor(leastNapNS)
		}
	}
}

// Unlock frees the lock.
func (l *Lock) Unlock() { l.held.Store(false) }
