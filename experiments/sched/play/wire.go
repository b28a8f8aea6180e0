package play

import (
	"math"

	"github.com/olafctl/olaf"
)

// step is a rate that is valid from an instant on.
type step struct {
	from int64 // ps
	rate float64
}

// wire is one direction of a cable: an interface, or all connections from one unit to another. It is FIFO. Before a
// connection is taken down it is drained: frames that were sent until then still cross it.
type wire struct {
	steps []step
	at    int
	free  int64
}

// sendFrame returns the time at which a frame leaves the wire. now is the time at which the frame is handed over, and
// sent the time at which its host sent it. ok is false if there is no connection now or later.
func (w *wire) sendFrame(now, sent int64, bits float64) (left int64, ok bool) {
	t := max(now, w.free)
	for w.at+1 < len(w.steps) && w.steps[w.at+1].from <= t {
		w.at++
	}
	rate := w.steps[w.at].rate
	if rate == 0 && w.at > 0 && sent < w.steps[w.at].from {
		rate = w.steps[w.at-1].rate
	}
	for rate == 0 {
		if w.at+1 == len(w.steps) {
			return 0, false
		}
		w.at++
		rate, t = w.steps[w.at].rate, max(t, w.steps[w.at].from)
	}
	w.free = t + int64(math.Round(bits/rate*float64(olaf.Second)))
	return w.free, true
}

// newInterface returns the wire of an interface with the given rate.
func newInterface(rate float64) wire { return wire{steps: []step{{0, rate}}} }
