package closedloop

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/splitmix"
)

// Direction models one direction of a link. It counts frames and decides which of them are lost.
type Direction struct {
	Frames, Lost uint64
	Bytes        uint64 // handed over, without per-frame overhead
	Busy         int64  // ps

	below uint64 // frames are lost if their draw is below this
	every uint64 // a frame is lost if its number is a multiple of this; 0 for none
	salt  uint64
}

// SetLoss makes a direction lose a random share of its frames, from 0 to 1. If every is not 0, the direction also loses
// every n-th frame, where n is the value of every. The draw for a frame depends only on the frame's number, the
// direction's number and the seed, so events elsewhere do not affect it.
func (d *Direction) SetLoss(share float64, every int, seed uint64, number int) {
	d.below, d.every, d.salt = uint64(share*(1<<63)), uint64(every), splitmix.MixBits(seed^uint64(number+1)<<32)
}

// Carry counts a frame that takes the given time on the link, in ps, and reports whether the frame is lost.
func (d *Direction) Carry(size olaf.Size, takes int64) (lost bool) {
	d.Busy += takes
	d.Bytes += uint64(size)
	d.Frames++
	if d.below > 0 && splitmix.MixBits(d.salt+d.Frames)>>1 < d.below || d.every > 0 && d.Frames%d.every == 0 {
		d.Lost++
		return true
	}
	return false
}

// Wire is one direction of a link with a FIFO queue in front of it.
type Wire struct {
	Direction
	Delay int64     // ps
	Least int64     // ps for any frame
	Mark  olaf.Size // backlog from which frames are marked; 0 marks none
	// Through selects cut-through: a frame leaves while it is still arriving, but not before its first bit.
	Through bool
	Line    *Line // waiting frames; nil for no limit
	Free    int64 // time in ps at which the next frame can leave

	clock engine.Clock
	size  olaf.Size // size of the last frame
	ticks int64     // transmission time of the last frame
}

// NewWire returns an idle wire. clock determines the transmission times and must count in picoseconds.
func NewWire(clock engine.Clock, delay olaf.Duration) Wire {
	return Wire{clock: clock, Delay: int64(delay)}
}

// SetClock changes the transmission times, beginning with the next frame.
func (w *Wire) SetClock(clock engine.Clock) { w.clock, w.size = clock, 0 }

// Fate describes what happened to a frame on a wire. Zero means that it arrived.
type Fate uint8

const (
	Full   Fate = 1 << iota // the queue had no room, and the frame was never on the wire
	Marked                  // the queue was long
	Lost                    // the frame was lost on the wire
)

// Pass hands a frame to the wire at an instant that must not be before the previous frame's. For a frame that comes
// from another wire, took is the time between its first and its last bit. Pass returns when the last bit arrives at the
// other end, and the transmission time, both in ps.
func (w *Wire) Pass(at, took int64, size olaf.Size) (arrives, takes int64, fate Fate) {
	if w.Line != nil && !w.Line.admitFrame(at, w.Free) {
		return 0, 0, Full
	}
	takes = w.transmissionTime(size)
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

// transmissionTime returns the transmission time of a frame.
func (w *Wire) transmissionTime(size olaf.Size) int64 {
	if size != w.size {
		w.size, w.ticks = size, max(w.clock.Ticks(size), w.Least)
	}
	return w.ticks
}

// Line is the queue of frames that wait for a wire, up to a limit.
type Line struct {
	Most    int // maximum number waiting at once
	Dropped uint64

	slots  int
	starts []int64 // when each waiting frame begins to leave
}

// NewLine returns a line with room for the given number of frames, in addition to the frame on the wire. For 0 it
// returns nil, which means that there is no limit.
func NewLine(slots int) *Line {
	if slots == 0 {
		return nil
	}
	return &Line{slots: slots, starts: make([]int64, 0, slots)}
}

// admitFrame reports whether there is room for a frame that arrives at the time at. If there is, the frame is recorded
// as waiting until the wire is free.
func (l *Line) admitFrame(at, free int64) bool {
	gone := 0
	for gone < len(l.starts) && l.starts[gone] <= at {
		gone++
	}
	l.starts = append(l.starts[:0], l.starts[gone:]...)
	switch {
	case free <= at:
		return true // the frame leaves at once
	case len(l.starts) == l.slots:
		l.Dropped++
		return false
	}
	l.starts = append(l.starts, free)
	l.Most = max(l.Most, len(l.starts))
	return true
}

// Waiting returns the number of frames that wait at an instant, which must not be before the last frame's arrival.
func (l *Line) Waiting(at int64) (n int) {
	for _, start := range l.starts {
		if start > at {
			n++
		}
	}
	return n
}
