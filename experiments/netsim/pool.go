package netsim

import "github.com/olafctl/olaf"

// pool allocates indices of reusable items, the last released first.
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

// len returns the number of allocated items.
func (p *pool[T]) len() int { return len(p.items) - len(p.free) }

// line is a FIFO queue in a ring that grows.
type line[T any] struct {
	items []T // the length is a power of two
	head  uint32
	tail  uint32
}

func (l *line[T]) len() int { return int(l.tail - l.head) }

// at returns item i, counted from the first.
func (l *line[T]) at(i int) *T {
	return &l.items[int(l.head+uint32(i))&(len(l.items)-1)]
}

// push adds an item for the caller to fill; it may contain old data.
func (l *line[T]) push() *T {
	if l.len() == len(l.items) {
		l.grow()
	}
	l.tail++
	return l.at(l.len() - 1)
}

func (l *line[T]) grow() {
	items := make([]T, max(4, 2*len(l.items)))
	for i := range l.len() {
		items[i] = *l.at(i)
	}
	l.items, l.head, l.tail = items, 0, uint32(l.len())
}

// drop removes the first item.
func (l *line[T]) drop() { l.head++ }

// unwrapStamp unwraps a stamp modulo 2^48 ns that is not later than at.
func unwrapStamp(at olaf.Time, genNS uint64) olaf.Time {
	age := (uint64(at.NS()) - genNS) % olaf.GenModulus
	return olaf.Time(at.NS()-int64(age)) * olaf.Time(olaf.Nanosecond)
}
