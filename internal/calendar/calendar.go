// Package calendar implements the event queue of a simulation. It returns events in order, at a cost that does not grow
// with the number of events.
package calendar

import (
	"math"
	"math/bits"
)

// Event is a scheduled event. Its three fields define a total order, so that a run does not depend on the
// implementation of the queue. At is the time in ps, Ord orders simultaneous events, and What identifies the action to
// the simulation.
type Event struct {
	At   int64
	Ord  uint64
	What uint64 // kind of event in the top byte, argument below
}

func (e *Event) before(f *Event) bool {
	if e.At != f.At {
		return e.At < f.At
	}
	if e.Ord != f.Ord {
		return e.Ord < f.Ord
	}
	return e.What < f.What
}

// Queue is a two-stage calendar followed by a heap. The near future consists of two blocks of time that are divided
// into buckets of equal width. The current bucket is a small heap. Later events are stored by block, unordered, in
// chunks of memory that are written and read sequentially, because only sequential access is cache-friendly with a
// hundred thousand pending events. When time enters a block, the queue opens the next block and distributes its events
// to buckets. Events after the last block are stored in a large heap.
//
// If the calendar fits the traffic, an event costs the same with a hundred pending events as with a million. If not,
// the heaps limit the cost to O(log n). When the pools have grown to the maximum number of pending events, the queue no
// longer allocates memory.
type Queue struct {
	current heap
	size    int

	shift uint  // a bucket is 2^shift ps wide
	block uint  // a block is 2^block buckets wide
	now   int64 // number of the current bucket; an event is in bucket at >> shift

	heads []int32 // per bucket of two blocks, 1 + index of its first node; 0 if empty
	used  bitset  // which heads are not 0
	nodes []node
	free  int32 // 1 + index of the first free node

	opened     int64   // number of the last block distributed to buckets
	blocks     []int32 // per later block, 1 + index of the chunk being filled; 0 if empty
	usedBlocks bitset
	chunks     []chunk
	freeChunk  int32 // 1 + index of the first free chunk

	far heap

	// Opening, if not nil, is called with the events in a block before they are due. It prefetches the data that they
	// need.
	Opening func([]Event)
}

type node struct {
	Event
	next int32
}

// chunk contains events of one block. It fills whole cache lines.
type chunk struct {
	events [chunkEvents]Event
	count  int32
	next   int32 // 1 + index of a full chunk of the same block
}

const chunkEvents = 21

// Limits of the calendar. Fewer buckets than minBuckets gain nothing. maxBuckets give as many blocks as fit into a
// bitset. minBuckets are one block, so that small networks need only buckets. For larger networks, blocks are small
// enough that the events of two blocks, with their workers, stay in or near the first-level cache.
const (
	minBuckets = 1 << 10
	maxBuckets = 1 << 20
	blockBits  = 8 // log2 of the buckets per block
)

// NewQueue returns a queue for about the given number of pending events, which are scheduled at most horizon ps ahead.
// Both values affect only speed and are not limits.
func NewQueue(pending int, horizon int64) *Queue {
	buckets := minBuckets
	for buckets < maxBuckets && buckets < 4*pending {
		buckets *= 2
	}
	q := &Queue{now: -1, opened: 1, block: blockBits}
	if buckets == minBuckets {
		q.block = uint(bits.TrailingZeros(minBuckets))
	}
	for int64(buckets)<<q.shift < horizon && q.shift < 40 {
		q.shift++
	}
	q.heads = make([]int32, 2<<q.block)
	q.blocks = make([]int32, buckets>>q.block)
	return q
}

// Len returns the number of pending events.
func (q *Queue) Len() int { return q.size }

// Push adds an event to the queue. It must not be earlier than the last event returned by Pop.
func (q *Queue) Push(e Event) {
	q.size++
	bucket := e.At >> q.shift
	if bucket <= q.now {
		q.current.push(e)
		return
	}
	ahead := bucket>>q.block - q.opened
	switch {
	case ahead <= 0:
		q.putInBucket(bucket, e)
	case ahead <= int64(len(q.blocks)):
		q.putInBlock(bucket>>q.block, e)
	default:
		q.far.push(e)
	}
}

// putInBucket adds e to a bucket in one of the open blocks.
func (q *Queue) putInBucket(bucket int64, e Event) {
	var i int32
	if q.free != 0 {
		i = q.free - 1
		q.free = q.nodes[i].next
	} else {
		i = int32(len(q.nodes))
		q.nodes = append(q.nodes, node{})
	}
	slot := int(bucket) & (len(q.heads) - 1)
	n := &q.nodes[i]
	n.Event = e
	n.next = q.heads[slot]
	q.heads[slot] = i + 1
	q.used.set(slot)
}

// putInBlock adds e to a block that is not open yet.
func (q *Queue) putInBlock(block int64, e Event) {
	slot := int(block) & (len(q.blocks) - 1)
	i := q.blocks[slot]
	if i == 0 || q.chunks[i-1].count == chunkEvents {
		i = q.newChunk(i)
		q.blocks[slot] = i
		q.usedBlocks.set(slot)
	}
	c := &q.chunks[i-1]
	c.events[c.count] = e
	c.count++
}

// newChunk returns 1 + the index of an empty chunk, linked to next.
func (q *Queue) newChunk(next int32) int32 {
	i := q.freeChunk
	if i != 0 {
		q.freeChunk = q.chunks[i-1].next
	} else {
		q.chunks = append(q.chunks, chunk{})
		i = int32(len(q.chunks))
	}
	q.chunks[i-1].count, q.chunks[i-1].next = 0, next
	return i
}

// Pop removes and returns the earliest event. The queue must not be empty.
func (q *Queue) Pop() Event {
	if len(q.current) == 0 {
		q.advance()
	}
	q.size--
	return q.current.pop()
}

// advance moves to the next non-empty bucket and arranges its events as a heap.
func (q *Queue) advance() {
	mask := len(q.heads) - 1
	start := int(q.now+1) & mask
	slot := q.used.nextFrom(start)
	for slot < 0 { // both open blocks are empty
		next := q.nextBlock()
		q.now = next<<q.block - 1
		q.openBlock(next)
		start = int(q.now+1) & mask
		slot = q.used.nextFrom(start)
	}
	q.now += int64((slot-start)&mask) + 1
	q.drainBucket(slot)
	if q.now>>q.block == q.opened {
		q.openBlock(q.opened + 1)
	}
}

// nextBlock returns the first non-empty block after the open ones.
func (q *Queue) nextBlock() int64 {
	mask := len(q.blocks) - 1
	start := int(q.opened+1) & mask
	next := int64(math.MaxInt64)
	if slot := q.usedBlocks.nextFrom(start); slot >= 0 {
		next = q.opened + 1 + int64((slot-start)&mask)
	}
	if len(q.far) > 0 {
		next = min(next, q.far[0].At>>q.shift>>q.block)
	}
	return next
}

// openBlock distributes the events of a block to buckets.
func (q *Queue) openBlock(block int64) {
	q.opened = block
	slot := int(block) & (len(q.blocks) - 1)
	for i := q.blocks[slot]; i != 0; {
		c := &q.chunks[i-1]
		if q.Opening != nil {
			q.Opening(c.events[:c.count])
		}
		for k := range c.events[:c.count] {
			q.putInBucket(c.events[k].At>>q.shift, c.events[k])
		}
		i, c.next, q.freeChunk = c.next, q.freeChunk, i
	}
	q.blocks[slot] = 0
	q.usedBlocks.clear(slot)
	for len(q.far) > 0 && q.far[0].At>>q.shift>>q.block == block {
		e := q.far.pop()
		q.putInBucket(e.At>>q.shift, e)
	}
}

// drainBucket moves the events in a bucket to the current heap, which must be empty.
func (q *Queue) drainBucket(slot int) {
	for i := q.heads[slot]; i != 0; {
		n := &q.nodes[i-1]
		q.current = append(q.current, n.Event)
		i, n.next, q.free = n.next, q.free, i
	}
	q.heads[slot] = 0
	q.used.clear(slot)
	q.current.heapify()
}

// bitset is a set of numbers from 0 to 4095.
type bitset struct {
	words [64]uint64
	any   uint64 // one bit per non-zero word
}

func (b *bitset) set(i int) {
	b.words[i>>6&63] |= 1 << (i & 63)
	b.any |= 1 << (i >> 6 & 63)
}

func (b *bitset) clear(i int) {
	w := &b.words[i>>6&63]
	*w &^= 1 << (i & 63)
	if *w == 0 {
		b.any &^= 1 << (i >> 6 & 63)
	}
}

// nextFrom returns the first element that is at least i, or else the first element of the set, or -1 if the set is
// empty.
func (b *bitset) nextFrom(i int) int {
	word := i >> 6 & 63
	if w := b.words[word] >> (i & 63); w != 0 {
		return i + bits.TrailingZeros64(w)
	}
	rest := b.any &^ (2<<word - 1) // the words after that one
	if rest == 0 {
		rest = b.any
	}
	if rest == 0 {
		return -1
	}
	word = bits.TrailingZeros64(rest)
	return word<<6 + bits.TrailingZeros64(b.words[word])
}

// heap is a 4-ary min-heap of events.
type heap []Event

func (h *heap) push(e Event) {
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

func (h *heap) pop() Event {
	s := *h
	top := s[0]
	last := len(s) - 1
	e := s[last]
	*h = s[:last]
	if last > 0 {
		s[:last].siftDown(0, e)
	}
	return top
}

// siftDown puts e at index i or moves it further down to restore the heap order.
func (h heap) siftDown(i int, e Event) {
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

// heapify arranges unordered events as a heap.
func (h heap) heapify() {
	for i := (len(h) - 2) / 4; i >= 0 && len(h) > 1; i-- {
		h.siftDown(i, h[i])
	}
}
