package twin

import (
	"fmt"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// inlet is the port at which frames of another card's generator arrive.
type inlet struct {
	next    int64 // device cycle of the next arrival, never when there is none
	waiting []outsider
	head    int // of waiting
	// delay is how many cycles this card's clock is ahead of the other one's.
	delay int64
}

// outsider is one frame of another card, on this card's clock.
type outsider struct {
	at         int64
	zero       int64 // when the other card's run clock was 0
	flow       *flow
	descriptor regmap.Descriptor
	size       int
	genNS      uint64
	lanes      []int32
}

// reset forgets frames that have not arrived.
func (i *inlet) reset() { i.waiting, i.head, i.next = i.waiting[:0], 0, never }

// Reasons for which two twins are not joined: the time of the logic is known for a generator and a queue on one card only.
var (
	errMeasured = fmt.Errorf("twin: %w: cards that keep the time of the logic can't be joined by a cable", fpga.ErrRefused)
	errLanes    = fmt.Errorf("twin: %w: of two joined cards, one moves gradients and the other does not", fpga.ErrRefused)
)

// Join lays a cable from the second port of one card to the first port of another, which takes no time. Frames that
// generator's generator sends by the wire arrive at queue, by whose tables they are known. From now on both clocks must go
// on by the same steps, generator's first; observations at queue count on generator's run clock. The error matches
// fpga.ErrRefused.
func Join(generator, queue *Twin) error {
	if generator.cfg.ReadPorts != 0 || queue.cfg.ReadPorts != 0 {
		return errMeasured
	}
	if generator.cfg.Wire != queue.cfg.Wire {
		return errLanes
	}
	generator.cable, queue.inlet.delay = queue, queue.now-generator.now
	return nil
}

// RunStart returns the device cycle at which the run clock was 0 that packets and observations count on: of this card's
// generator, or of the one whose frames arrive.
func (t *Twin) RunStart() int64 { return t.generator.zero }

// sendOut sends the frame that the generator fires now by the wire.
func (t *Twin) sendOut(f *flow, d *regmap.Descriptor, size int) {
	if t.cable == nil {
		return
	}
	if f.far == nil {
		f.far = &flow{Flow: f.Flow}
	}
	in := &t.cable.inlet
	x := outsider{at: t.now + in.delay, zero: t.generator.zero + in.delay, flow: f.far, descriptor: *d, size: size,
		genNS: t.generator.genNS(t.now)}
	if t.recording {
		x.lanes = t.generator.templates[f.Template]
	}
	in.waiting = append(in.waiting, x)
	in.next = in.waiting[in.head].at
}

// receive takes the frame that arrives now.
func (t *Twin) receive() {
	in := &t.inlet
	x := &in.waiting[in.head]
	x.flow.lanes, t.generator.zero = x.lanes, x.zero
	t.classify(x.flow, &x.descriptor, x.size, x.genNS)
	if in.head++; in.head == len(in.waiting) {
		in.reset()
	} else {
		in.next = in.waiting[in.head].at
	}
}

// lanesOf returns the gradient of the frame of a flow that is at hand, with Config.Wire.
func (t *Twin) lanesOf(f *flow) []int32 {
	if f.lanes != nil {
		return f.lanes
	}
	return t.generator.templates[f.Template]
}
