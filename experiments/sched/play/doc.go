// Package play carries out schedules. PlayPlan sends the jobs of a plan packet by packet through a simulated network:
// once with senders that are paced at the planned rates, and once with senders that follow P4INC-AOI's congestion
// windows. It compares both with the planners' fluid model. The package also applies the configuration of a switch as
// one batch.
package play
