package endpoint

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
)

// atpPacket is the state of a packet that is in flight or that was acknowledged before an earlier packet.
type atpPacket struct {
	have     bool // the packet was acknowledged
	again    bool // resent because later packets were acknowledged
	floats   bool // the server requested float32 values
	marked   bool // the acknowledgement had a congestion mark
	proposes bool // the acknowledgement proposes another aggregator for this place
	proposal uint32
}

// atpWorker keeps a window of packets in flight. Acknowledgements contain the sums.
type atpWorker struct {
	rounds
	atp   ATP
	place aggregators
	one   uint64 // the worker's bit in bitmaps
	fan   uint16 // number of workers in the rack
	aimd  AIMD

	base   uint64 // sequence number of the vector's first packet
	low    int    // first unacknowledged packet
	next   int    // first packet not sent yet
	window int
	turn   uint64 // sequence number at which the window is next adjusted
	late   int    // number of acknowledgements out of order since low moved
	due    olaf.Time
	packet []atpPacket // packets in the window, by number modulo the length

	first program.Trace
	mixed bool
	sum   []uint32
	words []uint32 // of the current packet
	out   program.Packet
}

// NewATPWorker returns an ATP worker. The error matches ErrConfig.
func NewATPWorker(cfg Config, o ATP, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := o.check(&cfg); err != nil {
		return nil, err
	}
	w := &atpWorker{rounds: rounds{cfg: cfg, host: host}, atp: o, base: 1, due: Never, packet: make([]atpPacket, o.Window)}
	w.place = newAggregators(&w.atp, cfg.Job)
	w.aimd = newAIMD(atpFrame, aimdStep, o.Window)
	w.window, w.turn = o.Window, uint64(o.Window)
	rack, at := o.place(int(cfg.Worker), cfg.Workers)
	w.one, w.fan = 1<<at, uint16(o.inRack(rack, cfg.Workers))
	if o.Profile == atp.Paper {
		w.one |= 1 << (rackShift + rack)
	}
	return w, nil
}

func (w *atpWorker) OnComputed(now olaf.Time, values []uint32) {
	w.begin(now, values)
	if values != nil {
		w.sum = slices.Grow(w.sum[:0], w.cfg.Values)[:w.cfg.Values]
	}
	w.low, w.next, w.late, w.mixed = 0, 0, 0, false
	w.fill(now)
	w.wait(now, w.atp.FirstTimeout)
}

// wait sets the timer after which a loss is suspected.
func (w *atpWorker) wait(now olaf.Time, timeout olaf.Duration) {
	if !w.atp.Silent {
		w.due = now.Add(timeout)
	}
}

// fill sends packets until the window is full.
func (w *atpWorker) fill(now olaf.Time) {
	for end := min(w.cfg.Packets(), w.low+w.window); w.next < end; w.next++ {
		if w.cfg.opens(w.next) {
			w.host.Message()
		}
		*w.at(w.next) = atpPacket{}
		w.send(now, w.next, 0)
		w.tally[sentPackets]++
	}
}

func (w *atpWorker) at(i int) *atpPacket { return &w.packet[i%len(w.packet)] }

func (w *atpWorker) send(now olaf.Time, i int, flags program.Flags) {
	seq := w.base + uint64(i)
	lanes := w.cfg.cut(w.values, i)
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: seq, Index: w.place.of(seq), Bitmap: w.one, Fan: w.fan, Flags: flags,
		Round: uint16(w.round), Count: 1, Lanes: uint16(w.cfg.Lanes(i)), Trace: w.contribution(),
	}
	if lanes != nil && w.atp.Fixed.on() {
		lanes = w.encode(i, lanes)
	}
	w.host.Send(Network, &w.out, lanes)
}

// encode returns the values of a packet in the form in which they are sent. They are sent as floats if they do not fit
// into integers or if the server requested floats.
func (w *atpWorker) encode(i int, floats []uint32) []uint32 {
	k := w.at(i)
	switch {
	case k.floats:
		w.out.Flags |= program.Overflow | program.Resend
		return floats
	case tooLarge(floats):
		w.out.Flags |= program.Overflow
		return floats
	}
	w.words = w.atp.Fixed.integers(w.words, floats)
	return w.words
}

func (w *atpWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	i := int(int64(p.Seg - w.base))
	if p.Kind != program.Ack || w.busy || w.over || i < w.low || i >= w.next || w.at(i).have {
		w.tally[repeated]++
		return
	}
	if p.Flags&(program.Overflow|program.Resend) == program.Overflow {
		w.tally[repeated]++
		w.at(i).floats = true
		w.resendPacket(now, i)
		return
	}
	w.take(i, p, lanes)
	if i > w.low {
		w.skip(now, i)
		return
	}
	w.advance()
	if w.low == w.cfg.Packets() {
		w.applySum()
		return
	}
	w.fill(now)
	w.wait(now, w.atp.Timeout)
}

// take stores the values in an acknowledgement.
func (w *atpWorker) take(i int, p *program.Packet, lanes []uint32) {
	w.took(p)
	if i == 0 {
		w.first = p.Trace
	}
	w.mixed = w.mixed || p.Inside != w.marks
	k := w.at(i)
	k.have, k.marked = true, p.Flags&program.ECN != 0
	k.proposes, k.proposal = p.Flags&program.Collision != 0, uint32(p.Value)
	part := w.cfg.cut(w.sum, i)
	if copy(part, lanes) > 0 && w.atp.Fixed.on() && p.Flags&program.Overflow == 0 {
		w.atp.Fixed.floats(part)
	}
	if i == 0 {
		w.checkFirst(part)
	}
}

// advance moves the start of the window past all packets that were acknowledged without a gap. Proposals are applied in
// order, so that all workers have the same table.
func (w *atpWorker) advance() {
	for w.low < w.next && w.at(w.low).have {
		k, seq := w.at(w.low), w.base+uint64(w.low)
		if k.proposes {
			w.place.remap(seq, k.proposal)
		}
		if w.atp.Congestion && seq == w.turn {
			w.window = w.aimd.Adjust(k.marked)
			w.turn += uint64(w.window)
		}
		w.low++
	}
	w.late = 0
}

// skip handles an acknowledgement that arrives while earlier ones are missing. After Trigger such acknowledgements,
// each missing packet is sent again, but only once.
func (w *atpWorker) skip(now olaf.Time, i int) {
	if w.late++; w.late < w.atp.Trigger || w.atp.Silent {
		return
	}
	for k := w.low; k < i; k++ {
		if at := w.at(k); !at.have && !at.again {
			at.again = true
			w.resendPacket(now, k)
		}
	}
}

func (w *atpWorker) resendPacket(now olaf.Time, i int) {
	w.tally[resent]++
	w.send(now, i, program.Resend)
}

// applySum applies the complete sum.
func (w *atpWorker) applySum() {
	w.due = Never
	w.base += uint64(w.cfg.Packets())
	var sum []uint32
	if w.values != nil {
		sum = w.sum
	}
	w.finish(&w.first, w.mixed, sum)
}

func (w *atpWorker) OnApplied(olaf.Time) { w.endRound() }

func (w *atpWorker) Next() olaf.Time { return w.due }

// Timer resends the missing packets before the first packet that was acknowledged out of order or, if there is none,
// the first missing packet.
func (w *atpWorker) Timer(now olaf.Time) {
	end := w.low + 1
	for k := w.low + 1; k < w.next; k++ {
		if w.at(k).have {
			end = k
			break
		}
	}
	for k := w.low; k < end; k++ {
		w.resendPacket(now, k)
	}
	w.wait(now, w.atp.Timeout)
}
