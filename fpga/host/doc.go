// Package host is the switch where the kernel can't be, or must not: the Go engine decides about frames that a packet socket
// hands over. It is another plane of fpga/realtime, slower than programs of the kernel, and without any right to load them.
package host
