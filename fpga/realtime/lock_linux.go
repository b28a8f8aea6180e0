package realtime

import "sync/atomic"

// Lock is a mutex whose waiters do not give up their thread. With a sync.Mutex, the scheduler would wake waiters
// through threads that other programs may prevent from running. A Lock must only be held for microseconds. The zero
// Lock is unlocked.
type Lock struct{ held atomic.Bool }

// triesAwake is the number of times that a waiter polls before it sleeps. It sleeps because the thread that holds the
// lock may need its processor.
const triesAwake = 1000

// Lock locks l, waiting until this is possible.
func (l *Lock) Lock() {
	for tries := 0; !l.held.CompareAndSwap(false, true); tries++ {
		if tries >= triesAwake {
			napFor(leastNapNS)
		}
	}
}

// Unlock unlocks l.
func (l *Lock) Unlock() { l.held.Store(false) }
