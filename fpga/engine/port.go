package engine

import (
	"math/big"

	"github.com/olafctl/olaf"
)

// Departure is one frame whose last bit has left.
type Departure struct {
	At     olaf.Time     // last bit out, on a tick of the port's clock
	Queued olaf.Duration // since the append of its slot
	Slot   Slot
	Frame  Frame
}

// Sink receives the frames of the discipline that leave a Port. d and its contents are valid during the call. The
// sink may read the port but must not change it meanwhile.
type Sink interface {
	Deliver(d *Departure)
}

// phase is the state of the output.
type phase uint8

const (
	idle    phase = iota
	sending       // a frame is on the wire
	paying        // no frame is on the wire, but engine cycles must pass
)

// Port is a discipline with its output serializer, for every clock. Idle time costs nothing.
//
// There are two ways to drive it. Offer, Advance, Flush and Drain handle all due events in the order of
// docs/reference/semantics.md and deliver to a sink. HandleOutcome, Bypass, SetLink and Step do one thing each and
// report whether a frame started. They are for callers that offer to the discipline themselves, order the events of
// one instant, schedule one event per Next, and forward frames as they start.
//
// For a frame, the port knows only its size and its slot, or its handle if it bypasses the discipline.
type Port struct {
	discipline Discipline
	clock      Clock
	out        Output
	sink       Sink

	now    int64 // latest tick seen
	until  int64 // sending: exact end of the frame; paying: end of the engine cycles; in whole ticks
	carry  uint64
	merges int // to be paid after the frame on the wire
	phase  phase
	down   bool // the link is down

	slot   Slot  // of the last started frame, NoSlot if it bypasses
	handle int32 // of the last started bypassing frame
	size   olaf.Size
	bypass bypass

	reader      reader
	departure   Departure // passed to the sink, kept here to avoid an allocation
	sentBytes   uint64
	stallCycles uint64
}

// NewPort returns an empty port of the named discipline, in data path cycles unless SetClock is called. sink may be
// nil. The error matches ErrConfig.
func NewPort(discipline string, cfg Config, out Output, sink Sink) (*Port, error) {
	d, err := New(discipline, cfg)
	if err != nil {
		return nil, err
	}
	return NewPortOf(d, out, sink)
}

// NewPortOf is NewPort for an existing discipline, which must be empty.
func NewPortOf(d Discipline, out Output, sink Sink) (*Port, error) {
	if err := out.Validate(); err != nil {
		return nil, err
	}
	if out.Rate == 0 {
		out.Rate = Line
	}
	return &Port{discipline: d, out: out, clock: CycleClock(out.Rate, out.OverheadBytes), sink: sink, slot: NoSlot}, nil
}

// Discipline returns the port's discipline. Callers may read it and offer to it, but must pass outcomes to
// HandleOutcome and leave departures to the port.
func (p *Port) Discipline() Discipline { return p.discipline }

// Output returns the port's configuration, with Line for an unlimited rate.
func (p *Port) Output() Output { return p.out }

// SetClock changes the clock from the next frame on; the carried fraction of a tick is lost. The ticks must be
// those of the previous clock unless nothing has happened yet.
func (p *Port) SetClock(c Clock) {
	p.until, p.carry = p.clock.endTick(p.until, p.carry), 0
	p.clock = c
}

// Offer presents u, which arrives at now, and returns its outcome. Frames that leave up to that instant are
// delivered first. An arrival between two ticks counts at the later one; an arrival before the latest instant seen
// counts at that instant.
func (p *Port) Offer(now olaf.Time, u *olaf.Update, lanes []int32) Outcome {
	return p.OfferMerged(now, u, lanes, nil)
}

// OfferMerged is Offer with the contributors of an update merged by an earlier hop.
func (p *Port) OfferMerged(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome {
	p.advance(p.clock.firstTick(now))
	at := p.clock.tickTime(p.now)
	o := p.discipline.Offer(at, u, lanes, inside)
	p.HandleOutcome(at, o)
	return o
}

// HandleOutcome applies the outcome of an offer at now to the output. It reports whether a frame started.
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

// chargeMerge adds the engine cycles of one merge. If engine cycles are passing they get longer, otherwise they are
// paid after the frame on the wire, or after the next one if the link is down.
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

// startIdle starts an idle output.
func (p *Port) startIdle(now olaf.Time) (started bool) {
	p.now = p.clock.firstTick(now)
	p.until = p.now
	p.startNext()
	return p.phase == sending
}

// startNext puts the next frame on the wire, starting exactly at until plus carry, or leaves the output idle. If
// both the discipline and the bypass have a frame, they take turns.
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

// endPhase ends the current phase, which is due, and starts the next.
func (p *Port) endPhase() {
	cycles := 0
	if p.phase == sending {
		if p.slot != NoSlot { // bypassing frames cost no engine cycles, nor do merges meanwhile
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

// deliverFrame passes the frame on the wire, whose last bit has left, to the sink and frees its slot.
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

// advance handles everything up to and including the given tick.
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

// Advance delivers all frames that leave at or before to.
func (p *Port) Advance(to olaf.Time) { p.advance(p.clock.lastTick(to)) }

// Step handles the event announced by Next if it is due at now: a last bit leaves, or engine cycles end. It is not
// due if merges have extended the engine cycles. started reports whether a frame started.
func (p *Port) Step(now olaf.Time) (started bool) {
	at := p.phaseEnd()
	if p.phase == idle || at > p.clock.lastTick(now) {
		return false
	}
	p.now = at
	p.endPhase()
	return p.phase == sending
}

// Next returns the next instant at which the output changes: a last bit leaves, or engine cycles end and the next
// frame starts. ok is false while the output is idle. A merge can only delay that instant, even for a frame on the
// wire if both need the only read port, so call Next again after every Offer. Advancing to a time without an event
// is harmless.
func (p *Port) Next() (olaf.Time, bool) {
	return p.clock.tickTime(p.phaseEnd()), p.phase != idle
}

// Drain delivers all frames and returns the instant at which the output became idle.
func (p *Port) Drain() olaf.Time {
	for p.phase != idle {
		p.advance(p.phaseEnd())
	}
	return p.clock.tickTime(p.now)
}

// Bypass queues a frame that is not an update, outside the discipline. The two take turns at the output. taken is false
// if Output.BypassSlots frames already wait. The caller identifies the frame by handle.
func (p *Port) Bypass(now olaf.Time, size olaf.Size, handle int32) (taken, started bool) {
	if p.bypass.n >= p.out.BypassSlots {
		return false, false
	}
	p.bypass.push(size, handle)
	return true, p.phase == idle && p.startIdle(now)
}

// SetLink sets whether the link is up. While it is down no frame starts and arrivals wait. The frame on the wire
// continues; the caller must account for its loss.
func (p *Port) SetLink(now olaf.Time, up bool) (started bool) {
	p.down = !up
	return up && p.phase == idle && p.startIdle(now)
}

// Up reports whether the link is up.
func (p *Port) Up() bool { return !p.down }

// Sending reports whether a frame is on the wire, and returns its slot, or NoSlot if it bypasses the discipline.
func (p *Port) Sending() (Slot, bool) { return p.slot, p.phase == sending }

// Size returns the length of the frame that started last.
func (p *Port) Size() olaf.Size { return p.size }

// BypassHandle returns the handle of the bypassing frame on the wire.
func (p *Port) BypassHandle() int32 { return p.handle }

// MayContend reports whether a merge may delay the frame on the wire.
func (p *Port) MayContend() bool { return p.out.ReadPorts == 1 }

// Busy returns the time that departed frames of the discipline occupied the output, with overhead but without
// engine cycles. It is the numerator of the utilization of a port whose clock was never changed, exact except for
// the last picosecond.
func (p *Port) Busy() olaf.Duration {
	v := new(big.Int).Lsh(new(big.Int).SetUint64(p.sentBytes), incrementBits)
	v.Mul(v, big.NewInt(int64(olaf.Cycle)))
	return olaf.Duration(v.Quo(v, big.NewInt(int64(p.out.Rate))).Int64())
}

// StallCycles returns the engine cycles charged to the output, including those still passing, plus the cycles it
// waited for the gradient memory.
func (p *Port) StallCycles() uint64 { return p.stallCycles - p.pendingStall() }

// Flush discards all frames at now, including the one on the wire. The output is idle at once. Frames that left up
// to now are delivered first.
func (p *Port) Flush(now olaf.Time) {
	p.advance(p.clock.firstTick(now))
	p.discipline.Flush()
	p.clearOutput()
}

// Reset empties the port and its discipline, clears all counters and returns to time 0. It keeps the memory.
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

// bypass is a growing ring of frames that bypass the discipline.
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
