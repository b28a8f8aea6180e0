package engine

import "github.com/olafctl/olaf"

// beatBytes is what the data path moves, and what the memory of gradients reads, in a cycle.
const beatBytes = 64

// readableAfter is how many cycles after the decision about it an update's lanes can be read.
const readableAfter = 5

// reader is the output's way to the memory of gradients, where Output.ReadPorts asks for it (docs/reference/semantics.md, Measured). The
// frame under way wants beat i of its lanes in the first cycle that begins at or after its start plus 64·i bytes; what it has
// to wait for then stops the output as a whole, so that its start moves.
//
// All instants are ticks of the port's clock that begin a cycle, but for from.
type reader struct {
	from     int64  // start of the frame under way, exactly with carry, moved by its stalls
	carry    uint64 // parts of a tick
	lines    int64  // its beats of lanes; the header comes from elsewhere
	held     int64  // first cycle in which no merge takes the one port any more
	newest   Slot   // that was written
	readable int64  // and since when it can be read
	stall    [2]int64
}

// beats is how many cycles a frame takes on the bus.
func beats(size olaf.Size) int64 { return int64(size+beatBytes-1) / beatBytes }

// read begins the transmission of the frame that was locked, from exactly from and carry on.
func (p *Port) read(from int64, carry uint64) {
	r := &p.reader
	r.from, r.carry, r.lines = from, carry, 0
	if p.slot == NoSlot {
		return
	}
	if r.lines = beats(p.size) - 1; r.lines == 0 {
		return
	}
	if p.out.ReadPorts == 1 {
		free := r.held
		if r.newest == p.slot {
			free = max(free, r.readable)
		}
		p.wait(r.wanted(&p.clock, 1), free)
	}
	// A frame is not over in the cycle in which its last beat is fetched.
	if last := r.wanted(&p.clock, r.lines); p.boundary() <= last {
		p.until, p.carry = last+p.clock.cycle(), 0
	}
}

// written says that an update landed in a slot at now, and takes the one read port for it where it was added to what was
// there. A merge makes the output wait once at most.
func (p *Port) written(now olaf.Time, o Outcome) {
	if p.out.ReadPorts != 1 || o.Slot == NoSlot {
		return
	}
	r, cycle := &p.reader, p.clock.cycle()
	at := p.clock.next(now)
	at += (cycle - at%cycle) % cycle
	r.newest, r.readable = o.Slot, at+readableAfter*cycle
	if o.Class != Aggregated {
		return
	}
	p.discipline.View(o.Slot, &p.departure.Frame)
	r.held = max(r.held, at+cycle) + (beats(p.departure.Frame.Update.Size())-1)*cycle
	if p.phase != sending {
		return
	}
	if r.stall[1] > at { // it waits already
		p.wait(r.stall[1], r.held)
	} else if next := r.fetched(&p.clock, at) + 1; next <= r.lines {
		p.wait(r.wanted(&p.clock, next), r.held)
	}
}

// wait stops the output from the cycle in which it wants a beat until it can have it.
func (p *Port) wait(wanted, free int64) {
	if free <= wanted {
		return
	}
	r := &p.reader
	if r.stall[1] != wanted {
		r.stall[0] = wanted
	}
	r.stall[1] = free
	r.from += free - wanted
	p.until += free - wanted
	p.stallCycles += uint64((free - wanted) / p.clock.cycle())
}

// ahead is how many cycles of stalls that are booked have not come yet.
func (p *Port) ahead() uint64 {
	cycle := p.clock.cycle()
	return uint64(max(0, p.reader.stall[1]-max(p.reader.stall[0], p.now+cycle)) / cycle)
}

// wanted is the cycle in which beat i, from 1, is due.
func (r *reader) wanted(c *Clock, i int64) int64 {
	parts := r.carry + uint64(i)*beatBytes*c.perByte
	at := r.from + int64((parts+c.perTick-1)/c.perTick)
	cycle := c.cycle()
	return at + (cycle-at%cycle)%cycle
}

// fetched is how many beats were due up to and including the cycle at.
func (r *reader) fetched(c *Clock, at int64) int64 {
	parts := (at-r.from)*int64(c.perTick) - int64(r.carry)
	return min(max(parts, 0)/int64(beatBytes*c.perByte), r.lines)
}
