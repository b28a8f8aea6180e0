package pktgen

import "math/bits"

// fenwick is a binary indexed tree of integer weights. It draws by weight and changes a weight in O(log n). The
// arithmetic is exact.
type fenwick struct {
	sums  []uint64 // partial sums, with indexes from 1
	total uint64
	top   int // highest power of two that is not above len(weights)
}

// build sets all weights in O(n). It retains no reference to the slice.
func (f *fenwick) build(weights []uint64) {
	n := len(weights)
	if cap(f.sums) < n+1 {
		f.sums = make([]uint64, n+1)
	}
	f.sums, f.total, f.top = f.sums[:n+1], 0, 0
	if n > 0 {
		f.top = 1 << (bits.Len(uint(n)) - 1)
	}
	copy(f.sums[1:], weights)
	for i := 1; i <= n; i++ {
		f.total += weights[i-1]
		if up := i + i&-i; up <= n {
			f.sums[up] += f.sums[i]
		}
	}
}

// remove subtracts weight w at position i.
func (f *fenwick) remove(i int, w uint64) {
	f.total -= w
	for i++; i < len(f.sums); i += i & -i {
		f.sums[i] -= w
	}
}

// find returns the position whose part of the range [0, total) contains x.
func (f *fenwick) find(x uint64) int {
	at := 0
	for step := f.top; step > 0; step >>= 1 {
		if next := at + step; next < len(f.sums) && f.sums[next] <= x {
			at, x = next, x-f.sums[next]
		}
	}
	return at
}
