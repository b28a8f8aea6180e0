package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Latencies and capacities of the logic in cycles (docs/reference/semantics.md, Measured).
const (
	decisionCycles = 4   // from a frame's last beat to its decision, and minimum between two decisions
	detourCycles   = 3   // from the decision to the last beat of a bypassing frame, in addition to its beats
	sharedCycles   = 4   // in addition to detourCycles with one read port
	outCycles      = 6   // from the end of a frame at the output to its last beat on the bus
	inputFrames    = 64  // frames that may wait for a decision
	inputBeats     = 220 // beats of undecided frames up to which another frame may start
)

// fate is the treatment of a frame after VNP4-1 has classified it.
type fate uint8

const (
	gone fate = iota // dropped or never admitted
	stored
	bypassed
)

// bus models the path from the generator to the decision in the logic. It transmits one beat per cycle. There is a
// register behind the generator and another in VNP4-1. The input accepts a frame only if it has room for the longest
// frame, and one frame at a time is decided. A frame is counted when it is decided. The bus is not used if
// Config.ReadPorts is 0.
type bus struct {
	next  int64   // device cycle of the next event, never if there is none
	fired transit // frame whose first beat is in the generator's register
	first transit // frame whose first beat is in the register before the input
	whole []transit
	head  int // index of the oldest in whole

	used    int   // number of beats of the frames in whole
	taken   int64 // cycle of the last accepted beat
	decided int64 // cycle of the last decision
	spacing int64 // minimum number of cycles until the next decision
	room    int64 // cycle from which on another frame fits; never if none does
}

// transit is a frame on the bus. If beats is 0, there is no frame.
type transit struct {
	flow       *flow
	descriptor regmap.Descriptor
	size       int
	beats      int64
	at         int64  // fired: cycle of firing; first: cycle from which on it waits; whole: cycle of its last beat
	genNS      uint64 // time on the run clock at which it was fired
}

func beatsOf(size int) int64 { return int64(size+beatBytes-1) / beatBytes }

// reset removes the frames that were accepted but not decided. Frames that wait before the input stay.
func (b *bus) reset() {
	b.whole, b.head, b.used, b.room = b.whole[:0], 0, 0, 0
	b.planNext()
}

// empty reports whether there is no frame on the bus.
func (b *bus) empty() bool { return b.fired.beats == 0 && b.first.beats == 0 && b.head == len(b.whole) }

// sendFrame starts to send a frame, which the generator has just fired, over the bus.
func (t *Twin) sendFrame(f *flow, d *regmap.Descriptor, size int) {
	b := &t.bus
	b.fired = transit{flow: f, descriptor: *d, size: size, beats: beatsOf(size), at: t.now,
		genNS: t.generator.genNS(t.now)}
	t.generator.busFree = never
	t.moveFired()
}

// moveFired moves the first beat of the fired frame to the input's register, if that register is free.
func (t *Twin) moveFired() {
	b := &t.bus
	if b.fired.beats == 0 || b.first.beats != 0 {
		return
	}
	moved := max(b.fired.at+1, b.taken)
	b.first, b.fired.beats = b.fired, 0
	b.first.at = moved + 1
	if b.first.beats == 1 {
		t.generator.setBusFree(moved)
	}
	b.planNext()
}

// planNext computes the cycle of the next event on the bus.
func (b *bus) planNext() {
	b.next = never
	if b.first.beats != 0 && b.room != never {
		b.next = max(b.first.at, b.room)
	}
	if b.head < len(b.whole) {
		b.next = min(b.next, b.decisionDue())
	}
}

// decisionDue returns the cycle in which the oldest accepted frame is decided.
func (b *bus) decisionDue() int64 { return max(b.whole[b.head].at+decisionCycles, b.decided+b.spacing) }

// stepBus handles the bus event that is due now.
func (t *Twin) stepBus() {
	b := &t.bus
	if b.head < len(b.whole) && b.decisionDue() <= t.now {
		t.decideOldest()
	} else {
		t.acceptFrame()
	}
	b.planNext()
}

// acceptFrame accepts the frame that waits at the input. Its beats follow, one per cycle.
func (t *Twin) acceptFrame() {
	b := &t.bus
	x := b.first
	b.first.beats = 0
	b.taken = t.now + x.beats - 1
	x.at = b.taken
	b.whole = append(b.whole, x)
	b.used += int(x.beats)
	b.updateRoom()
	if x.beats > 1 {
		t.generator.setBusFree(b.taken - 1)
	}
	t.moveFired()
}

// updateRoom updates the cycle from which the input has room for another frame.
func (b *bus) updateRoom() {
	switch fits := b.used <= inputBeats && len(b.whole)-b.head < inputFrames; {
	case !fits:
		b.room = never
	case b.room == never:
		b.room = b.decided + 1
	}
}

// decideOldest passes the oldest accepted frame to the queue or around it, or drops it.
func (t *Twin) decideOldest() {
	b := &t.bus
	x := &b.whole[b.head]
	b.decided, b.spacing = t.now, decisionCycles
	switch t.classify(x.flow, &x.descriptor, x.size, x.genNS) {
	case stored:
		b.spacing = max(x.beats, decisionCycles)
	case bypassed:
		b.spacing = x.beats + decisionCycles
	}
	b.used -= int(x.beats)
	if b.head++; b.head == len(b.whole) {
		b.whole, b.head = b.whole[:0], 0
	}
	b.updateRoom()
}

// setBusFree records the cycle from which the generator's bus is free.
func (g *generator) setBusFree(at int64) {
	g.busFree = at
	if g.next == never && (g.state == running || g.state == stopping) {
		g.next = max(g.wish, at)
	}
}

// bypassLatency returns the time that a bypassing frame takes from the decision to the parameter server.
func (t *Twin) bypassLatency(size int) olaf.Time {
	if t.cfg.ReadPorts == 0 {
		return 0
	}
	cycles := beatsOf(size) + detourCycles
	if t.cfg.ReadPorts == 1 { // the copier shares the port, as does the output
		cycles += sharedCycles
	}
	return cycleTime(cycles)
}

// outLatency returns the time that a frame takes from the queue's output to the parameter server.
func (t *Twin) outLatency() olaf.Time {
	if t.cfg.ReadPorts == 0 {
		return 0
	}
	return cycleTime(outCycles)
}
