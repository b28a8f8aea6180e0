// Package xdp is the Linux kernel as the switch: the queue of docs/reference/semantics.md as XDP programs, which merge real frames where
// a network driver hands them over, before the kernel's own network stack.
//
// The programs are C (folder bpf), compiled ahead of time; the objects are embedded, and a user needs no compiler. Arriving
// frames run the program arrive of a discipline; the output is served from user space, by the programs turn, flush, latch and
// inspect, so that every decision is made in the kernel under one lock and numbered there.
package xdp

//go:generate go run ./gen
