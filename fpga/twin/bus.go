package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// What the logic takes (docs/reference/semantics.md, Measured), in cycles.
const (
	decisionCycles = 4   // from a frame's last beat to the decision about it, and at least between two decisions
	detourCycles   = 3   // from that decision to the last beat of a frame that bypasses, beside its beats
	sharedCycles   = 4   // more of these with one read port
	outCycles      = 6   // from the end of a frame on the output to its last beat on the bus
	inputFrames    = 64  // that may wait for a decision
	inputBeats     = 220 // of undecided frames with which another one may start
)

// fate is what became of a frame that reached VNP4-1, as far as the data path cares.
type fate uint8

const (
	gone fate = iota // dropped, or never let in
	stored
	bypassed
)

// bus brings frames from the generator to the decision about them as the logic does: one beat a cycle, a register behind the
// generator and one in VNP4-1, an input that takes a frame once it has room for the longest one, and decisions one by one. A
// frame counts when it is decided. It rests where Config.ReadPorts is 0.
type bus struct {
	next  int64   // device cycle of the next thing to do, never when there is none
	fired transit // its first beat is in the generator's register
	first transit // its first beat is in the register before the input
	whole []transit
	head  int // of whole

	used    int   // beats of whole frames
	taken   int64 // cycle in which the last beat so far was taken
	decided int64 // cycle of the last decision
	spacing int64 // to the next one, at least
	room    int64 // cycle since which there is room for another frame, never when there is none
}

// transit is one frame on its way; beats is 0 of none.
type transit struct {
	flow       *flow
	descriptor regmap.Descriptor
	size       int
	beats      int64
	at         int64  // fired: when; first: since when it waits; whole: when its last beat was taken
	genNS      uint64 // of the run clock in force when it was fired
}

func beatsOf(size int) int64 { return int64(size+beatBytes-1) / beatBytes }

// reset forgets what is inside. What is on the way to the input goes on.
func (b *bus) reset() {
	b.whole, b.head, b.used, b.room = b.whole[:0], 0, 0, 0
	b.plan()
}

// empty says that nothing is on its way.
func (b *bus) empty() bool { return b.fired.beats == 0 && b.first.beats == 0 && b.head == len(b.whole) }

// send takes the frame that the generator fires now.
func (t *Twin) send(f *flow, d *regmap.Descriptor, size int) {
	b := &t.bus
	b.fired = transit{flow: f, descriptor: *d, size: size, beats: beatsOf(size), at: t.now,
		genNS: t.generator.genNS(t.now)}
	t.generator.busFree = never
	t.move()
}

// move brings the first beat of the frame that was fired to the input, once the beat before it is in.
func (t *Twin) move() {
	b := &t.bus
	if b.fired.beats == 0 || b.first.beats != 0 {
		return
	}
	moved := max(b.fired.at+1, b.taken)
	b.first, b.fired.beats = b.fired, 0
	b.first.at = moved + 1
	if b.first.beats == 1 {
		t.generator.freed(moved)
	}
	b.plan()
}

// plan finds out what comes next.
func (b *bus) plan() {
	b.next = never
	if b.first.beats != 0 && b.room != never {
		b.next = max(b.first.at, b.room)
	}
	if b.head < len(b.whole) {
		b.next = min(b.next, b.due())
	}
}

// due is when the oldest frame is decided.
func (b *bus) due() int64 { return max(b.whole[b.head].at+decisionCycles, b.decided+b.spacing) }

// carry does what is due on the bus.
func (t *Twin) carry() {
	b := &t.bus
	if b.head < len(b.whole) && b.due() <= t.now {
		t.decide()
	} else {
		t.take()
	}
	b.plan()
}

// take lets a frame in, whose beats then come one a cycle.
func (t *Twin) take() {
	b := &t.bus
	x := b.first
	b.first.beats = 0
	b.taken = t.now + x.beats - 1
	x.at = b.taken
	b.whole = append(b.whole, x)
	b.used += int(x.beats)
	b.measure()
	if x.beats > 1 {
		t.generator.freed(b.taken - 1)
	}
	t.move()
}

// measure finds out whether there is room for another frame.
func (b *bus) measure() {
	switch fits := b.used <= inputBeats && len(b.whole)-b.head < inputFrames; {
	case !fits:
		b.room = never
	case b.room == never:
		b.room = b.decided + 1
	}
}

// decide brings the oldest frame to the queue.
func (t *Twin) decide() {
	b := &t.bus
	x := &b.whole[b.head]
	b.decided, b.spacing = t.now, decisionCycles
	switch t.ingress(x.flow, &x.descriptor, x.size, x.genNS) {
	case stored:
		b.spacing = max(x.beats, decisionCycles)
	case bypassed:
		b.spacing = x.beats + decisionCycles
	}
	b.used -= int(x.beats)
	if b.head++; b.head == len(b.whole) {
		b.whole, b.head = b.whole[:0], 0
	}
	b.measure()
}

// freed says since when the generator's bus has been free.
func (g *generator) freed(at int64) {
	g.busFree = at
	if g.next == never && (g.state == running || g.state == stopping) {
		g.next = max(g.wish, at)
	}
}

// detour is how long a frame that bypasses takes from the decision to the parameter server.
func (t *Twin) detour(size int) olaf.Time {
	if t.cfg.ReadPorts == 0 {
		return 0
	}
	cycles := beatsOf(size) + detourCycles
	if t.cfg.ReadPorts == 1 { // the copier runs behind, as the output does
		cycles += sharedCycles
	}
	return cycleTime(cycles)
}

// outLatency is how long a frame that is over takes to the parameter server.
func (t *Twin) outLatency() olaf.Time {
	if t.cfg.ReadPorts == 0 {
		return 0
	}
	return cycleTime(outCycles)
}
