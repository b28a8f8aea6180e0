package node

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/splitmix"
)

// Direction is one direction of a link: what it was handed, and what of that it loses.
type Direction struct {
	Frames, Lost uint64
	Bytes        uint64 // handed over, without what is beside a frame
	Busy         int64  // ps

	below uint64 // a frame is lost when its draw is below
	every uint64 // a frame is lost when its number is a multiple; 0 is none
	salt  uint64
}

// Lose makes a direction lose a share of its frames, 0 to 1, and every so-many-th beside that; 0 is none. Each frame is drawn by its
// number there under the seed and the direction's own number, so that no draw depends on what happens elsewhere.
func (d *Direction) Lose(share float64, every int, seed uint64, number int) {
	d.below, d.every, d.salt = uint64(share*(1<<63)), uint64(every), splitmix.Mix(seed^uint64(number+1)<<32)
}

// Carry counts a frame that is handed over and takes so many ps of the link, and says whether it vanishes there.
func (d *Direction) Carry(size olaf.Size, takes int64) (lost bool) {
	d.Busy += takes
	d.Bytes += uint64(size)
	d.Frames++
	if d.below > 0 && splitmix.Mix(d.salt+d.Frames)>>1 < d.below || d.every > 0 && d.Frames%d.every == 0 {
		d.Lost++
		return true
	}
	return false
}

// Wire is a direction of a link with the queue in front of it, which frames leave in the order in which they were handed over.
type Wire struct {
	Direction
	Delay int64     // ps
	Least int64     // ps of any frame
	Mark  olaf.Size // waiting from which frames are marked; 0 marks none
	// Through says that a frame leaves while it still arrives, though not before it is here.
	Through bool
	Line    *Line // of frames that wait; nil is without a limit
	Free    int64 // ps from which the next frame can leave

	clock engine.Clock
	size  olaf.Size // of the last frame, and
	ticks int64     // what it took
}

// NewWire is an idle wire whose frames take their time by a clock of picoseconds.
func NewWire(clock engine.Clock, delay olaf.Duration) Wire {
	return Wire{clock: clock, Delay: int64(delay)}
}

// Fate is what becomes of a frame that is handed to a wire, beside its passing; the zero value is nothing.
type Fate uint8

const (
	Full   Fate = 1 << iota // it found no room, and nothing of it was on the wire
	Marked                  // it found much waiting
	Lost                    // it vanished on the wire
)

// Pass hands over a frame at an instant that is not before that of the last one. took is what its last bit came after its first,
// of one that came over another wire. Its last bit arrives at the other end at an instant, and it takes so many ps of the wire.
func (w *Wire) Pass(at, took int64, size olaf.Size) (arrives, takes int64, fate Fate) {
	if w.Line != nil && !w.Line.holds(at, w.Free) {
		return 0, 0, Full
	}
	takes = w.takes(size)
	if w.Mark > 0 && w.Free > at && (w.Free-at)/takes*int64(size) >= int64(w.Mark) {
		fate = Marked
	}
	if w.Through {
		w.Free = max(max(w.Free, at-took)+takes, at)
	} else {
		w.Free = max(w.Free, at) + takes
	}
	if w.Carry(size, takes) {
		fate |= Lost
	}
	return w.Free + w.Delay, takes, fate
}

// takes is how long a frame takes of the wire.
func (w *Wire) takes(size olaf.Size) int64 {
	if size != w.size {
		w.size, w.ticks = size, max(w.clock.Ticks(size), w.Least)
	}
	return w.ticks
}

// Line is the frames that wait for a wire, where not any number may.
type Line struct {
	Most    int // that waited at a time
	Dropped uint64

	slots  int
	starts []int64 // when each will begin to leave
}

// NewLine has room for so many frames beside the one on the wire; nil, without a limit, of 0.
func NewLine(slots int) *Line {
	if slots == 0 {
		return nil
	}
	return &Line{slots: slots, starts: make([]int64, 0, slots)}
}

// holds says whether there is room for a frame that comes at an instant, and keeps when it will begin to leave: when the wire
// is free.
func (l *Line) holds(at, free int64) bool {
	gone := 0
	for gone < len(l.starts) && l.starts[gone] <= at {
		gone++
	}
	l.starts = append(l.starts[:0], l.starts[gone:]...)
	switch {
	case free <= at:
		return true // it leaves at once
	case len(l.starts) == l.slots:
		l.Dropped++
		return false
	}
	l.starts = append(l.starts, free)
	l.Most = max(l.Most, len(l.starts))
	return true
}

// Waiting is how many frames wait at an instant from that of the last frame on.
func (l *Line) Waiting(at int64) (n int) {
	for _, start := range l.starts {
		if start > at {
			n++
		}
	}
	return n
}
