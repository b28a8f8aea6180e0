// Package play carries out schedules. PlayPlan sends them packet by packet through a simulated network, once with
// senders paced at the planned rates and once with senders that follow P4INC-AOI's congestion windows, and compares
// both with the fluid model of the planners. Tables is a switch's configuration as one batch.
package play
