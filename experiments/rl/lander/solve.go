//go:build !race

package lander

// solve lets the physics advance by one step.
func (w *World) solve() { w.box.Step(1.0/fps, velocityIterations, positionIterations) }
