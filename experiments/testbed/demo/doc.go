// Package demo plays a job of XAgg over real packets on this machine: workers and a parameter server are processes, each in a
// network namespace of its own, and the kernel between them adds. Everything is held by descriptors of this process: when it
// ends, in whatever way, nothing of it is left.
package demo
