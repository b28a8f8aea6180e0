//go:build race

package lander

import "sync"

// oneWorld keeps the race detector from reporting the port's global call counters, which are written by every world and
// read by none. Builds without the detector need and have no lock.
var oneWorld sync.Mutex

// solve lets the physics advance by one step, one world at a time.
func (w *World) solve() {
	oneWorld.Lock()
	defer oneWorld.Unlock()
	w.box.Step(1.0/fps, velocityIterations, positionIterations)
}
