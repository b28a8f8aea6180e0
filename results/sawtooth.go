package results

import (
	"math"
	"math/bits"

	"github.com/olafctl/olaf"
)

// sum128 is a signed 128-bit sum. It is needed because the square of an age of one minute, in ps², does not fit in 64
// bits.
type sum128 struct {
	hi int64
	lo uint64
}

func (s *sum128) add(hi int64, lo uint64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi += hi + int64(carry)
}

// addInt adds v to the sum.
func (s *sum128) addInt(v int64) { s.add(v>>63, uint64(v)) }

// addProduct adds x·y to the sum.
func (s *sum128) addProduct(x uint64, y int64) {
	if y >= 0 {
		hi, lo := bits.Mul64(x, uint64(y))
		s.add(int64(hi), lo)
		return
	}
	hi, lo := bits.Mul64(x, uint64(-y))
	lo, borrow := bits.Sub64(0, lo, 0)
	hi, _ = bits.Sub64(0, hi, borrow)
	s.add(int64(hi), lo)
}

// float returns the sum as a float64. The two halves are rounded separately.
func (s sum128) float() float64 {
	if s.hi < 0 {
		lo, borrow := bits.Sub64(0, s.lo, 0)
		hi, _ := bits.Sub64(0, uint64(s.hi), borrow)
		return -(math.Ldexp(float64(hi), 64) + float64(lo))
	}
	return math.Ldexp(float64(s.hi), 64) + float64(s.lo)
}

// saw is the sawtooth of an age, Δ(t) = t − newest, where newest is the latest generation time delivered so far. All
// times are in picoseconds since the start of the run.
type saw struct {
	newest     int64
	since      int64 // end of the integral so far
	start      int64 // start of the integral
	deliveries int64 // within the window
	twiceArea  sum128
	running    bool // newest and since are set
	delivered  bool // there was a delivery, either in the window or before it
}

// tooth is a straight piece of a sawtooth, in which the age rises from age during length.
type tooth struct{ age, length int64 }

// advance integrates the age up to time at and returns the piece of the sawtooth that was added. Time before the start
// of the window, from, is ignored.
func (s *saw) advance(from, at int64) tooth {
	since := max(s.since, from)
	if !s.running || at <= since {
		return tooth{}
	}
	t := tooth{age: since - s.newest, length: at - since}
	// The area of a trapezium is half of length · (age at its start + age at its end). This adds twice the area.
	s.twiceArea.addProduct(uint64(t.length), 2*t.age+t.length)
	s.since = at
	return t
}

// deliver records a delivery at time at. If the update's generation time gen is newer than all earlier ones, the age
// drops to the age of the update.
func (s *saw) deliver(from, at, gen int64) {
	if !s.running {
		*s = saw{newest: gen, since: at, start: max(at, from), running: true, deliveries: s.deliveries}
	}
	s.newest, s.delivered = max(s.newest, gen), true
	if at >= from {
		s.deliveries++
	}
}

// meanNS returns the time average in nanoseconds. It is missing if no time was integrated.
func (s *saw) meanNS() Float {
	length := s.since - s.start
	if length <= 0 {
		return Missing()
	}
	return Float(s.twiceArea.float() / 2 / float64(length) / float64(olaf.Nanosecond))
}

// unwrapGeneration returns the generation time of an update in picoseconds. genNS is known only modulo 2^48 ns, and the
// result is the instant nearest to at.
func unwrapGeneration(at olaf.Time, genNS uint64) int64 {
	const shift = 64 - 48
	ageNS := int64((uint64(at.NS())-genNS)<<shift) >> shift
	return (at.NS() - ageNS) * int64(olaf.Nanosecond)
}

// AgeOf returns the age of the newest update in a frame at the time of its delivery.
func AgeOf(o *olaf.Observation) olaf.Duration {
	return olaf.Duration(int64(o.At) - unwrapGeneration(o.At, o.Update.GenNS))
}

// Vertex is a corner of an age sawtooth, which is an age at an instant. At a delivery there are two vertices with the
// same time.
type Vertex struct {
	At  olaf.Time
	Age olaf.Duration
}

// SawtoothCorners returns the corners of one cluster's age sawtooth for plotting. observations must be in order;
// deliveries for other clusters are skipped.
func SawtoothCorners(observations []olaf.Observation, cluster olaf.ClusterID) []Vertex {
	var out []Vertex
	var s saw
	for i := range observations {
		o := &observations[i]
		if o.Update.Cluster != cluster {
			continue
		}
		at := int64(o.At)
		if s.running {
			out = append(out, Vertex{o.At, olaf.Duration(at - s.newest)})
		}
		s.deliver(0, at, unwrapGeneration(o.At, o.Update.GenNS))
		out = append(out, Vertex{o.At, olaf.Duration(at - s.newest)})
	}
	return out
}
