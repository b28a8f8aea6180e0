//go:build !race

package rl

// solve advances the physics by one step.
func (w *World) solve() { w.box.Step(1.0/fps, velocityIterations, positionIterations) }
