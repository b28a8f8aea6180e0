package netsim

import "github.com/olafctl/olaf"

// What enters a link leaves it in the same order, a constant delay later. So a link is a line, of which only the first
// frame has an event, and its memory is walked from front to back.

// frame is an update, or a background packet, on the link behind a port. It fills one cache line.
type frame struct {
	at       int64 // when it is at the other end, and
	ord      uint64
	update   olaf.Update // its Count is 0 when it is none, or lost
	appended olaf.Time
	inside   int32 // number of contributors
	place    int32 // of the first of them in the link's ring; else of a background packet's source, or lost
}

// lost is the place of a frame that its link lost, or that was leaving when it failed.
const lost int32 = -1

// link holds the frames behind a port, and in another ring who is inside them, each frame's contributors side by side.
type link struct {
	line[frame]
	inside     []olaf.Contributor
	head, tail int32
}

// push makes room for a frame and notes its contributors.
func (l *link) push(inside []olaf.Contributor) *frame {
	n := int32(len(inside))
	if l.len() == 0 {
		l.head, l.tail = 0, 0
	}
	for !l.room(n) {
		l.growInside()
	}
	f := l.line.push()
	f.inside, f.place = n, l.tail
	copy(l.inside[l.tail:], inside)
	l.tail += n
	return f
}

// room says whether n contributors fit, at tail, which moves to the ring's start if they do not fit before its end.
func (l *link) room(n int32) bool {
	end := int32(len(l.inside))
	if l.tail < l.head {
		return l.tail+n < l.head
	}
	if l.tail+n <= end {
		return true
	}
	if n < l.head {
		l.tail = 0
		return true
	}
	return false
}

// growInside doubles the ring and writes it anew from its start.
func (l *link) growInside() {
	was := l.inside
	l.inside = make([]olaf.Contributor, max(8, 2*len(was)))
	l.head, l.tail = 0, 0
	for i := range l.len() {
		f := l.at(i)
		if f.inside == 0 {
			continue
		}
		copy(l.inside[l.tail:], was[f.place:f.place+f.inside])
		f.place = l.tail
		l.tail += f.inside
	}
}

// contributors lists who is inside f; nil when nobody logged it.
func (l *link) contributors(f *frame) []olaf.Contributor {
	if f.inside == 0 {
		return nil
	}
	return l.inside[f.place : f.place+f.inside]
}

// drop takes the first frame away.
func (l *link) drop() {
	if f := l.at(0); f.inside > 0 {
		l.head = f.place + f.inside
	}
	l.line.drop()
}
