package twin

import (
	"fmt"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// inlet is the port at which frames from another card's generator arrive.
type inlet struct {
	next    int64 // device cycle of the next arrival, never if there is none
	waiting []outsider
	head    int // index of the first entry of waiting
	// delay is the number of cycles by which this card's clock is ahead of the other card's.
	delay int64
	// sent counts the frames that this card's generator sent over the wire. received counts the frames that arrived.
	sent, received uint64
}

// outsider is a frame from another card. Its times are on this card's clock.
type outsider struct {
	at         int64
	zero       int64 // cycle at which the other card's run clock was 0
	flow       *flow
	descriptor regmap.Descriptor
	size       int
	genNS      uint64
	lanes      []int32
}

// reset discards the frames that have not arrived yet.
func (i *inlet) reset() { i.waiting, i.head, i.next = i.waiting[:0], 0, never }

// Reasons why two twins cannot be joined. The timing of the logic is known only for a generator and a queue on the same
// card.
var (
	errMeasured = fmt.Errorf("twin: %w: cards that keep the time of the logic can't be joined by a cable", fpga.ErrRefused)
	errLanes    = fmt.Errorf("twin: %w: of two joined cards, one moves gradients and the other does not", fpga.ErrRefused)
)

// Join connects the second port of generator's card to the first port of queue's card by a cable without delay. Frames
// that the generator sends out of its card arrive at queue, whose tables identify their senders. From then on, both
// clocks must advance by the same steps, the generator's clock first. Observations at queue are timed by the
// generator's run clock. The error matches fpga.ErrRefused.
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

// RunStart returns the device cycle at which the run clock for packets and observations started. It is the run clock of
// this card's generator or, if frames arrive from another card, of that card's generator.
func (t *Twin) RunStart() int64 { return t.generator.zero }

// CableCounts returns the number of frames that this card's generator has sent over the cable, and the number of frames
// that have arrived from another card's generator.
func (t *Twin) CableCounts() (sent, received uint64) { return t.inlet.sent, t.inlet.received }

// sendOut sends the frame that the generator fires in this cycle over the cable.
func (t *Twin) sendOut(f *flow, d *regmap.Descriptor, size int) {
	t.inlet.sent++
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

// receive accepts the frame that arrives in this cycle.
func (t *Twin) receive() {
	in := &t.inlet
	x := &in.waiting[in.head]
	x.flow.lanes, t.generator.zero = x.lanes, x.zero
	t.classify(x.flow, &x.descriptor, x.size, x.genNS)
	in.received++
	if in.head++; in.head == len(in.waiting) {
		in.reset()
	} else {
		in.next = in.waiting[in.head].at
	}
}

// lanesOf returns the gradient in a flow's current frame, or nil if Config.Wire is not set.
func (t *Twin) lanesOf(f *flow) []int32 {
	if f.lanes != nil {
		return f.lanes
	}
	return t.generator.templates[f.Template]
}
