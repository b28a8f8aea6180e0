// Package xdp implements the switch in the Linux kernel. The queue of docs/reference/semantics.md is a set of XDP
// programs that merge real frames in the network driver, before the kernel's network stack.
//
// The programs are C (folder bpf). Compiled objects are embedded, so users need no compiler. Arriving frames run
// the program arrive of a discipline. User space serves the output with the programs turn, flush, latch and
// inspect, so that every decision is made and numbered in the kernel under one lock.
package xdp

//go:generate go run ./gen
