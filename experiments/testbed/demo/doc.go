// Package demo runs an XAgg job with real packets on this machine. Workers and a parameter server are processes, each
// in its own network namespace, and the kernel between them adds the updates. This process refers to all namespaces and
// programs by file descriptors, so that nothing remains however the process ends.
package demo
