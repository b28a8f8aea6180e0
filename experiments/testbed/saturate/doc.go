// Package saturate measures a testbed that adds models up: it sends frames of all workers at their cables, as fast as sums come
// back, takes every sum at the server, and holds each value of it, each decision of the kernel and each count.
package saturate
