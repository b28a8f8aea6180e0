package capture

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/olafctl/olaf"
)

// resolution is a unit of time in the encoding of pcapng: 10 to the power of minus its value or, if the high bit is
// set, 2 to the power of minus the remaining bits.
type resolution uint8

const binaryResolution resolution = 0x80

// nsPerSecond is the number of nanoseconds in a second. All times outside the reader are in nanoseconds.
const nsPerSecond = 1_000_000_000

// perSecond returns the number of ticks per second, or 0 if it exceeds 64 bits.
func (r resolution) perSecond() uint64 {
	if r&binaryResolution != 0 {
		return 1 << (r &^ binaryResolution) // 0 from 64 on
	}
	if r > 19 {
		return 0
	}
	n := uint64(1)
	for range r {
		n *= 10
	}
	return n
}

// split converts ticks to seconds and nanoseconds, rounded to the nearest nanosecond. It computes products with 128
// bits, which do not overflow at any resolution. ok is false if the number of ticks per second exceeds 64 bits.
func (r resolution) split(ticks uint64) (seconds uint64, ns int64, ok bool) {
	perSecond := r.perSecond()
	if perSecond == 0 {
		return 0, 0, false
	}
	seconds = ticks / perSecond
	high, low := bits.Mul64(ticks%perSecond, nsPerSecond)
	low, over := bits.Add64(low, perSecond/2, 0)
	rounded, _ := bits.Div64(high+over, low, perSecond)
	return seconds + rounded/nsPerSecond, int64(rounded % nsPerSecond), true
}

// span returns the resolution as a duration. It is rounded up to a picosecond and is at least one nanosecond, the unit
// of all times outside the reader.
func (r resolution) span() olaf.Duration {
	perSecond := r.perSecond()
	if perSecond == 0 {
		return olaf.Nanosecond
	}
	return max(olaf.Nanosecond, olaf.Duration(math.Ceil(float64(olaf.Second)/float64(perSecond))))
}

// String returns the resolution as text in seconds, such as 10^-6 s.
func (r resolution) String() string {
	if r&binaryResolution != 0 {
		return fmt.Sprintf("2^-%d s", r&^binaryResolution)
	}
	return fmt.Sprintf("10^-%d s", r)
}
