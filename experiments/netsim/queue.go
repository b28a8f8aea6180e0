package netsim

import "math/bits"

// event is one entry of the future. Events are totally ordered by their three words, so a run never depends on how the
// queue stores them: at is the instant in ps, ord settles equal instants (see order in sim.go), what says what happens.
type event struct {
	at   int64
	ord  uint64
	what uint64 // kind in the top byte, its argument below
}

func (e *event) before(f *event) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	if e.ord != f.ord {
		return e.ord < f.ord
	}
	return e.what < f.what
}

// eventQueue is a calendar in front of two heaps. The near future is cut into buckets of equal width; the bucket that
// time has reached is kept in a small heap, and what lies beyond the calendar waits in a large one. With a calendar that
// fits the traffic an event costs the same with a hundred pending as with a million; with one that does not fit, the
// heaps bound the cost at O(log n).
//
// Nothing is allocated once the pools have grown to the largest number of pending events.
type eventQueue struct {
	current heap
	far     heap
	size    int

	shift  uint    // a bucket is 2^shift ps wide
	mask   int64   // buckets - 1
	now    int64   // number of the current bucket: at >> shift
	heads  []int32 // per bucket, 1 + index of its first node; 0 is empty
	used   []uint64
	groups []uint64 // one bit per word of used that is not zero

	nodes []node
	free  int32 // 1 + index of the first free node
}

type node struct {
	event
	next int32
}

// Bounds of the calendar: below minBuckets nothing is won, above maxBuckets the buckets themselves leave the cache.
const (
	minBuckets = 1 << 10
	maxBuckets = 1 << 20
)

// newEventQueue makes a queue for about pending events that are scheduled up to horizon ps ahead. Both are advice on
// speed, not limits.
func newEventQueue(pending int, horizon int64) *eventQueue {
	buckets := minBuckets
	for buckets < maxBuckets && buckets < 2*pending {
		buckets *= 2
	}
	q := &eventQueue{mask: int64(buckets) - 1, now: -1}
	for int64(buckets)<<q.shift < horizon && q.shift < 40 {
		q.shift++
	}
	q.heads = make([]int32, buckets)
	q.used = make([]uint64, buckets/64)
	q.groups = make([]uint64, (len(q.used)+63)/64)
	q.nodes = make([]node, 0, pending+64)
	return q
}

func (q *eventQueue) len() int { return q.size }

// push schedules e. Its time must not lie before the last popped event's.
func (q *eventQueue) push(e event) {
	q.size++
	bucket := e.at >> q.shift
	switch {
	case bucket <= q.now:
		q.current.push(e)
	case bucket-q.now > q.mask:
		q.far.push(e)
	default:
		q.put(int(bucket&q.mask), e)
	}
}

func (q *eventQueue) put(slot int, e event) {
	var i int32
	if q.free != 0 {
		i = q.free - 1
		q.free = q.nodes[i].next
	} else {
		i = int32(len(q.nodes))
		q.nodes = append(q.nodes, node{})
	}
	n := &q.nodes[i]
	n.event = e
	n.next = q.heads[slot]
	q.heads[slot] = i + 1
	if n.next == 0 {
		q.used[slot>>6] |= 1 << (slot & 63)
		q.groups[slot>>12] |= 1 << (slot >> 6 & 63)
	}
}

// pop takes the earliest event; the queue must not be empty.
func (q *eventQueue) pop() event {
	if len(q.current) == 0 {
		q.advance()
	}
	q.size--
	return q.current.pop()
}

// advance moves to the next bucket that holds something and heaps its events.
func (q *eventQueue) advance() {
	slot, ahead := q.nextUsed()
	next := q.now + ahead
	if len(q.far) > 0 && (slot < 0 || q.far[0].at>>q.shift <= next) {
		next = q.far[0].at >> q.shift
		if slot >= 0 && q.now+ahead != next {
			slot = -1
		}
	}
	q.now = next
	for len(q.far) > 0 && q.far[0].at>>q.shift == next {
		q.current.push(q.far.pop())
	}
	if slot >= 0 {
		q.drain(slot)
	}
}

func (q *eventQueue) drain(slot int) {
	i := q.heads[slot]
	q.heads[slot] = 0
	q.used[slot>>6] &^= 1 << (slot & 63)
	if q.used[slot>>6] == 0 {
		q.groups[slot>>12] &^= 1 << (slot >> 6 & 63)
	}
	for i != 0 {
		n := &q.nodes[i-1]
		q.current.push(n.event)
		next := n.next
		n.next = q.free
		q.free = i
		i = next
	}
}

// nextUsed finds the first bucket after the current one that is not empty, and how far ahead it is; slot is -1 if all
// are empty.
func (q *eventQueue) nextUsed() (slot int, ahead int64) {
	start := int((q.now + 1) & q.mask)
	word := start >> 6
	if w := q.used[word] >> (start & 63) << (start & 63); w != 0 {
		slot = word<<6 + bits.TrailingZeros64(w)
		return slot, q.distance(slot)
	}
	for range len(q.groups) + 1 {
		word++ // resume behind the word that was looked at
		if word >= len(q.used) {
			word = 0
		}
		group := word >> 6
		if g := q.groups[group] >> (word & 63) << (word & 63); g != 0 {
			word = group<<6 + bits.TrailingZeros64(g)
			slot = word<<6 + bits.TrailingZeros64(q.used[word])
			return slot, q.distance(slot)
		}
		word = group<<6 | 63
	}
	return -1, 0
}

// distance is how many buckets slot lies ahead of the current one.
func (q *eventQueue) distance(slot int) int64 { return (int64(slot)-q.now-1)&q.mask + 1 }

// heap is a 4-ary min-heap of events.
type heap []event

func (h *heap) push(e event) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
	*h = s
}

func (h *heap) pop() event {
	s := *h
	top := s[0]
	last := len(s) - 1
	e := s[last]
	s = s[:last]
	*h = s
	if last == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= last {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, last); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if !s[least].before(&e) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = e
	return top
}
