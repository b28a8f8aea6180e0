// Package saturate measures a testbed that adds models. It sends frames from all workers as fast as sums return,
// receives every sum at the server, and checks each value, each decision of the kernel and each count.
package saturate
