package endpoint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// SwitchML configures a SwitchML worker.
type SwitchML struct {
	// Slots is the number of slots that the worker uses at a time, and Base the first of them. Each slot has two sets.
	Slots, Base int
	// Timeout is the time without a result after which a packet is resent; default defaultTimeout. It doubles every
	// hundred timeouts, up to Longest if Longest is set.
	Timeout, Longest olaf.Duration
	// Floats means that values are float32. Every packet then carries the exponent for the packet one pool later, and
	// the vector begins with a pool of packets that carry only exponents, so that all workers use the same scale for a
	// packet.
	Floats bool
}

func (o *SwitchML) check() error {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	switch {
	case o.Slots < 1 || o.Base < 0:
		return fmt.Errorf("%w: a pool of %d slots that begins at %d", ErrConfig, o.Slots, o.Base)
	case o.Timeout < 0:
		return badTimeout(o.Timeout)
	case o.Longest != 0 && o.Longest < o.Timeout:
		return fmt.Errorf("%w: a timeout of %s that grows up to %s", ErrConfig, o.Timeout, o.Longest)
	}
	return nil
}

// doubling is the number of successive timeouts after which the timeout is doubled.
const doubling = 100

// poolWorker streams a vector through a pool of slots. A result makes room for the packet that is one pool size later,
// which uses the slot's other set, as in SwitchML's released client.
type poolWorker struct {
	rounds
	sml SwitchML

	shift    int // place of this vector's first packet among the 2·Slots places; continues from vector to vector
	sum      gather
	due      []olaf.Time // due time of each slot's outstanding packet; Never for none
	packet   []int       // each slot's outstanding packet
	next     olaf.Time   // not later than the earliest due time
	timeouts int
	out      program.Packet

	ahead    int    // number of packets at the beginning that carry only exponents
	scales   []int8 // by packet of the vector: the largest exponent of any worker, if known
	words    []uint32
	vanished int // number of the vector's values that became 0
}

// total returns the number of packets that are sent for a vector.
func (w *poolWorker) total() int { return w.cfg.Packets() + w.ahead }

// NewSwitchML returns a SwitchML worker. The error matches ErrConfig.
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
	w.fitScales()
	return w, nil
}

// fitScales adapts the exponents to the length of the vector. Packets that wait for different results must not share a
// slot, so a vector that is shorter than the pool but not than half of it has as many exponents as the pool.
func (w *poolWorker) fitScales() {
	n := w.cfg.Packets()
	if !w.sml.Floats {
		return
	}
	w.scales = slices.Grow(w.scales[:0], n)[:n]
	if w.ahead = n; 2*n > w.sml.Slots {
		w.ahead = w.sml.Slots
	}
}

func (w *poolWorker) OnComputed(now olaf.Time, values []uint32) {
	w.begin(now, values)
	w.sum.fit(w.cfg.Layout)
	w.fitScales()
	for i := range w.stride() {
		w.fresh(now, i)
	}
}

// stride returns the number of packets in flight. The result for packet i makes room for packet i + stride.
func (w *poolWorker) stride() int {
	if w.ahead > 0 {
		return w.ahead
	}
	return min(w.cfg.Packets(), w.sml.Slots)
}

// place returns the slot and the set for packet i.
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
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: uint64(i), Index: uint32(w.sml.Base + slot),
		Flags: set, Round: uint16(w.round),
		Count: 1, Lanes: uint16(w.cfg.Lanes(max(i-w.ahead, 0))), Trace: w.contribution(),
	}
	left := w.host.Send(Network, &w.out, w.encode(i))
	wait := w.sml.Timeout << min(w.timeouts/doubling, 20)
	if w.sml.Longest > 0 {
		wait = min(wait, w.sml.Longest)
	}
	w.due[slot], w.packet[slot] = max(now, left).Add(wait), i
	w.next = min(w.next, w.due[slot])
}

// encode returns the values to send in packet i. For float32 values, the scale comes from an earlier result, and the
// packet also contains the exponent for a later packet.
func (w *poolWorker) encode(i int) []uint32 {
	if w.ahead == 0 || w.values == nil {
		return w.cfg.cut(w.values, i)
	}
	if i < w.cfg.Packets() {
		w.out.Value = uint64(uint8(exponent(w.cfg.cut(w.values, i))))
	}
	of := i - w.ahead
	if of < 0 {
		w.words = append(w.words[:0], make([]uint32, w.cfg.Lanes(0))...)
		if i == 0 && w.cfg.Varies {
			w.words[0] = uint32(w.cfg.Packets())
		}
		return w.words
	}
	own := w.cfg.cut(w.values, of)
	w.words = scaleValues(w.words, own, blockScale(w.cfg.Workers, w.scales[of]))
	if slot, _ := w.place(i); w.due[slot] == Never { // not sent again
		for at, lane := range w.words {
			if lane == 0 && own[at]<<1 != 0 {
				w.vanished++
			}
		}
	}
	return w.words
}

// decode stores the values in a result and reports whether the result is new.
func (w *poolWorker) decode(i int, p *program.Packet, lanes []uint32) bool {
	if w.ahead == 0 {
		return w.sum.take(i, &p.Trace, lanes)
	}
	if of := i - w.ahead; of >= 0 {
		if !w.sum.take(of, &p.Trace, lanes) {
			return false
		}
		if lanes != nil {
			unscaleValues(w.cfg.cut(w.sum.values, of), blockScale(w.cfg.Workers, w.scales[of]))
		}
	}
	if i < w.cfg.Packets() {
		w.scales[i] = int8(p.Value)
	}
	return true
}

func (w *poolWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	i := packet(p)
	if p.Kind != program.Result || w.busy || w.over || i >= w.total() || !w.isCurrent(p, i) || !w.decode(i, p, lanes) {
		w.tally[repeated]++
		return
	}
	w.took(p)
	slot, _ := w.place(i)
	w.due[slot] = Never
	if i == 0 && w.ahead > 0 && w.cfg.Varies && lanes != nil && int(lanes[0]) != w.cfg.Workers*w.cfg.Packets() {
		w.next = Never
		w.finishUnequal()
		return
	}
	if w.sum.isWhole() {
		w.next = Never
		w.apply.Vanished, w.vanished = w.vanished, 0
		w.finish(&w.sum.traces[0], w.sum.mixed, w.sum.values)
		return
	}
	if next := i + w.stride(); next < w.total() {
		w.fresh(now, next)
	}
}

// isCurrent reports whether a result belongs to this vector's packet at its place. Frames do not contain the round, but
// packets of another vector have different places unless the pool has wrapped around in the meantime.
func (w *poolWorker) isCurrent(p *program.Packet, i int) bool {
	slot, set := w.place(i)
	return int(p.Index) == w.sml.Base+slot && p.Flags&program.Set1 == set && w.due[slot] != Never && w.packet[slot] == i
}

func (w *poolWorker) OnApplied(olaf.Time) {
	w.shift = (w.shift + w.total()) % (2 * w.sml.Slots)
	w.sum.restart()
	w.endRound()
}

func (w *poolWorker) Next() olaf.Time { return w.next }

// Timer resends packets whose timeout has expired.
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
