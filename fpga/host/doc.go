// Package host implements the switch plane in user space: the Go engine decides on frames from a packet socket. It is
// an alternative plane of fpga/realtime, slower than the kernel programs, but it needs no right to load programs.
package host
