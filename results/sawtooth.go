package results

import (
	"math"
	"math/bits"

	"github.com/olafctl/olaf"
)

// sum128 is a signed 128-bit sum: an age of a minute squared in ps² exceeds 64 bits.
type sum128 struct {
	hi int64
	lo uint64
}

func (s *sum128) add(hi int64, lo uint64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi += hi + int64(carry)
}

// addInt adds v.
func (s *sum128) addInt(v int64) { s.add(v>>63, uint64(v)) }

// addProduct adds x·y for x ≥ 0.
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

// float returns the nearest float64, except for one rounding of each half.
func (s sum128) float() float64 {
	if s.hi < 0 {
		lo, borrow := bits.Sub64(0, s.lo, 0)
		hi, _ := bits.Sub64(0, uint64(s.hi), borrow)
		return -(math.Ldexp(float64(hi), 64) + float64(lo))
	}
	return math.Ldexp(float64(s.hi), 64) + float64(s.lo)
}

// saw is one age sawtooth: Δ(t) = t − newest, where newest is the latest generation time delivered so far. All times
// are in ps since the run's origin.
type saw struct {
	newest     int64
	since      int64 // end of the integral so far
	start      int64 // start of the integral
	deliveries int64 // within the window
	twiceArea  sum128
	running    bool // newest and since are valid
	delivered  bool // there was a delivery, within the window or before it
}

// tooth is one straight piece of a sawtooth: the age grows from age during length.
type tooth struct{ age, length int64 }

// advance integrates up to at, clipped to the window's start, and returns the piece.
func (s *saw) advance(from, at int64) tooth {
	since := max(s.since, from)
	if !s.running || at <= since {
		return tooth{}
	}
	t := tooth{age: since - s.newest, length: at - since}
	// Twice the trapezium: length · (age at its start + age at its end).
	s.twiceArea.addProduct(uint64(t.length), 2*t.age+t.length)
	s.since = at
	return t
}

// deliver lowers the age at time at to that of an update generated at gen, if that is newer.
func (s *saw) deliver(from, at, gen int64) {
	if !s.running {
		*s = saw{newest: gen, since: at, start: max(at, from), running: true, deliveries: s.deliveries}
	}
	s.newest, s.delivered = max(s.newest, gen), true
	if at >= from {
		s.deliveries++
	}
}

// meanNS returns the time average in ns; missing if nothing was integrated.
func (s *saw) meanNS() Float {
	length := s.since - s.start
	if length <= 0 {
		return Missing()
	}
	return Float(s.twiceArea.float() / 2 / float64(length) / float64(olaf.Nanosecond))
}

// unwrapGeneration converts a generation stamp, which is modulo 2^48 ns, to the instant nearest to at, in ps.
func unwrapGeneration(at olaf.Time, genNS uint64) int64 {
	const shift = 64 - 48
	ageNS := int64((uint64(at.NS())-genNS)<<shift) >> shift
	return (at.NS() - ageNS) * int64(olaf.Nanosecond)
}

// AgeOf returns the age of the newest update in a frame at its delivery.
func AgeOf(o *olaf.Observation) olaf.Duration {
	return olaf.Duration(int64(o.At) - unwrapGeneration(o.At, o.Update.GenNS))
}

// Vertex is a corner of a sawtooth: the age at an instant. Two vertices at one instant are the fall at a delivery.
type Vertex struct {
	At  olaf.Time
	Age olaf.Duration
}

// SawtoothCorners returns the corners of one cluster's age for plots, from its deliveries in order. Deliveries of other
// clusters are skipped.
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
