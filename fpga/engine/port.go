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

// Sink takes the frames of the discipline that leave a Port. d and what it refers to are valid during the call; the sink
// must not use the port meanwhile, except to read it.
type Sink interface {
	Deliver(d *Departure)
}

// phase is what the output does.
type phase uint8

const (
	idle    phase = iota
	sending       // a frame is on the wire
	paying        // none is, but engine cycles still have to pass
)

// Port is a discipline with the output serialiser behind it: the one model of it, whatever the clock. Idle time costs
// nothing.
//
// It is driven in one of two ways. Offer, Advance, Flush and Drain let everything happen that is due, in the order of
// docs/reference/semantics.md, and tell a sink. Heed, Bypass, Link and Step do one thing each and say whether a frame started: for a
// caller that offers to the discipline and orders the events of one instant itself, has one event for what Next says, and
// moves frames on as they start.
//
// Of a frame the port knows its size and its slot, or its handle if it bypasses the discipline, and nothing else.
type Port struct {
	discipline Discipline
	clock      Clock
	out        Output
	sink       Sink

	now    int64 // latest tick seen
	until  int64 // sending: exact end of the frame; paying: of the engine cycles; in whole ticks
	carry  uint64
	merges int // to be paid after the frame on the wire
	phase  phase
	down   bool // the link does not work

	slot   Slot  // of the frame that started last, NoSlot for one that bypasses
	handle int32 // of that
	size   olaf.Size
	bypass bypass

	reader      reader
	departure   Departure // what the sink sees, kept here so that nothing escapes
	sentBytes   uint64
	stallCycles uint64
}

// NewPort makes an empty port of the named discipline, in cycles of the data path unless it is paced otherwise. sink may be
// nil. The error matches ErrConfig.
func NewPort(discipline string, cfg Config, out Output, sink Sink) (*Port, error) {
	d, err := New(discipline, cfg)
	if err != nil {
		return nil, err
	}
	return NewPortOf(d, out, sink)
}

// NewPortOf is NewPort for a discipline at hand, which must be empty.
func NewPortOf(d Discipline, out Output, sink Sink) (*Port, error) {
	if err := out.Validate(); err != nil {
		return nil, err
	}
	if out.Rate == 0 {
		out.Rate = Line
	}
	return &Port{discipline: d, out: out, clock: Cycles(out.Rate, out.OverheadBytes), sink: sink, slot: NoSlot}, nil
}

// Discipline is what decides. Read it freely, but leave what leaves to the port; tell Heed what it was offered.
func (p *Port) Discipline() Discipline { return p.discipline }

// Output is what the port was made with, with Line for an unlimited rate.
func (p *Port) Output() Output { return p.out }

// Pace lets frames take their time by another clock, from the next one on; the fraction of a tick that is carried is lost.
// Its ticks must be those of the clock before, unless nothing has happened yet.
func (p *Port) Pace(c Clock) {
	p.until, p.carry = p.clock.seen(p.until, p.carry), 0
	p.clock = c
}

// Offer presents u, which arrives at now, and says what became of it. Everything that leaves up to that instant is
// delivered first. An arrival between two ticks takes part at the later one; one before the latest instant seen takes
// part at that instant.
func (p *Port) Offer(now olaf.Time, u *olaf.Update, lanes []int32) Outcome {
	return p.OfferMerged(now, u, lanes, nil)
}

// OfferMerged is Offer with the contributors of an update that an earlier hop merged.
func (p *Port) OfferMerged(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome {
	p.advance(p.clock.next(now))
	at := p.clock.time(p.now)
	o := p.discipline.Offer(at, u, lanes, inside)
	p.Heed(at, o)
	return o
}

// Heed does to the output what it means that the discipline was offered something at now, whatever it was.
func (p *Port) Heed(now olaf.Time, o Outcome) (started bool) {
	return (o.Ready || o.Merged) && p.heed(now, o)
}

func (p *Port) heed(now olaf.Time, o Outcome) (started bool) {
	if o.Merged {
		p.charge()
	}
	if p.out.ReadPorts != 0 {
		p.written(now, o)
	}
	return o.Ready && p.phase == idle && p.wake(now)
}

// charge books the engine cycles of one merge: engine cycles under way get longer at once, otherwise they are paid after
// the frame on the wire, or the next one where the link is down.
func (p *Port) charge() {
	if p.phase == paying {
		p.pay(p.out.MergeCycles)
	} else {
		p.merges++
	}
}

func (p *Port) pay(cycles int) {
	p.until += int64(cycles) * p.clock.cycle()
	p.stallCycles += uint64(cycles)
}

// wake lets an idle output start.
func (p *Port) wake(now olaf.Time) (started bool) {
	p.now = p.clock.next(now)
	p.until = p.now
	p.start()
	return p.phase == sending
}

// start puts the next frame on the wire from exactly until and carry on, or leaves the output idle. The discipline and the
// bypass take turns when both have one.
func (p *Port) start() {
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
	ticks, rest := p.clock.after(size, carry)
	p.until += ticks
	p.carry = rest
	p.phase = sending
	if p.out.ReadPorts != 0 {
		p.read(from, carry)
	}
}

// turn ends what the output does, which is due, and lets the next thing begin.
func (p *Port) turn() {
	cycles := 0
	if p.phase == sending {
		if p.slot != NoSlot { // a frame that bypasses costs no engine cycles, nor do merges meanwhile
			p.deliver()
			cycles = p.out.DequeueCycles + p.merges*p.out.MergeCycles
		}
		p.merges = 0
	}
	if cycles == 0 {
		p.start()
		return
	}
	p.phase = paying
	p.pay(cycles)
}

// deliver hands the frame on the wire, whose last bit is out, to the sink and gives its slot back.
func (p *Port) deliver() {
	p.sentBytes += uint64(int(p.size) + p.out.OverheadBytes)
	if p.sink != nil {
		d := &p.departure
		d.Slot = p.slot
		p.discipline.View(p.slot, &d.Frame)
		d.At = p.clock.time(p.now)
		d.Queued = d.At.Sub(d.Frame.AppendedAt)
		p.sink.Deliver(d)
	}
	p.discipline.Release(p.slot)
}

// boundary is the first tick at which what the output does is over.
func (p *Port) boundary() int64 { return p.clock.seen(p.until, p.carry) }

// advance handles everything up to and including the given tick.
func (p *Port) advance(to int64) {
	for p.phase != idle {
		at := p.boundary()
		if at > to {
			break
		}
		p.now = at
		p.turn()
	}
	p.now = max(p.now, to)
}

// Advance delivers everything that leaves at or before to.
func (p *Port) Advance(to olaf.Time) { p.advance(p.clock.reached(to)) }

// Step lets the one thing happen that Next said, if it is due at now: a last bit leaves, or engine cycles end. It is not due
// when merges made the engine cycles longer meanwhile.
func (p *Port) Step(now olaf.Time) (started bool) {
	at := p.boundary()
	if p.phase == idle || at > p.clock.reached(now) {
		return false
	}
	p.now = at
	p.turn()
	return p.phase == sending
}

// Next is the next instant at which the output changes by itself: a last bit leaves, or engine cycles end and the next
// frame starts. It is false while the output is idle. A merge meanwhile can only move the end later, that of a frame on the
// wire too where both want the one read port, so ask again after every Offer; advancing to a time at which nothing happens is
// harmless.
func (p *Port) Next() (olaf.Time, bool) {
	return p.clock.time(p.boundary()), p.phase != idle
}

// Drain delivers everything inside and returns the instant at which the output became idle.
func (p *Port) Drain() olaf.Time {
	for p.phase != idle {
		p.advance(p.boundary())
	}
	return p.clock.time(p.now)
}

// Bypass lets a frame wait beside the discipline that is no update: the two take turns. It is not taken when as many wait
// as Output.BypassSlots. The handle is the caller's, to know the frame by.
func (p *Port) Bypass(now olaf.Time, size olaf.Size, handle int32) (taken, started bool) {
	if p.bypass.n >= p.out.BypassSlots {
		return false, false
	}
	p.bypass.push(size, handle)
	return true, p.phase == idle && p.wake(now)
}

// Link says whether the link works. While it does not nothing starts, and what arrives waits. The frame on the wire goes on;
// that it gets nowhere is for the caller to know.
func (p *Port) Link(now olaf.Time, up bool) (started bool) {
	p.down = !up
	return up && p.phase == idle && p.wake(now)
}

// Up says whether the link works.
func (p *Port) Up() bool { return !p.down }

// Sending says whether a frame is on the wire, and which: its slot, or NoSlot for one that bypasses the discipline.
func (p *Port) Sending() (Slot, bool) { return p.slot, p.phase == sending }

// Size is the length of the frame that started last.
func (p *Port) Size() olaf.Size { return p.size }

// Bypassing is the handle of the frame on the wire that bypasses the discipline.
func (p *Port) Bypassing() int32 { return p.handle }

// Contends says that a merge may lengthen the frame on the wire.
func (p *Port) Contends() bool { return p.out.ReadPorts == 1 }

// Busy is how long frames of the discipline that have left occupied the output at its rate, overhead included, engine cycles
// not: the numerator of the utilisation of a port that was never paced. It is exact but for the last picosecond.
func (p *Port) Busy() olaf.Duration {
	v := new(big.Int).Lsh(new(big.Int).SetUint64(p.sentBytes), incrementBits)
	v.Mul(v, big.NewInt(int64(olaf.Cycle)))
	return olaf.Duration(v.Quo(v, big.NewInt(int64(p.out.Rate))).Int64())
}

// StallCycles is how many engine cycles were booked to the output, paid or still being paid, and how many it waited for the
// memory of gradients.
func (p *Port) StallCycles() uint64 { return p.stallCycles - p.ahead() }

// Flush discards everything inside at now, also the frame on the wire; the output is idle at once. What left up to now is
// delivered first.
func (p *Port) Flush(now olaf.Time) {
	p.advance(p.clock.next(now))
	p.discipline.Flush()
	p.quiet()
}

// Reset empties the port and its discipline, clears all counters and goes back to time 0, and keeps the memory.
func (p *Port) Reset() {
	p.discipline.Reset()
	p.quiet()
	p.now, p.sentBytes, p.stallCycles = 0, 0, 0
	p.reader = reader{}
}

func (p *Port) quiet() {
	p.stallCycles -= p.ahead()
	p.reader.stall = [2]int64{}
	p.phase, p.until, p.carry, p.merges = idle, 0, 0, 0
	p.slot, p.bypass.n = NoSlot, 0
}

// bypass holds the frames that wait beside the discipline, in a ring that grows.
type bypass struct {
	ring []bypassing // as many as a power of two
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
