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

	batch int // buckets that are taken at once
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

// manyPending is how many events no longer fit a second-level cache together with what they are about.
const manyPending = 4096

// newEventQueue makes a queue for about pending events that are scheduled up to horizon ps ahead. Both are advice on
// speed, not limits.
func newEventQueue(pending int, horizon int64) *eventQueue {
	buckets := minBuckets
	for buckets < maxBuckets && buckets < 4*pending {
		buckets *= 2
	}
	q := &eventQueue{mask: int64(buckets) - 1, now: -1, batch: 1}
	if pending >= manyPending {
		q.batch = ahead
	}
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

// advance moves to the next buckets that hold something and heaps their events: one while everything fits the cache,
// several at once when their nodes have to be fetched from memory, so that the fetches overlap.
func (q *eventQueue) advance() {
	var slots [ahead]int
	n := 0
	next := q.now
	for n < q.batch {
		slot, distance := q.nextUsed(next)
		if slot < 0 || next+distance-q.now > q.mask {
			break
		}
		next += distance
		slots[n] = slot
		n++
	}
	if len(q.far) > 0 && (n == 0 || q.far[0].at>>q.shift <= next) {
		q.advanceFar(slots[:n])
		return
	}
	q.now = next
	q.drain(slots[:n])
}

// ahead is the largest number of buckets that are taken at once.
const ahead = 16

// advanceFar is advance where the far heap has something to say: one bucket only.
func (q *eventQueue) advanceFar(slots []int) {
	next := q.far[0].at >> q.shift
	if len(slots) > 0 {
		first := q.now + q.distance(q.now, slots[0])
		if first <= next {
			q.now = first
			q.drain(slots[:1])
		}
		next = min(first, next)
	}
	q.now = next
	for len(q.far) > 0 && q.far[0].at>>q.shift == next {
		q.current.push(q.far.pop())
	}
}

// drain moves the events of some buckets to the current heap, which is empty, a node of every bucket in turn: those
// fetches do not wait for one another.
func (q *eventQueue) drain(slots []int) {
	var lists [ahead]int32
	for i, slot := range slots {
		lists[i] = q.heads[slot]
		q.heads[slot] = 0
		q.used[slot>>6] &^= 1 << (slot & 63)
		if q.used[slot>>6] == 0 {
			q.groups[slot>>12] &^= 1 << (slot >> 6 & 63)
		}
	}
	for left := len(slots); left > 0; {
		still := 0
		for _, i := range lists[:left] {
			n := &q.nodes[i-1]
			q.current = append(q.current, n.event)
			next := n.next
			n.next = q.free
			q.free = i
			if next != 0 {
				lists[still] = next
				still++
			}
		}
		left = still
	}
	q.current.order()
}

// nextUsed finds the first bucket after the given one that is not empty, and how far ahead it is; slot is -1 if all are
// empty. It may come round to the given bucket itself.
func (q *eventQueue) nextUsed(after int64) (slot int, distance int64) {
	start := int((after + 1) & q.mask)
	word := start >> 6
	if w := q.used[word] >> (start & 63) << (start & 63); w != 0 {
		slot = word<<6 + bits.TrailingZeros64(w)
		return slot, q.distance(after, slot)
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
			return slot, q.distance(after, slot)
		}
		word = group<<6 | 63
	}
	return -1, 0
}

// distance is how many buckets slot lies ahead of another.
func (q *eventQueue) distance(after int64, slot int) int64 { return (int64(slot)-after-1)&q.mask + 1 }

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
	*h = s[:last]
	if last > 0 {
		s[:last].sink(0, e)
	}
	return top
}

// sink puts e in place i or below.
func (h heap) sink(i int, e event) {
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}

// order makes a heap of events in any order.
func (h heap) order() {
	for i := (len(h) - 2) / 4; i >= 0 && len(h) > 1; i-- {
		h.sink(i, h[i])
	}
}
