package engine

import (
	"math"
	"math/bits"

	"github.com/olafctl/olaf"
)

// Clock defines how a port measures time. A frame takes (perFrame + bytes × perByte) ÷ perTick ticks. The remainder is
// carried over to the next frame of a busy period, so that a saturated output runs at its exact rate. Create a Clock
// with CycleClock, PicosecondClock, NS3Clock or StepClock.
type Clock struct {
	perFrame uint64 // parts of a tick per frame
	perByte  uint64 // parts of a tick per byte
	perTick  uint64 // parts per tick
	// cycles makes a tick one cycle of the data path: a frame that ends within a cycle is noticed at the end of that
	// cycle. Otherwise a tick is the unit of olaf.Time, and an end within a tick is noticed at the beginning of the
	// tick.
	cycles bool
	ns3    bool // round like ns-3 without carrying remainders; parts are bits, and perTick is the rate in bit/s
}

// CycleClock returns a clock that counts cycles of the data path at 250 MHz, with rate bytes per cycle
// (docs/reference/semantics.md, Dequeue).
func CycleClock(rate Increment, overheadBytes int) Clock {
	return Clock{perFrame: uint64(overheadBytes) << incrementBits, perByte: 1 << incrementBits, perTick: uint64(rate),
		cycles: true}
}

// PicosecondClock returns a clock that counts picoseconds, for links with any rate.
func PicosecondClock(rate olaf.Rate, overhead olaf.Size) Clock {
	const byteTime = uint64(8 * olaf.Second) // time of a byte at 1 bit/s
	return Clock{perFrame: uint64(overhead) * byteTime, perByte: byteTime, perTick: uint64(rate)}
}

// NS3Clock returns a clock that counts picoseconds but rounds each frame's duration to whole nanoseconds, exactly as
// ns-3 3.37 does.
func NS3Clock(rate olaf.Rate, overhead olaf.Size) Clock {
	return Clock{perFrame: uint64(overhead.Bits()), perByte: 8, perTick: uint64(rate), ns3: true}
}

// StepClock returns a clock with a unit chosen by the caller, in which each frame takes perFrame ticks. The port's
// times are then in this unit and not in picoseconds.
func StepClock(perFrame int64) Clock { return Clock{perFrame: uint64(perFrame), perTick: 1} }

// Ticks returns the number of whole ticks that a frame takes on an idle output.
func (c *Clock) Ticks(size olaf.Size) int64 {
	ticks, _ := c.transmitTicks(size, 0)
	return ticks
}

// transmitTicks returns the number of whole ticks that a frame takes, including the fraction carried over from earlier
// frames, and the new carry.
func (c *Clock) transmitTicks(size olaf.Size, carry uint64) (ticks int64, rest uint64) {
	parts := c.perFrame + uint64(size)*c.perByte + carry
	if c.ns3 {
		return ns3Time(parts, c.perTick), 0
	}
	return int64(parts / c.perTick), parts % c.perTick
}

// ns3Time returns the time for n bits at the given rate, in picoseconds, as ns-3 computes it: in Q64.64 seconds,
// rounded down, times 10⁹, rounded to the nearest nanosecond.
func ns3Time(n, rate uint64) int64 {
	fraction, _ := bits.Div64(n%rate, 0, rate)
	high, low := bits.Mul64(fraction, 1e9)
	ns := n/rate*1e9 + high
	if low > math.MaxInt64 {
		ns++
	}
	return int64(ns) * int64(olaf.Nanosecond)
}

// endTick returns the first tick at which the current phase is over. The phase ends exactly at until plus the carried
// fraction.
func (c *Clock) endTick(until int64, carry uint64) int64 {
	if c.cycles && carry > 0 {
		until++
	}
	return until
}

// cycleTicks returns the number of ticks per cycle of the engine.
func (c *Clock) cycleTicks() int64 {
	if c.cycles {
		return 1
	}
	return int64(olaf.Cycle)
}

// tickTime returns the instant of a tick.
func (c *Clock) tickTime(tick int64) olaf.Time {
	if c.cycles {
		tick *= int64(olaf.Cycle)
	}
	return olaf.Time(tick)
}

// lastTick returns the last tick at or before t.
func (c *Clock) lastTick(t olaf.Time) int64 {
	if c.cycles {
		return int64(t) / int64(olaf.Cycle)
	}
	return int64(t)
}

// firstTick returns the first tick at or after t.
func (c *Clock) firstTick(t olaf.Time) int64 {
	if c.cycles {
		return (int64(t) + int64(olaf.Cycle) - 1) / int64(olaf.Cycle)
	}
	return int64(t)
}
