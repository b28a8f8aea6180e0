package engine

import (
	"cmp"
	"math/big"

	"github.com/olafctl/olaf"
)

// Departure describes a frame whose last bit has left.
type Departure struct {
	At     olaf.Time     // time when the last bit left, on a tick of the port's clock
	Queued olaf.Duration // time since the slot was filled
	Slot   Slot
	Frame  Frame
}

// Sink receives the frames that leave a Port's discipline. d and its contents are valid only during the call. The sink
// may read the port but must not change it.
type Sink interface {
	Deliver(d *Departure)
}

// phase is the output's current activity.
type phase uint8

const (
	idle    phase = iota
	sending       // a frame is on the wire
	paying        // no frame is on the wire, but engine cycles must pass
)

// Port is a discipline with its output serializer, for any clock. Idle time takes no computation. There are two ways to
// use a port.
//
// Offer, Advance, Flush and Drain handle all due events in the order of docs/reference/semantics.md and deliver
// departed frames to a sink.
//
// HandleOutcome, Bypass, SetLink and Step each perform a single action and report whether a frame started. They are for
// callers that offer updates to the discipline themselves, decide the order of simultaneous events, schedule one event
// per call of Next, and forward frames as they start. The port does not store frames. It only knows
// the size and the slot of a frame, or the size and the handle of a frame that bypasses the discipline.
type Port struct {
	discipline Discipline
	clock      Clock
	out        Output
	sink       Sink

	now    int64 // latest tick seen
	until  int64 // sending: exact end of the frame; paying: end of the engine cycles; in whole ticks
	carry  uint64
	merges int // merges to be paid for after the frame on the wire
	phase  phase
	down   bool // the link is down

	slot   Slot  // slot of the last started frame; NoSlot if the frame bypasses the discipline
	handle int32 // handle of the last started bypassing frame
	size   olaf.Size
	bypass bypass

	reader      reader
	departure   Departure // passed to the sink, kept here to avoid an allocation
	sentBytes   uint64
	stallCycles uint64
}

// NewPort returns an empty port with the named discipline. Its clock counts cycles of the data path until SetClock is
// called. sink may be nil. The error matches ErrConfig.
func NewPort(discipline string, cfg Config, out Output, sink Sink) (*Port, error) {
	d, err := New(discipline, cfg)
	if err != nil {
		return nil, err
	}
	return NewPortOf(d, out, sink)
}

// NewPortOf returns a port with discipline d, which must be empty. It is otherwise the same as NewPort.
func NewPortOf(d Discipline, out Output, sink Sink) (*Port, error) {
	if err := out.Validate(); err != nil {
		return nil, err
	}
	out.Rate = cmp.Or(out.Rate, Line)
	return &Port{discipline: d, out: out, clock: CycleClock(out.Rate, out.OverheadBytes), sink: sink, slot: NoSlot}, nil
}

// Discipline returns the port's discipline. Callers may read it and offer updates to it, but must pass the outcomes to
// HandleOutcome and must not remove frames.
func (p *Port) Discipline() Discipline { return p.discipline }

// Output returns the configuration of the port's output. An unlimited rate is returned as Line.
func (p *Port) Output() Output { return p.out }

// SetClock changes the clock from the next frame on and drops the carried fraction of a tick. Once time has advanced,
// the new clock must have the same ticks as the old one.
func (p *Port) SetClock(c Clock) {
	p.until, p.carry = p.clock.endTick(p.until, p.carry), 0
	p.clock = c
}

// Offer passes u, which arrives at now, to the discipline and returns the outcome. Frames that leave at or before now
// are delivered first. An arrival between two ticks counts at the later tick. An arrival before the latest instant seen
// counts at that instant.
func (p *Port) Offer(now olaf.Time, u *olaf.Update, lanes []int32) Outcome {
	return p.OfferMerged(now, u, lanes, nil)
}

// OfferMerged does the same as Offer for an update that an earlier hop merged from the given contributors.
func (p *Port) OfferMerged(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome {
	p.advance(p.clock.firstTick(now))
	at := p.clock.tickTime(p.now)
	o := p.discipline.Offer(at, u, lanes, inside)
	p.HandleOutcome(at, o)
	return o
}

// HandleOutcome applies the outcome of an offer at time now to the output. It reports whether a frame started.
func (p *Port) HandleOutcome(now olaf.Time, o Outcome) (started bool) {
	return (o.Ready || o.Merged) && p.handleOutcome(now, o)
}

func (p *Port) handleOutcome(now olaf.Time, o Outcome) (started bool) {
	if o.Merged {
		p.chargeMerge()
	}
	if p.out.ReadPorts != 0 {
		p.recordWrite(now, o)
	}
	return o.Ready && p.phase == idle && p.startIdle(now)
}

// chargeMerge charges the engine cycles of one merge to the output. They extend engine cycles in progress, and
// otherwise follow the frame on the wire, or the next frame if the link is down.
func (p *Port) chargeMerge() {
	if p.phase == paying {
		p.payCycles(p.out.MergeCycles)
	} else {
		p.merges++
	}
}

func (p *Port) payCycles(cycles int) {
	p.until += int64(cycles) * p.clock.cycleTicks()
	p.stallCycles += uint64(cycles)
}

// startIdle starts the next frame if the output is idle, and reports whether a frame started.
func (p *Port) startIdle(now olaf.Time) (started bool) {
	p.now = p.clock.firstTick(now)
	p.until = p.now
	p.startNext()
	return p.phase == sending
}

// startNext starts the next frame exactly at until plus carry, or makes the output idle if there is none. If both the
// discipline and the bypass have a frame, they take turns.
func (p *Port) startNext() {
	slot, size, ok := NoSlot, olaf.Size(0), false
	if !p.down && (p.bypass.n == 0 || p.slot == NoSlot) {
		slot, size, ok = p.discipline.Lock()
	}
	if !ok && !p.down && p.bypass.n > 0 {
		size, p.handle = p.bypass.pop()
		ok = true
	}
	if !ok {
		p.phase, p.carry = idle, 0
		return
	}
	p.slot, p.size = slot, size
	from, carry := p.until, p.carry
	ticks, rest := p.clock.transmitTicks(size, carry)
	p.until += ticks
	p.carry = rest
	p.phase = sending
	if p.out.ReadPorts != 0 {
		p.startRead(from, carry)
	}
}

// endPhase ends the output's current phase, which is due, and starts the next one.
func (p *Port) endPhase() {
	cycles := 0
	if p.phase == sending {
		if p.slot != NoSlot { // bypassing frames cost no engine cycles, and neither do merges during them
			p.deliverFrame()
			cycles = p.out.DequeueCycles + p.merges*p.out.MergeCycles
		}
		p.merges = 0
	}
	if cycles == 0 {
		p.startNext()
		return
	}
	p.phase = paying
	p.payCycles(cycles)
}

// deliverFrame passes the frame whose last bit has left to the sink and frees its slot.
func (p *Port) deliverFrame() {
	p.sentBytes += uint64(int(p.size) + p.out.OverheadBytes)
	if p.sink != nil {
		d := &p.departure
		d.Slot = p.slot
		p.discipline.View(p.slot, &d.Frame)
		d.At = p.clock.tickTime(p.now)
		d.Queued = d.At.Sub(d.Frame.AppendedAt)
		p.sink.Deliver(d)
	}
	p.discipline.Release(p.slot)
}

// phaseEnd returns the first tick at which the current phase is over.
func (p *Port) phaseEnd() int64 { return p.clock.endTick(p.until, p.carry) }

// advance handles all events up to and including tick to.
func (p *Port) advance(to int64) {
	for p.phase != idle {
		at := p.phaseEnd()
		if at > to {
			break
		}
		p.now = at
		p.endPhase()
	}
	p.now = max(p.now, to)
}

// Advance delivers all frames that leave at or before the given time.
func (p *Port) Advance(to olaf.Time) { p.advance(p.clock.lastTick(to)) }

// Step handles the event announced by Next, if it is due at now, and reports whether a frame started. The event is the
// departure of a last bit or the end of engine cycles. It is no longer due if merges have extended the engine cycles.
func (p *Port) Step(now olaf.Time) (started bool) {
	at := p.phaseEnd()
	if p.phase == idle || at > p.clock.lastTick(now) {
		return false
	}
	p.now = at
	p.endPhase()
	return p.phase == sending
}

// Next returns the next instant at which the output changes because a last bit leaves or engine cycles end. ok is false
// while the output is idle. A merge may delay that instant, even for a frame on the wire if both need the only read
// port, so Next must be called again after every Offer. Advancing to a time without an event is harmless.
func (p *Port) Next() (olaf.Time, bool) {
	return p.clock.tickTime(p.phaseEnd()), p.phase != idle
}

// Drain delivers all queued frames and returns the instant at which the output became idle.
func (p *Port) Drain() olaf.Time {
	for p.phase != idle {
		p.advance(p.phaseEnd())
	}
	return p.clock.tickTime(p.now)
}

// Bypass queues a frame that is not an update, outside the discipline. The two queues take turns at the output. taken
// is false if Output.BypassSlots frames already wait. handle identifies the frame to the caller.
func (p *Port) Bypass(now olaf.Time, size olaf.Size, handle int32) (taken, started bool) {
	if p.bypass.n >= p.out.BypassSlots {
		return false, false
	}
	p.bypass.push(size, handle)
	return true, p.phase == idle && p.startIdle(now)
}

// SetLink sets the state of the link. While it is down, no frame starts and arrivals wait. A frame that is on the wire
// continues; the caller must account for its loss.
func (p *Port) SetLink(now olaf.Time, up bool) (started bool) {
	p.down = !up
	return up && p.phase == idle && p.startIdle(now)
}

// Up reports whether the link is up.
func (p *Port) Up() bool { return !p.down }

// Sending reports whether a frame is on the wire and returns its slot. The slot is NoSlot if the frame bypasses the
// discipline.
func (p *Port) Sending() (Slot, bool) { return p.slot, p.phase == sending }

// Size returns the length of the frame that started most recently.
func (p *Port) Size() olaf.Size { return p.size }

// BypassHandle returns the handle of the frame on the wire, which must be a bypassing frame.
func (p *Port) BypassHandle() int32 { return p.handle }

// MayContend reports whether a merge may delay the frame on the wire.
func (p *Port) MayContend() bool { return p.out.ReadPorts == 1 }

// Busy returns how long departed frames of the discipline occupied the output, including overhead but without engine
// cycles. Divided by the elapsed time, it is the port's utilization. It is exact to a picosecond if the clock was never
// changed.
func (p *Port) Busy() olaf.Duration {
	v := new(big.Int).Lsh(new(big.Int).SetUint64(p.sentBytes), incrementBits)
	v.Mul(v, big.NewInt(int64(olaf.Cycle)))
	return olaf.Duration(v.Quo(v, big.NewInt(int64(p.out.Rate))).Int64())
}

// StallCycles returns the number of engine cycles charged to the output, including cycles in progress and cycles that
// it waited for the gradient memory.
func (p *Port) StallCycles() uint64 { return p.stallCycles - p.pendingStall() }

// Flush delivers the frames that leave up to now and then discards all others, including the one on the wire. The
// output is idle immediately.
func (p *Port) Flush(now olaf.Time) {
	p.advance(p.clock.firstTick(now))
	p.discipline.Flush()
	p.clearOutput()
}

// Reset empties the port and its discipline, clears all counters and sets the time to 0. It keeps the allocated memory.
func (p *Port) Reset() {
	p.discipline.Reset()
	p.clearOutput()
	p.now, p.sentBytes, p.stallCycles = 0, 0, 0
	p.reader = reader{}
}

func (p *Port) clearOutput() {
	p.stallCycles -= p.pendingStall()
	p.reader.stall = [2]int64{}
	p.phase, p.until, p.carry, p.merges = idle, 0, 0, 0
	p.slot, p.bypass.n = NoSlot, 0
}

// bypass is a ring buffer of frames that bypass the discipline. It grows as needed.
type bypass struct {
	ring []bypassing // the length is a power of two
	head int
	n    int
}

type bypassing struct {
	size   olaf.Size
	handle int32
}

func (b *bypass) push(size olaf.Size, handle int32) {
	if b.n == len(b.ring) {
		ring := make([]bypassing, max(4, 2*b.n))
		for i := range b.n {
			ring[i] = b.ring[(b.head+i)&(b.n-1)]
		}
		b.ring, b.head = ring, 0
	}
	b.ring[(b.head+b.n)&(len(b.ring)-1)] = bypassing{size, handle}
	b.n++
}

func (b *bypass) pop() (olaf.Size, int32) {
	f := b.ring[b.head]
	b.head = (b.head + 1) & (len(b.ring) - 1)
	b.n--
	return f.size, f.handle
}
