// Package host implements a switch plane in user space. It receives frames from packet sockets and lets the Go engine
// decide what happens to them. It is an alternative plane for fpga/realtime. It is slower than the kernel programs but
// needs no permission to load programs.
package host
