package endpoint

import (
	"cmp"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
)

// P4INC configures a P4INC worker.
type P4INC struct {
	// Base and Size are the job's segment of aggregators.
	Base, Size int
	// Window is the maximum number of packets in flight; default Size. Beyond Size, fragments collide in an aggregator,
	// and the switch marks them; losses can then not be recovered.
	Window int
	// Timeout is the time without sums after which the first missing packet is resent; default defaultTimeout.
	Timeout olaf.Duration
}

// p4incWindow is the initial window of a worker in packets.
const p4incWindow = 8

func (o *P4INC) check() error {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Window = cmp.Or(o.Window, o.Size)
	switch {
	case o.Base < 0 || o.Size < 1:
		return fmt.Errorf("%w: a segment of %d aggregators from %d on", ErrConfig, o.Size, o.Base)
	case o.Window < 1:
		return fmt.Errorf("%w: a window of %d packets", ErrConfig, o.Window)
	case o.Timeout < 0:
		return badTimeout(o.Timeout)
	}
	return nil
}

// climb is a congestion window. It grows by one packet per sum up to its threshold, and above the threshold by one
// packet per window. A congestion mark halves the window and sets the threshold (P4INC-AOI, §VI-B). The growth above
// the threshold is our choice.
type climb struct{ packets, threshold, most, credit int }

func newClimb(most int) climb {
	return climb{packets: min(p4incWindow, most), threshold: most, most: most}
}

func (c *climb) sum() {
	if c.credit++; c.packets < c.threshold || c.credit >= c.packets {
		c.credit, c.packets = 0, min(c.packets+1, c.most)
	}
}

func (c *climb) onMark() {
	c.packets = max(1, c.packets/2)
	c.threshold, c.credit = c.packets, 0
}

// segmentWorker streams a vector through the segment of aggregators that is assigned to its job.
type segmentWorker struct {
	rounds
	own P4INC

	sum      gather
	climb    climb
	next     int   // first packet not sent yet
	again    int   // packet that was resent because a later sum arrived; -1 for none
	turn     int   // marks on earlier packets have been handled
	occupied []int // packets whose aggregator was occupied
	due      olaf.Time
	out      program.Packet
}

// NewP4INC returns a P4INC worker. The error matches ErrConfig.
func NewP4INC(cfg Config, own P4INC, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := own.check(); err != nil {
		return nil, err
	}
	return &segmentWorker{rounds: rounds{cfg: cfg, host: host}, own: own, sum: newGather(cfg.Layout),
		climb: newClimb(own.Window), due: Never}, nil
}

func (w *segmentWorker) OnComputed(now olaf.Time, values []uint32) {
	w.begin(now, values)
	w.next, w.again, w.turn, w.occupied = 0, -1, 0, w.occupied[:0]
	w.fill(now)
}

// fill sends packets until the window is full, beginning with those for which the switch had no room.
func (w *segmentWorker) fill(now olaf.Time) {
	free := w.sum.low + w.own.Size
	kept := w.occupied[:0]
	for _, i := range w.occupied {
		if i >= free {
			kept = append(kept, i)
			continue
		}
		w.tally[resent]++
		w.send(now, i)
	}
	w.occupied = kept
	for end := min(w.cfg.Packets(), w.sum.low+w.climb.packets); w.next < end; w.next++ {
		if w.cfg.opens(w.next) {
			w.host.Message()
		}
		w.send(now, w.next)
		w.tally[sentPackets]++
	}
}

// fragment returns the position of packet i among all packets of the job. It determines the packet's aggregator.
func (w *segmentWorker) fragment(i int) uint64 {
	return uint64(w.round)*uint64(w.cfg.Packets()) + uint64(i)
}

func (w *segmentWorker) send(now olaf.Time, i int) {
	n := w.fragment(i)
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: n, Index: uint32(w.own.Base) +
			uint32(n%uint64(w.own.Size)), Round: uint16(w.round),
		Count: 1, Lanes: uint16(w.cfg.Lanes(i)), Trace: w.contribution(),
	}
	left := w.host.Send(Network, &w.out, w.cfg.cut(w.values, i))
	w.due = max(now, left).Add(w.own.Timeout)
}

func (w *segmentWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	i := int(int64(p.Seg - w.fragment(0)))
	if w.busy || w.over || i < 0 || i >= w.next {
		w.tally[repeated]++
		return
	}
	if p.Kind == program.Control && p.Action == p4inc.Collided {
		w.handleMark(now, i)
		return
	}
	if p.Kind != program.Result || !w.sum.take(i, &p.Trace, lanes) {
		w.tally[repeated]++
		return
	}
	w.took(p)
	if w.sum.isWhole() {
		w.due = Never
		w.finish(&w.sum.traces[0], w.sum.mixed, w.sum.values)
		return
	}
	w.climb.sum()
	w.due = now.Add(w.own.Timeout)
	if low := w.sum.low; i > low && w.again != low && low < w.next {
		w.again = low
		w.tally[resent]++
		w.send(now, low)
	}
	w.fill(now)
}

// handleMark handles a congestion mark, which means that packet i was not added. The window is halved at most once per
// window.
func (w *segmentWorker) handleMark(now olaf.Time, i int) {
	if w.sum.have[i] {
		w.tally[repeated]++
		return
	}
	if i >= w.turn {
		w.climb.onMark()
		w.turn = w.next
	}
	w.occupied = append(w.occupied, i)
	w.fill(now)
}

func (w *segmentWorker) OnApplied(olaf.Time) {
	w.sum.restart()
	w.endRound()
}

func (w *segmentWorker) Next() olaf.Time { return w.due }

// Timer resends the first missing packet.
func (w *segmentWorker) Timer(now olaf.Time) {
	w.tally[resent]++
	w.send(now, w.sum.low)
}
