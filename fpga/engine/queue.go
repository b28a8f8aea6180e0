package engine

import (
	"math/big"

	"github.com/olafctl/olaf"
)

// Departure is one frame whose last bit has left.
type Departure struct {
	At     olaf.Time     // last bit out, on a cycle boundary
	Queued olaf.Duration // since the append of its slot
	Port   Port
	Slot   Slot
	Frame  Frame
}

// Sink takes the frames that leave a Queue. d and what it refers to are valid during the call; the sink must not use the
// queue meanwhile, except to read it.
type Sink interface {
	Deliver(d *Departure)
}

// phase is what the output does.
type phase uint8

const (
	idle    phase = iota
	sending       // a locked frame is on the wire
	paying        // no frame, but engine cycles still to pass
)

// Queue is an engine with the output serialiser behind it: updates with times in, frames with times out. Twin, replay,
// simulator and golden vectors all use this one. It is event-driven: idle cycles cost nothing.
//
// The instant until which the output is busy is known exactly, as whole cycles and a remainder in parts of 1/rate of a
// cycle, so that fractions of a cycle are carried from frame to frame without rounding (docs/semantics.md, Dequeue).
type Queue struct {
	engine    Engine
	out       Output
	rate      uint64 // bytes per cycle, 8.24
	sink      Sink
	departure Departure // what the sink sees, kept here so that nothing escapes

	now    int64 // latest cycle seen
	phase  phase
	until  int64  // sending: fluid end of the frame; paying: of the engine cycles; in whole cycles
	carry  uint64 // and this many parts of 1/rate of a cycle on top
	merges int    // merges and replacements to be paid after the frame on the wire

	sentBytes   uint64
	stallCycles uint64
}

// NewQueue puts the serialiser out behind e, which must be empty. The error matches ErrConfig.
func NewQueue(e Engine, out Output, sink Sink) (*Queue, error) {
	if err := out.Validate(); err != nil {
		return nil, err
	}
	if out.Rate == 0 {
		out.Rate = Line
	}
	return &Queue{engine: e, out: out, rate: uint64(out.Rate), sink: sink}, nil
}

// Engine is what decides; read it freely, but offer and lock only through the queue.
func (q *Queue) Engine() Engine { return q.engine }

// Output is the serialiser's shape, with Line for an unlimited rate.
func (q *Queue) Output() Output { return q.out }

// Offer presents u, which arrives at now, and says what became of it. Everything that leaves up to that instant is
// delivered first. An arrival between two cycle boundaries takes part at the later one; one before the latest instant
// seen takes part at that instant.
func (q *Queue) Offer(now olaf.Time, u *olaf.Update, lanes []int32) Class {
	return q.OfferMerged(now, u, lanes, nil)
}

// OfferMerged is Offer with the contributors of an update that an earlier hop merged.
func (q *Queue) OfferMerged(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Class {
	q.advance(ceilCycle(now))
	class := q.engine.OfferMerged(cycleTime(q.now), u, lanes, inside)
	switch class {
	case Appended:
		if q.phase == idle {
			q.until = q.now
			q.start()
		}
	case Aggregated, Replaced, ReplacedReward:
		q.charge()
	}
	return class
}

// charge books the engine cycles of one merge. The output cannot be idle: something waited.
func (q *Queue) charge() {
	if q.phase == paying {
		q.pay(q.out.MergeCycles)
	} else {
		q.merges++
	}
}

func (q *Queue) pay(cycles int) {
	q.until += int64(cycles)
	q.stallCycles += uint64(cycles)
}

// start locks the head and puts it on the wire from exactly until and carry on, or leaves the output idle.
func (q *Queue) start() {
	slot, ok := q.engine.Lock(ToServer)
	if !ok {
		q.phase, q.carry = idle, 0
		return
	}
	d := &q.departure
	d.Port, d.Slot, d.Frame = ToServer, slot, q.engine.Frame(slot)
	parts := uint64(int(d.Frame.Update.Size())+q.out.OverheadBytes)<<incrementBits + q.carry
	q.until += int64(parts / q.rate)
	q.carry = parts % q.rate
	q.phase = sending
}

// finish delivers the frame on the wire and lets the engine cycles begin.
func (q *Queue) finish() {
	d := &q.departure
	d.At = cycleTime(q.now)
	d.Queued = d.At.Sub(d.Frame.AppendedAt)
	q.sentBytes += uint64(int(d.Frame.Update.Size()) + q.out.OverheadBytes)
	if d.Frame.Contributors != nil {
		d.Frame = q.engine.Frame(d.Slot) // somebody else may have looked meanwhile
	}
	q.sink.Deliver(d)
	q.engine.Release(d.Slot)
	q.pay(q.out.DequeueCycles + q.merges*q.out.MergeCycles)
	q.merges = 0
	q.phase = paying
}

// boundary is the first cycle at which what the output does is over.
func (q *Queue) boundary() int64 {
	if q.carry > 0 {
		return q.until + 1
	}
	return q.until
}

// advance handles everything up to and including the given cycle.
func (q *Queue) advance(to int64) {
	for q.phase != idle {
		at := q.boundary()
		if at > to {
			break
		}
		q.now = at
		if q.phase == sending {
			q.finish()
		} else {
			q.start()
		}
	}
	q.now = max(q.now, to)
}

// Advance delivers everything that leaves at or before to.
func (q *Queue) Advance(to olaf.Time) { q.advance(int64(to) / int64(olaf.Cycle)) }

// Next is the next instant at which the output changes by itself: a last bit leaves, or engine cycles end and the next
// frame starts. It is false while the output is idle. A merge meanwhile can only move the end of engine cycles later, so
// ask again after every Offer; advancing to a time at which nothing happens is harmless.
func (q *Queue) Next() (olaf.Time, bool) {
	return cycleTime(q.boundary()), q.phase != idle
}

// Drain delivers everything inside and returns the instant at which the output became idle.
func (q *Queue) Drain() olaf.Time {
	for q.phase != idle {
		q.advance(q.boundary())
	}
	return cycleTime(q.now)
}

// Sending says whether a frame is on the wire, and which.
func (q *Queue) Sending() (Slot, bool) { return q.departure.Slot, q.phase == sending }

// LastSlot is the slot in which the latest arrival landed, NoSlot when it was dropped.
func (q *Queue) LastSlot() Slot { return q.engine.LastSlot() }

// Busy is how long frames that have left occupied the output, overhead included, engine cycles not: the numerator of the
// utilisation. It is exact but for the last picosecond.
func (q *Queue) Busy() olaf.Duration {
	v := new(big.Int).Lsh(new(big.Int).SetUint64(q.sentBytes), incrementBits)
	v.Mul(v, big.NewInt(int64(olaf.Cycle)))
	return olaf.Duration(v.Quo(v, new(big.Int).SetUint64(q.rate)).Int64())
}

// StallCycles is how many engine cycles were booked to the output, paid or still being paid.
func (q *Queue) StallCycles() uint64 { return q.stallCycles }

// Flush discards everything inside at now, also the frame on the wire; the output is idle at once. What left up to now is
// delivered first.
func (q *Queue) Flush(now olaf.Time) {
	q.advance(ceilCycle(now))
	q.engine.Flush()
	q.quiet()
}

// Reset empties the queue and its engine, clears all counters and goes back to time 0, and keeps the memory.
func (q *Queue) Reset() {
	q.engine.Reset()
	q.quiet()
	q.now, q.sentBytes, q.stallCycles = 0, 0, 0
}

func (q *Queue) quiet() {
	q.phase, q.until, q.carry, q.merges = idle, 0, 0, 0
	q.departure = Departure{}
}

func ceilCycle(t olaf.Time) int64 {
	return (int64(t) + int64(olaf.Cycle) - 1) / int64(olaf.Cycle)
}

func cycleTime(cycle int64) olaf.Time { return olaf.Time(cycle * int64(olaf.Cycle)) }
