// Package calendar is the future of a simulation: events that come out in order, at a cost that does not grow with how many
// wait.
package calendar

import (
	"math"
	"math/bits"
)

// Event is one entry of the future. Events are totally ordered by their three words, so a run never depends on how the
// queue stores them: At is the instant in ps, Ord settles equal instants, What says what happens, in the simulation's words.
type Event struct {
	At   int64
	Ord  uint64
	What uint64 // kind in the top byte, its argument below
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

// Queue is a calendar in two steps in front of a heap. The near future, two blocks of time, is cut into buckets of
// equal width, and the bucket that time has reached is kept in a small heap. What lies beyond those two blocks is written
// down block by block, unordered, in chunks of memory that are filled and read from front to back: with a hundred
// thousand pending events nothing else is kind to caches. When time enters a block, the one behind it is opened: its
// events are dealt to buckets. What lies beyond all blocks waits in a large heap.
//
// With a calendar that fits the traffic an event costs the same with a hundred pending as with a million; with one that
// does not fit, the heaps bound the cost at O(log n). Nothing is allocated once the pools have grown to the largest
// number of pending events.
type Queue struct {
	current heap
	size    int

	shift uint  // a bucket is 2^shift ps wide
	block uint  // a block is 2^block buckets wide
	now   int64 // number of the current bucket: at >> shift

	heads []int32 // per bucket of two blocks, 1 + index of its first node; 0 is empty
	used  bitset  // of heads
	nodes []node
	free  int32 // 1 + index of the first free node

	opened     int64   // number of the last block that was dealt to buckets
	blocks     []int32 // per block behind it, 1 + index of the chunk that is being filled; 0 is empty
	usedBlocks bitset
	chunks     []chunk
	freeChunk  int32 // 1 + index of the first free chunk

	far heap

	// Opening, unless nil, sees the events of a block before they are due: a chance to fetch what they are about.
	Opening func([]Event)
}

type node struct {
	Event
	next int32
}

// chunk holds events of one block; it fills whole cache lines.
type chunk struct {
	events [chunkEvents]Event
	count  int32
	next   int32 // 1 + index of a full chunk of the same block
}

const chunkEvents = 21

// Bounds of the calendar: with fewer than minBuckets nothing is won, and maxBuckets make as many blocks as fit a bitset.
// minBuckets are one block, so that small networks have all in buckets. Otherwise blocks are small enough for the events
// of two of them, and the workers they are about, to stay in the first-level cache or near it.
const (
	minBuckets = 1 << 10
	maxBuckets = 1 << 20
	blockBits  = 8 // log2 of the buckets of a block
)

// New makes a queue for about pending events that are scheduled up to horizon ps ahead. Both are advice on
// speed, not limits.
func New(pending int, horizon int64) *Queue {
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

// Len is how many events wait.
func (q *Queue) Len() int { return q.size }

// Push schedules e. Its time must not lie before the last popped event's.
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
		q.put(bucket, e)
	case ahead <= int64(len(q.blocks)):
		q.write(bucket>>q.block, e)
	default:
		q.far.push(e)
	}
}

// put adds e to a bucket of the open blocks.
func (q *Queue) put(bucket int64, e Event) {
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

// write adds e to a block that is not open yet.
func (q *Queue) write(block int64, e Event) {
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

// newChunk gives 1 + the index of an empty chunk in front of next.
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

// Pop takes the earliest event; the queue must not be empty.
func (q *Queue) Pop() Event {
	if len(q.current) == 0 {
		q.advance()
	}
	q.size--
	return q.current.pop()
}

// advance moves to the next bucket that holds something and heaps its events.
func (q *Queue) advance() {
	mask := len(q.heads) - 1
	start := int(q.now+1) & mask
	slot := q.used.next(start)
	for slot < 0 { // both open blocks are empty
		next := q.nextBlock()
		q.now = next<<q.block - 1
		q.open(next)
		start = int(q.now+1) & mask
		slot = q.used.next(start)
	}
	q.now += int64((slot-start)&mask) + 1
	q.drain(slot)
	if q.now>>q.block == q.opened {
		q.open(q.opened + 1)
	}
}

// nextBlock is the first that holds something behind those that are open.
func (q *Queue) nextBlock() int64 {
	mask := len(q.blocks) - 1
	start := int(q.opened+1) & mask
	next := int64(math.MaxInt64)
	if slot := q.usedBlocks.next(start); slot >= 0 {
		next = q.opened + 1 + int64((slot-start)&mask)
	}
	if len(q.far) > 0 {
		next = min(next, q.far[0].At>>q.shift>>q.block)
	}
	return next
}

// open deals the events of a block to buckets.
func (q *Queue) open(block int64) {
	q.opened = block
	slot := int(block) & (len(q.blocks) - 1)
	for i := q.blocks[slot]; i != 0; {
		c := &q.chunks[i-1]
		if q.Opening != nil {
			q.Opening(c.events[:c.count])
		}
		for k := range c.events[:c.count] {
			q.put(c.events[k].At>>q.shift, c.events[k])
		}
		i, c.next, q.freeChunk = c.next, q.freeChunk, i
	}
	q.blocks[slot] = 0
	q.usedBlocks.clear(slot)
	for len(q.far) > 0 && q.far[0].At>>q.shift>>q.block == block {
		e := q.far.pop()
		q.put(e.At>>q.shift, e)
	}
}

// drain moves the events of a bucket to the current heap, which is empty.
func (q *Queue) drain(slot int) {
	for i := q.heads[slot]; i != 0; {
		n := &q.nodes[i-1]
		q.current = append(q.current, n.Event)
		i, n.next, q.free = n.next, q.free, i
	}
	q.heads[slot] = 0
	q.used.clear(slot)
	q.current.order()
}

// bitset marks some of 4096 places.
type bitset struct {
	words [64]uint64
	any   uint64 // one bit per word that is not zero
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

// next is the first marked place from i on, or else the first of all; -1 when none is.
func (b *bitset) next(i int) int {
	word := i >> 6 & 63
	if w := b.words[word] >> (i & 63); w != 0 {
		return i + bits.TrailingZeros64(w)
	}
	rest := b.any &^ (2<<word - 1) // the words behind that one
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
		s[:last].sink(0, e)
	}
	return top
}

// sink puts e in place i or below.
func (h heap) sink(i int, e Event) {
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
