package netsim

import "github.com/olafctl/olaf"

// pool hands out indices of reusable items, the last returned first.
type pool[T any] struct {
	items []T
	free  []int32
}

func (p *pool[T]) take() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.items = append(p.items, *new(T))
	return int32(len(p.items) - 1)
}

func (p *pool[T]) give(i int32) { p.free = append(p.free, i) }

// ring is a bounded FIFO of frames: the background packets that wait at a port.
type ring struct {
	limit int
	items []int32
	head  int
}

func (r *ring) len() int { return len(r.items) - r.head }

// push is refused when the ring is full.
func (r *ring) push(i int32) bool {
	if r.len() >= r.limit {
		return false
	}
	if r.head > 0 && len(r.items) == cap(r.items) {
		r.items = r.items[:copy(r.items, r.items[r.head:])]
		r.head = 0
	}
	r.items = append(r.items, i)
	return true
}

func (r *ring) pop() int32 {
	i := r.items[r.head]
	r.head++
	return i
}

// generated unwraps a stamp that is modulo 2^48 ns, given that it is not after at.
func generated(at olaf.Time, genNS uint64) olaf.Time {
	age := (uint64(at.NS()) - genNS) % olaf.GenModulus
	return olaf.Time(at.NS()-int64(age)) * olaf.Time(olaf.Nanosecond)
}
