package endpoint

import "github.com/olafctl/olaf"

// AIMD is a congestion window: where congestion was met it halves, where not it grows by a step. Whoever uses it asks once
// a window (the released client of ATP, common/CC_manager.h, with all its roundings).
type AIMD struct {
	frame, step, most, bytes olaf.Size
}

// AIMDStep is by how much ATP's window grows.
const AIMDStep olaf.Size = 1500

// NewAIMD begins with a window of so many frames, which it never exceeds; it is never below one.
func NewAIMD(frame, step olaf.Size, frames int) AIMD {
	most := frame * olaf.Size(max(frames, 1))
	return AIMD{frame: frame, step: step, most: most, bytes: most}
}

// Window is how many frames may be on their way.
func (a *AIMD) Window() int { return int(a.bytes / a.frame) }

// Adjust is the next window after one that met congestion or did not. What does not fill a frame is forgotten.
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
