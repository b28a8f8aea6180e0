package testbed

import (
	"errors"
	"fmt"
	"time"
)

// Exchange is one echo exchange. T0 and T3 are readings of the local clock, T1 and T2 of the remote clock, in ns. The
// origin of each clock is arbitrary. The methods compute with given readings and read no clock.
//
// A message is sent at T0 by the local clock, received at T1 and answered at T2 by the remote clock, and the answer is
// received at T3. Messages do not travel in negative time, so the offset (remote minus local) is between T2−T3 and
// T1−T0. As in NTP (RFC 5905, section 8), the result is the middle of this range, and half of the round trip is a bound
// on its error. The bound includes any asymmetry between the two directions, which the spread of many readings would
// not show.
type Exchange struct{ T0, T1, T2, T3 int64 }

// RoundTripNS returns the travel time of both messages together, in ns. It is negative if a clock was set during the
// exchange, or if the clocks drifted during a long answer.
func (e Exchange) RoundTripNS() int64 { return e.T3 - e.T0 - (e.T2 - e.T1) }

// driftNS returns the largest amount by which the clocks can drift apart during the exchange, in ns.
func (e Exchange) driftNS() int64 { return (e.T3-e.T0)*MaxDriftPPM/1_000_000 + 1 }

// ElapsedSince returns how much time passed on the remote clock between an earlier exchange and e, and how much more
// time passed on the local clock, in ns.
func (e Exchange) ElapsedSince(earlier Exchange) (spanNS, driftNS int64) {
	spanNS = e.T1 - earlier.T1
	return spanNS, e.T0 - earlier.T0 - spanNS
}

// Quickest returns the exchange with the shortest round trip, because the others were delayed. It returns false if a
// clock was set during every exchange.
func Quickest(all []Exchange) (best Exchange, ok bool) {
	for _, e := range all {
		possible := e.T3 >= e.T0 && e.T2 >= e.T1 && e.RoundTripNS() >= -e.driftNS()
		if possible && (!ok || e.RoundTripNS() < best.RoundTripNS()) {
			best, ok = e, true
		}
	}
	return best, ok
}

// MaxDriftPPM is the largest drift between two clocks, in parts per million. Crystals are accurate to 50 ppm, and time
// synchronisation adjusts a clock by at most 500 ppm. A larger difference means that a clock was set.
const MaxDriftPPM = 1000

// WasStepped reports whether a clock was set between two readings of the offset. The readings differ by driftNS after a
// time of spanNS. Their total error is at most widthNS.
func WasStepped(driftNS, widthNS, spanNS int64) bool {
	return max(driftNS, -driftNS) > widthNS+max(spanNS, -spanNS)*MaxDriftPPM/1_000_000
}

// Offset is the difference between two clocks at one instant, with a bound on its error.
type Offset struct {
	AtNS     int64 `json:"at_ns"`     // by the local clock
	OffsetNS int64 `json:"offset_ns"` // remote minus local
	BoundNS  int64 `json:"bound_ns"`  // bound on the error, in either direction
}

// ErrSet reports that a clock was set during every exchange or that there was no exchange.
var ErrSet = errors.New("a clock was set during every exchange; stop the program that sets the clock, then try again")

// Measure returns the offset that the quickest exchange shows. Its bound is half of the round trip plus the largest
// possible drift during the exchange. The only error is ErrSet.
func Measure(all []Exchange) (Offset, error) {
	e, ok := Quickest(all)
	if !ok {
		return Offset{}, ErrSet
	}
	up, down := e.T1-e.T0, e.T2-e.T3 // the offset is between them
	bound := (max(up-down, 0)+1)/2 + e.driftNS()
	return Offset{AtNS: e.T0 + (e.T3-e.T0)/2, OffsetNS: down + (up-down)/2, BoundNS: bound}, nil
}

// Relation is the offset between two clocks during a run. It was measured before and after the run.
type Relation struct {
	Before Offset `json:"before"`
	After  Offset `json:"after"`
}

// DriftNS returns the increase of the offset from the first measurement to the second, in ns.
func (r *Relation) DriftNS() int64 { return r.After.OffsetNS - r.Before.OffsetNS }

// DriftPPM returns the drift in parts per million of the time between the measurements. Its error is at most
// (Before.BoundNS + After.BoundNS) divided by that time. It is 0 if no time passed.
func (r *Relation) DriftPPM() float64 {
	span := r.After.AtNS - r.Before.AtNS
	if span <= 0 {
		return 0
	}
	return float64(r.DriftNS()) / float64(span) * 1e6
}

// Check returns an error if a clock was set between the measurements.
func (r *Relation) Check() error {
	span := r.After.AtNS - r.Before.AtNS
	if span < 0 || WasStepped(r.DriftNS(), r.Before.BoundNS+r.After.BoundNS, span) {
		return fmt.Errorf("a clock was set during the run: the offset changed by %v in %v",
			time.Duration(r.DriftNS()), time.Duration(span))
	}
	return nil
}

// OffsetAt returns the offset at a local time. Between the two measurements it interpolates, and the bound covers every
// monotone course of the offset. At other times it extends the nearer measurement and adds MaxDriftPPM to the bound.
func (r *Relation) OffsetAt(atNS int64) Offset {
	span, since := r.After.AtNS-r.Before.AtNS, atNS-r.Before.AtNS
	switch {
	case since <= 0:
		return r.Before.extendTo(atNS)
	case since >= span:
		return r.After.extendTo(atNS)
	}
	drift := r.DriftNS()
	return Offset{AtNS: atNS, OffsetNS: r.Before.OffsetNS + int64(float64(drift)*float64(since)/float64(span)),
		BoundNS: max(r.Before.BoundNS, r.After.BoundNS) + max(drift, -drift) + 1}
}

// extendTo returns the offset at another time, with a correspondingly larger bound.
func (o Offset) extendTo(atNS int64) Offset {
	away := max(atNS-o.AtNS, o.AtNS-atNS)
	return Offset{AtNS: atNS, OffsetNS: o.OffsetNS, BoundNS: o.BoundNS + (away*MaxDriftPPM+999_999)/1_000_000}
}

// Between returns the relation of two remote clocks, to minus from. Both were measured against the same local clock,
// before and after the same run. Times remain those of the local clock, and the bounds are added.
func Between(from, to *Relation) Relation {
	at := func(ns int64) Offset {
		a, b := from.OffsetAt(ns), to.OffsetAt(ns)
		return Offset{AtNS: ns, OffsetNS: b.OffsetNS - a.OffsetNS, BoundNS: a.BoundNS + b.BoundNS}
	}
	return Relation{Before: at(max(from.Before.AtNS, to.Before.AtNS)), After: at(min(from.After.AtNS, to.After.AtNS))}
}
