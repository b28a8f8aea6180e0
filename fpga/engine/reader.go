package engine

import "github.com/olafctl/olaf"

// beatBytes is the number of bytes per cycle on the data path and read from the gradient memory.
const beatBytes = 64

// readableAfter is the number of cycles between the decision on an update and the first read of its lanes.
const readableAfter = 5

// reader models how the output reads the gradient memory if Output.ReadPorts is set (docs/reference/semantics.md,
// Measured). The current frame needs beat i of its lanes in the first cycle that begins at or after its start plus 64·i
// bytes. While the output waits for a beat, the whole frame stops, so its start is moved. All instants except from are
// ticks of the port's clock at which a cycle begins.
type reader struct {
	from     int64  // start of the current frame, exact with carry, moved by its stalls
	carry    uint64 // parts of a tick
	lines    int64  // beats of lanes; the header is not read from this memory
	held     int64  // first cycle in which no merge occupies the only read port
	newest   Slot   // slot written last
	readable int64  // time when that slot can be read
	stall    [2]int64
}

// countBeats returns the number of cycles that a frame takes on the data path.
func countBeats(size olaf.Size) int64 { return int64(size+beatBytes-1) / beatBytes }

// startRead begins to read the locked frame, starting exactly at from plus carry.
func (p *Port) startRead(from int64, carry uint64) {
	r := &p.reader
	r.from, r.carry, r.lines = from, carry, 0
	if p.slot == NoSlot {
		return
	}
	if r.lines = countBeats(p.size) - 1; r.lines == 0 {
		return
	}
	if p.out.ReadPorts == 1 {
		free := r.held
		if r.newest == p.slot {
			free = max(free, r.readable)
		}
		p.stallOutput(r.beatCycle(&p.clock, 1), free)
	}
	// A frame ends at least one cycle after its last beat was read.
	if last := r.beatCycle(&p.clock, r.lines); p.phaseEnd() <= last {
		p.until, p.carry = last+p.clock.cycleTicks(), 0
	}
}

// recordWrite handles an update that is written to a slot at now. If the update is merged, it occupies the only read
// port and may stall the output, at most once.
func (p *Port) recordWrite(now olaf.Time, o Outcome) {
	if p.out.ReadPorts != 1 || o.Slot == NoSlot {
		return
	}
	r, cycle := &p.reader, p.clock.cycleTicks()
	at := p.clock.firstTick(now)
	at += (cycle - at%cycle) % cycle
	r.newest, r.readable = o.Slot, at+readableAfter*cycle
	if o.Class != Aggregated {
		return
	}
	p.discipline.View(o.Slot, &p.departure.Frame)
	r.held = max(r.held, at+cycle) + (countBeats(p.departure.Frame.Update.Size())-1)*cycle
	if p.phase != sending {
		return
	}
	if r.stall[1] > at { // the output is already stalled
		p.stallOutput(r.stall[1], r.held)
	} else if next := r.countDue(&p.clock, at) + 1; next <= r.lines {
		p.stallOutput(r.beatCycle(&p.clock, next), r.held)
	}
}

// stallOutput stalls the output from the cycle in which it needs a beat, wanted, until the read port is free.
func (p *Port) stallOutput(wanted, free int64) {
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
	p.stallCycles += uint64((free - wanted) / p.clock.cycleTicks())
}

// pendingStall returns the number of stall cycles that were charged but are still in the future.
func (p *Port) pendingStall() uint64 {
	cycle := p.clock.cycleTicks()
	return uint64(max(0, p.reader.stall[1]-max(p.reader.stall[0], p.now+cycle)) / cycle)
}

// beatCycle returns the cycle in which beat i is due. Beats are numbered from 1.
func (r *reader) beatCycle(c *Clock, i int64) int64 {
	parts := r.carry + uint64(i)*beatBytes*c.perByte
	at := r.from + int64((parts+c.perTick-1)/c.perTick)
	cycle := c.cycleTicks()
	return at + (cycle-at%cycle)%cycle
}

// countDue returns the number of beats that are due at or before cycle at.
func (r *reader) countDue(c *Clock, at int64) int64 {
	parts := (at-r.from)*int64(c.perTick) - int64(r.carry)
	return min(max(parts, 0)/int64(beatBytes*c.perByte), r.lines)
}
