package netsim

import "github.com/olafctl/olaf"

// A link delivers frames in order after a constant delay. It is therefore a queue in which only the first frame needs
// an event, and whose memory is accessed sequentially.

// frame is an update, or a background packet, on the link behind a port. It fits in one cache line.
type frame struct {
	at       int64 // when it reaches the other end, and
	ord      uint64
	update   olaf.Update // Count is 0 for other packets and lost ones
	appended olaf.Time
	inside   int32 // number of contributors
	place    int32 // of the first of them in the link's ring; else index of the background source, or lost
}

// lost is the place of a frame that was lost on its link, or cut off by a link failure.
const lost int32 = -1

// link contains the frames behind a port, and in another ring their contributors, contiguous for each frame.
type link struct {
	line[frame]
	inside     []olaf.Contributor
	head, tail int32
}

// pushFrame adds a frame and copies its contributors.
func (l *link) pushFrame(inside []olaf.Contributor) *frame {
	n := int32(len(inside))
	if l.len() == 0 {
		l.head, l.tail = 0, 0
	}
	for !l.hasRoom(n) {
		l.growInside()
	}
	f := l.line.push()
	f.inside, f.place = n, l.tail
	copy(l.inside[l.tail:], inside)
	l.tail += n
	return f
}

// hasRoom reports whether n contributors fit at tail, which moves to the ring's start if they do not fit before its end.
func (l *link) hasRoom(n int32) bool {
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

// growInside doubles the ring and moves its content to the start.
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

// contributorsOf returns the contributors of f, or nil if they were not logged.
func (l *link) contributorsOf(f *frame) []olaf.Contributor {
	if f.inside == 0 {
		return nil
	}
	return l.inside[f.place : f.place+f.inside]
}

// dropFirst removes the first frame.
func (l *link) dropFirst() {
	if f := l.at(0); f.inside > 0 {
		l.head = f.place + f.inside
	}
	l.line.drop()
}
