package endpoint

import "github.com/olafctl/olaf"

// AIMD is a congestion window. It is adjusted once per window: it halves after congestion and otherwise grows by a
// step. It rounds in the same way as ATP's released client (common/CC_manager.h).
type AIMD struct {
	frame, step, most, bytes olaf.Size
}

// aimdStep is the step by which ATP's window grows.
const aimdStep olaf.Size = 1500

// newAIMD returns a window with the given number of frames, which is also its maximum. The minimum is one frame.
func newAIMD(frame, step olaf.Size, frames int) AIMD {
	most := frame * olaf.Size(max(frames, 1))
	return AIMD{frame: frame, step: step, most: most, bytes: most}
}

// Window returns the number of frames that may be in flight.
func (a *AIMD) Window() int { return int(a.bytes / a.frame) }

// Adjust returns the next window after a window with or without congestion. Fractions of a frame are dropped.
func (a *AIMD) Adjust(congested bool) int {
	if congested {
		a.bytes /= 2
	} else {
		a.bytes += a.step
	}
	a.bytes = min(max(a.bytes, a.frame), a.most)
	a.bytes -= a.bytes % a.frame
	return a.Window()
}
