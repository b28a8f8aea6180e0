//go:build !race

package ppo

// solve advances the physics by one step.
func (w *World) solve() { w.box.Step(1.0/fps, velocityIterations, positionIterations) }
