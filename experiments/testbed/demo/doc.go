// Package demo runs a job of XAgg with real packets on this machine: workers and a parameter server are processes, each
// in its own network namespace, and the kernel between them adds. This process holds everything by descriptors, so that
// nothing remains when it ends, in whatever way.
package demo
