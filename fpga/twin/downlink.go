package twin

import (
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// server models the parameter server behind the queue (registers of block model). It answers every delivered update
// with an ACK after a constant delay.
type server struct {
	pending []ack // ordered by due; the first entry is at index first
	first   int
}

// ack is an ACK that has not reached VNP4-2 yet.
type ack struct {
	due    int64 // device cycle
	flow   *flow // flow of the update's newest contributor
	update olaf.Update
}

func (t *Twin) acksEnabled() bool { return t.reg(regmap.ModelControl)&regmap.ModelControlAck != 0 }

func (s *server) pendingAcks() int { return len(s.pending) - s.first }

// nextDue returns the device cycle in which the next ACK is due, or never if there is none.
func (s *server) nextDue() int64 {
	if s.first == len(s.pending) {
		return never
	}
	return s.pending[s.first].due
}

// queueAck queues an ACK. ACKs stay in order, so an ACK that is due earlier because the delay was reduced waits for
// those before it.
func (s *server) queueAck(due int64, f *flow, u *olaf.Update) {
	if s.first > 0 && len(s.pending) == cap(s.pending) {
		n := copy(s.pending, s.pending[s.first:])
		s.pending, s.first = s.pending[:n], 0
	}
	s.pending = append(s.pending, ack{due: due, flow: f, update: *u})
}

func (s *server) takeAck() ack {
	a := s.pending[s.first]
	if s.first++; s.first == len(s.pending) {
		s.pending, s.first = s.pending[:0], 0
	}
	return a
}

// passAck models VNP4-2. It writes the queue's status into the next ACK and multicasts the ACK to the cluster's
// workers.
func (t *Twin) passAck() {
	a := t.server.takeAck()
	c := &t.counters.own
	c.AcksIn++
	t.tables.refresh()
	l := t.tables.lookup
	if l == nil || !l.Server(netip.AddrFrom4(a.flow.DestIP)) {
		c.AcksNoGroup++
		return
	}
	if !t.visitGroup(a.update.Cluster, func(w olaf.WorkerID, port uint8) {
		c.AcksOut++
		if t.recording {
			t.recordAck(&a, w, port)
		}
	}) {
		c.AcksNoGroup++
	}
}

func (t *Twin) recordAck(a *ack, to olaf.WorkerID, port uint8) {
	u := a.update
	u.Worker, u.Lanes, u.Count, u.Reward = to, 0, 0, 0
	t.tap.packets = append(t.tap.packets, Packet{
		At: t.runTime(cycleTime(t.now)), Queued: -1, Kind: Ack, Addresses: downlinkAddresses(a.flow), Update: u,
		Port: port,
		Status: olaf.QueueStatus{
			Occupancy:      uint32(t.queue.Discipline().Occupancy()),
			ActiveClusters: uint16(min(t.queue.Discipline().ActiveClusters(), 1<<16-1)),
			Slots:          uint16(min(t.queue.config.engine.Slots, 1<<16-1)),
			Full:           t.queue.Discipline().Occupancy() >= t.queue.config.engine.Slots,
		},
	})
}
