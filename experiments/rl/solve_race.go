//go:build race

package rl

import "sync"

// oneWorld hides the port's global call counters from the race detector: every world writes them, none reads them.
// Builds without the detector need no lock.
var oneWorld sync.Mutex

// solve advances the physics by one step, one world at a time.
func (w *World) solve() {
	oneWorld.Lock()
	defer oneWorld.Unlock()
	w.box.Step(1.0/fps, velocityIterations, positionIterations)
}
