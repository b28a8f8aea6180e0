// Package host implements a switch plane in user space, in which the Go engine decides about frames from a packet
// socket. It is an alternative plane for fpga/realtime. It is slower than the kernel programs but needs no permission
// to load programs.
package host
