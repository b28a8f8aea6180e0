package engine

import (
	"math"
	"math/bits"

	"github.com/olafctl/olaf"
)

// Clock is the time of a port: what its ticks are, how many of them a frame takes, and what becomes of fractions. Cycles,
// Picoseconds, NS3 and Steps make one.
//
// A frame takes (perFrame + bytes × perByte) ÷ perTick ticks. What the division leaves is carried to the next frame of a
// busy period, so that a saturated output runs at its exact rate.
type Clock struct {
	perFrame uint64 // parts of a tick, whatever the frame's size
	perByte  uint64 // parts of a tick
	perTick  uint64 // parts that make a tick
	// cycles says that a tick is a cycle of the data path, of which a begun one counts as a whole: what ends within a cycle
	// is seen at its end. Otherwise a tick is the unit of olaf.Time, and what ends within one is seen at its beginning.
	cycles bool
	ns3    bool // round as ns-3 does and carry nothing; parts are bits then, and perTick the rate in bit/s
}

// Cycles counts in 250 MHz cycles and lets rate bytes pass in each: the data path (docs/reference/semantics.md, Dequeue).
func Cycles(rate Increment, overheadBytes int) Clock {
	return Clock{perFrame: uint64(overheadBytes) << incrementBits, perByte: 1 << incrementBits, perTick: uint64(rate),
		cycles: true}
}

// Picoseconds counts in picoseconds, for links of any rate.
func Picoseconds(rate olaf.Rate, overhead olaf.Size) Clock {
	const byteTime = uint64(8 * olaf.Second) // of a byte, at 1 bit/s
	return Clock{perFrame: uint64(overhead) * byteTime, perByte: byteTime, perTick: uint64(rate)}
}

// NS3 counts in picoseconds, but lets every frame take the whole nanoseconds that ns-3 3.37 computes.
func NS3(rate olaf.Rate, overhead olaf.Size) Clock {
	return Clock{perFrame: uint64(overhead.Bits()), perByte: 8, perTick: uint64(rate), ns3: true}
}

// Steps counts in the caller's own unit, of which every frame takes as many as perFrame: times are then no picoseconds.
func Steps(perFrame int64) Clock { return Clock{perFrame: uint64(perFrame), perTick: 1} }

// Ticks is how many whole ticks a frame of size takes on an idle output.
func (c *Clock) Ticks(size olaf.Size) int64 {
	ticks, _ := c.after(size, 0)
	return ticks
}

// after is how many whole ticks size takes on top of carry, and what is to be carried on.
func (c *Clock) after(size olaf.Size, carry uint64) (ticks int64, rest uint64) {
	parts := c.perFrame + uint64(size)*c.perByte + carry
	if c.ns3 {
		return ns3Time(parts, c.perTick), 0
	}
	return int64(parts / c.perTick), parts % c.perTick
}

// ns3Time is n bits ÷ rate in picoseconds as ns-3 computes it: in Q64.64 seconds, rounded down, times 10⁹, rounded to the
// nearest nanosecond.
func ns3Time(n, rate uint64) int64 {
	fraction, _ := bits.Div64(n%rate, 0, rate)
	high, low := bits.Mul64(fraction, 1e9)
	ns := n/rate*1e9 + high
	if low > math.MaxInt64 {
		ns++
	}
	return int64(ns) * int64(olaf.Nanosecond)
}

// seen is the tick at which what ends at until and carry is over.
func (c *Clock) seen(until int64, carry uint64) int64 {
	if c.cycles && carry > 0 {
		until++
	}
	return until
}

// cycle is how many ticks an engine cycle has.
func (c *Clock) cycle() int64 {
	if c.cycles {
		return 1
	}
	return int64(olaf.Cycle)
}

// time is the instant of a tick.
func (c *Clock) time(tick int64) olaf.Time {
	if c.cycles {
		tick *= int64(olaf.Cycle)
	}
	return olaf.Time(tick)
}

// reached is the last tick at or before t.
func (c *Clock) reached(t olaf.Time) int64 {
	if c.cycles {
		return int64(t) / int64(olaf.Cycle)
	}
	return int64(t)
}

// next is the first tick at or after t.
func (c *Clock) next(t olaf.Time) int64 {
	if c.cycles {
		return (int64(t) + int64(olaf.Cycle) - 1) / int64(olaf.Cycle)
	}
	return int64(t)
}
