package endpoint

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// SwitchML is what a SwitchML worker is built with beside the rest.
type SwitchML struct {
	// Slots is how many of the pool the worker has packets in at a time, from Base on; each has two sets.
	Slots, Base int
	// Timeout is how long it waits for a result before it sends the packet again; it doubles with every hundred timeouts. 0
	// is DefaultTimeout.
	Timeout olaf.Duration
	// Floats says that values are float32. Every packet then tells the exponent of the one that is a pool's length later, and the
	// vector begins with a pool of packets that tell nothing else, so that all workers scale a packet alike.
	Floats bool
}

func (o *SwitchML) check() error {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	switch {
	case o.Slots < 1 || o.Base < 0:
		return fmt.Errorf("%w: a pool of %d slots that begins at %d", ErrConfig, o.Slots, o.Base)
	case o.Timeout < 0:
		return badTimeout(o.Timeout)
	}
	return nil
}

// doubling is after how many timeouts the time to wait doubles.
const doubling = 100

// poolWorker streams a vector through a pool of slots: a result makes room for the packet that is a pool's length later,
// in the other set of the slot (SwitchML's released client).
type poolWorker struct {
	rounds
	sml SwitchML

	shift    int // of this vector's first packet in the 2·Slots places; carries over from vector to vector
	sum      gather
	due      []olaf.Time // by slot, of the packet that is outstanding there; Never of none
	packet   []int       // by slot, that packet
	next     olaf.Time   // not after the earliest due
	timeouts int
	out      program.Packet

	ahead  int    // packets at the beginning that carry exponents alone
	scales []int8 // by packet of the vector, the largest exponent of any worker, of those that were told
	words  []uint32
}

// total is how many packets carry a vector.
func (w *poolWorker) total() int { return w.cfg.Packets() + w.ahead }

// NewSwitchML is a worker of SwitchML. The error matches ErrConfig.
func NewSwitchML(cfg Config, sml SwitchML, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := sml.check(); err != nil {
		return nil, err
	}
	w := &poolWorker{rounds: rounds{cfg: cfg, host: host}, sml: sml, sum: newGather(cfg.Layout), next: Never}
	w.due, w.packet = make([]olaf.Time, sml.Slots), make([]int, sml.Slots)
	for i := range w.due {
		w.due[i] = Never
	}
	if sml.Floats {
		w.ahead, w.scales = min(sml.Slots, cfg.Packets()), make([]int8, cfg.Packets())
	}
	return w, nil
}

func (w *poolWorker) Computed(now olaf.Time, values []uint32) {
	w.begin(now, values)
	for i := range w.stride() {
		w.fresh(now, i)
	}
}

// stride is how many packets are on their way: the result of packet i makes room for packet i + stride.
func (w *poolWorker) stride() int {
	if w.ahead > 0 {
		return w.ahead
	}
	return min(w.cfg.Packets(), w.sml.Slots)
}

// place is slot and set of packet i.
func (w *poolWorker) place(i int) (slot int, set program.Flags) {
	at := (w.shift + i) % (2 * w.sml.Slots)
	if at < w.sml.Slots {
		return at, 0
	}
	return at - w.sml.Slots, program.Set1
}

// fresh sends packet i for the first time.
func (w *poolWorker) fresh(now olaf.Time, i int) {
	if of := i - w.ahead; i == 0 || of > 0 && w.cfg.opens(of) {
		w.host.Message()
	}
	w.send(now, i)
	w.tally[sentPackets]++
}

func (w *poolWorker) send(now olaf.Time, i int) {
	slot, set := w.place(i)
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: uint64(i), Index: uint32(w.sml.Base + slot), Flags: set, Round: uint16(w.round),
		Count: 1, Lanes: uint16(w.cfg.Lanes(max(i-w.ahead, 0))), Trace: w.contribution(),
	}
	left := w.host.Send(Network, &w.out, w.encoded(i))
	wait := w.sml.Timeout << min(w.timeouts/doubling, 20)
	w.due[slot], w.packet[slot] = max(now, left).Add(wait), i
	w.next = min(w.next, w.due[slot])
}

// encoded is what packet i holds. One of float32 has been given its scale by an earlier result, and tells the exponent of a
// later one.
func (w *poolWorker) encoded(i int) []uint32 {
	if w.ahead == 0 || w.values == nil {
		return w.cfg.cut(w.values, i)
	}
	if i < w.cfg.Packets() {
		w.out.Value = uint64(uint8(exponent(w.cfg.cut(w.values, i))))
	}
	of := i - w.ahead
	if of < 0 {
		w.words = append(w.words[:0], make([]uint32, w.cfg.Lanes(0))...)
		return w.words
	}
	w.words = scaled(w.words, w.cfg.cut(w.values, of), blockScale(w.cfg.Workers, w.scales[of]))
	return w.words
}

// decoded keeps what a result says of packets, and whether it is new.
func (w *poolWorker) decoded(i int, p *program.Packet, lanes []uint32) bool {
	if w.ahead == 0 {
		return w.sum.take(i, &p.Trace, lanes)
	}
	if of := i - w.ahead; of >= 0 {
		if !w.sum.take(of, &p.Trace, lanes) {
			return false
		}
		if lanes != nil {
			unscaled(w.cfg.cut(w.sum.values, of), blockScale(w.cfg.Workers, w.scales[of]))
		}
	}
	if i < w.cfg.Packets() {
		w.scales[i] = int8(p.Value)
	}
	return true
}

func (w *poolWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	i := packet(p)
	if p.Kind != program.Result || w.busy || w.over || i >= w.total() || !w.ours(p, i) || !w.decoded(i, p, lanes) {
		w.tally[repeated]++
		return
	}
	w.took(p)
	slot, _ := w.place(i)
	w.due[slot] = Never
	if w.sum.whole() {
		w.next = Never
		w.finish(&w.sum.traces[0], w.sum.mixed, w.sum.values)
		return
	}
	if next := i + w.stride(); next < w.total() {
		w.fresh(now, next)
	}
}

// ours says that a result is of the packet that this vector has in its place: the frame has no round, but a packet of another
// vector has another place unless the pool was gone round in between.
func (w *poolWorker) ours(p *program.Packet, i int) bool {
	slot, set := w.place(i)
	return int(p.Index) == w.sml.Base+slot && p.Flags&program.Set1 == set && w.due[slot] != Never && w.packet[slot] == i
}

func (w *poolWorker) Applied(olaf.Time) {
	w.shift = (w.shift + w.total()) % (2 * w.sml.Slots)
	w.sum.restart()
	w.updated()
}

func (w *poolWorker) Next() olaf.Time { return w.next }

// Timer sends again what has waited for too long.
func (w *poolWorker) Timer(now olaf.Time) {
	w.next = Never
	for slot, due := range w.due {
		switch {
		case due == Never:
		case due <= now:
			w.timeouts++
			w.tally[resent]++
			w.send(now, w.packet[slot])
		default:
			w.next = min(w.next, due)
		}
	}
}
