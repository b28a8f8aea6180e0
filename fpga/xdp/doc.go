// Package xdp implements the switch in the Linux kernel. The queue of docs/reference/semantics.md is a set of XDP
// programs that merge real frames in the network driver, before the kernel's network stack. The programs are written in
// C (folder bpf). The compiled objects are embedded, so that users need no compiler. The program arrive of a discipline
// runs for each arriving frame. User space serves the output with the programs turn, flush, latch and inspect.
// Therefore every decision is made and numbered in the kernel, under one lock.
package xdp

//go:generate go run ./gen
