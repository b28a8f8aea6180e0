//go:build race

package rl

import "sync"

// oneWorld hides the global call counters of the Box2D port from the race detector. Every world writes them and none
// reads them. Builds without the detector need no lock.
var oneWorld sync.Mutex

// solve advances the physics by one step. It does so for only one world at a time.
func (w *World) solve() {
	oneWorld.Lock()
	defer oneWorld.Unlock()
	w.box.Step(1.0/fps, velocityIterations, positionIterations)
}
