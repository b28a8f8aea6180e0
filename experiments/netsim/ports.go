package netsim

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/calendar"
)

// portState is the part of a port that changes during a run.
type portState struct {
	up   closedloop.Direction // towards the server
	link link                 // frames on the link towards the server
	down closedloop.Wire      // the opposite direction
	acks line[ack]            // ACKs in the opposite direction

	activity engine.Activity

	framesLost                    uint64 // on the link, including failures
	updateFramesLost, updatesLost uint64 // without background frames
	bypassDropped                 uint64
}

// arriveFrame delivers the first frame on the link behind a port to the node at the other end.
func (s *sim) arriveFrame(i int32) {
	p := &s.ports[i]
	f := p.link.at(0)
	if f.at > s.now { // a merge lengthened it meanwhile
		s.queue.Push(calendar.Event{At: f.at, Ord: f.ord, What: kindArrive | uint64(i)})
		return
	}
	switch {
	case f.place == lost:
	case int(p.to) >= s.switches:
		s.prefetchInside(&p.link)
		s.deliverToServer(p, f)
	case f.update.Count == 0:
		x := f.place
		s.offerBackground(s.portToward(s.extras[x].server, p.to), x)
	default:
		c := s.byID[f.update.Cluster]
		s.offerUpdate(s.portToward(s.clusters[c].server, p.to), c, &f.update, p.link.contributorsOf(f))
	}
	p.link.dropFirst()
	if p.link.len() > 0 {
		f = p.link.at(0)
		s.queue.Push(calendar.Event{At: f.at, Ord: f.ord, What: kindArrive | uint64(i)})
	}
}

// portToward returns the port of a node on the path to a server.
func (s *sim) portToward(server, node int32) int32 {
	return s.next[int(server)*len(s.names)+int(node)]
}

// offerUpdate offers an update to the queue of a port.
func (s *sim) offerUpdate(to, c int32, u *olaf.Update, inside []olaf.Contributor) {
	p := &s.ports[to]
	if s.active {
		weight := uint32(1)
		if s.t.Control.Count == CountSenders {
			weight = uint32(s.clusters[c].workers)
		}
		p.activity.Record(s.now, u.Cluster, weight)
	}
	now := olaf.Time(s.now)
	o := p.output.Discipline().Offer(now, u, nil, inside)
	switch {
	case o.Merged:
		s.meter.countMerge(c, o.Class, s.now)
	case o.Slot == engine.NoSlot:
		s.meter.countDrop(c, u, s.now)
	}
	if p.output.HandleOutcome(now, o) {
		s.launchFrame(to)
	} else if o.Class == engine.Aggregated && p.output.MayContend() {
		s.delayFrame(p)
	}
}

// delayFrame recomputes when the frame on the wire arrives, after a merge has delayed it.
func (s *sim) delayFrame(p *port) {
	if _, sending := p.output.Sending(); !sending {
		return
	}
	out, _ := p.output.Next()
	f := p.link.at(p.link.len() - 1)
	p.up.Busy += int64(out) + p.delay - f.at
	f.at = int64(out) + p.delay
}

// stepPort advances a port's output and schedules its next event.
func (s *sim) stepPort(i int32) {
	output := s.ports[i].output
	if output.Step(olaf.Time(s.now)) {
		s.launchFrame(i)
	} else if at, busy := output.Next(); busy {
		s.queue.Push(calendar.Event{At: int64(at), Ord: s.departureOrder(), What: kindOutput | uint64(i)})
	}
}

// launchFrame puts the frame that a port has begun to send on the port's link. It schedules the end of the transmission
// at the port, and the arrival at the other end.
func (s *sim) launchFrame(i int32) {
	p := &s.ports[i]
	var f *frame
	if slot, _ := p.output.Sending(); slot == engine.NoSlot {
		f = p.link.pushFrame(nil)
		f.update, f.place = olaf.Update{}, p.output.BypassHandle()
	} else {
		p.output.Discipline().View(slot, &s.view)
		f = p.link.pushFrame(s.view.Contributors)
		f.update, f.appended = s.view.Update, s.view.AppendedAt
	}
	at, _ := p.output.Next()
	out := int64(at)
	lost := p.up.Carry(p.output.Size(), out-s.now)
	s.queue.Push(calendar.Event{At: out, Ord: s.departureOrder(), What: kindOutput | uint64(i)})
	f.at, f.ord = out+p.delay, s.arrivalOrder()
	if p.link.len() == 1 {
		s.queue.Push(calendar.Event{At: f.at, Ord: f.ord, What: kindArrive | uint64(i)})
	}
	if lost {
		s.loseFrame(p)
	}
}

// loseFrame marks the last frame on a port's link as lost. It will not arrive.
func (s *sim) loseFrame(p *port) {
	f := p.link.at(p.link.len() - 1)
	if f.place == lost {
		return
	}
	p.framesLost++
	if f.update.Count > 0 {
		p.updateFramesLost++
		p.updatesLost += uint64(f.update.Count)
		f.update.Count = 0 // the frame has been counted
	}
	f.inside, f.place = 0, lost
}

// applyChange applies one entry of the topology's schedule. A new rate is effective from the next frame. If the link
// fails, the frame on it is lost.
func (s *sim) applyChange(c *Change) {
	there, back := s.portBetween(c.From, c.To), s.portBetween(c.To, c.From)
	if c.Rate > 0 && there >= 0 {
		p := &s.ports[there]
		p.output.SetClock(s.t.linkClock(c.Rate, p.spec.Overhead))
	}
	if c.Link == "" {
		return
	}
	for _, i := range []int32{there, back} {
		if i < 0 {
			continue
		}
		p := &s.ports[i]
		if p.output.SetLink(olaf.Time(s.now), c.Link == LinkUp) {
			s.launchFrame(i)
		}
		if _, sending := p.output.Sending(); sending && !p.output.Up() {
			s.loseFrame(p)
		}
	}
}

func (s *sim) portBetween(from, to string) int32 {
	for i := range s.ports {
		if s.names[s.ports[i].from] == from && s.names[s.ports[i].to] == to {
			return int32(i)
		}
	}
	return -1
}

func (s *sim) portName(i int) string {
	return s.names[s.ports[i].from] + "→" + s.names[s.ports[i].to]
}

// A link delivers frames in order after a constant delay. It is therefore a queue in which only the first frame needs
// an event, and whose memory is accessed sequentially.

// frame is an update or a background packet on the link behind a port. It fits in one cache line.
type frame struct {
	at       int64 // when it reaches the other end; ord orders equal times
	ord      uint64
	update   olaf.Update // Count is 0 for other packets and lost ones
	appended olaf.Time
	inside   int32 // number of contributors
	place    int32 // index of the first contributor in the link's ring; else index of the background source, or lost
}

// lost is the destination of a frame that was lost on its link or cut off by a link failure.
const lost int32 = -1

// link contains the frames that were sent from a port and have not arrived. A second ring contains their contributors;
// the contributors of one frame are contiguous.
type link struct {
	line[frame]
	inside     []olaf.Contributor
	head, tail int32
}

// pushFrame appends a frame and copies its contributors.
func (l *link) pushFrame(inside []olaf.Contributor) *frame {
	n := int32(len(inside))
	if l.len() == 0 {
		l.head, l.tail = 0, 0
	}
	for !l.hasRoom(n) {
		l.growInside()
	}
	f := l.line.push()
	f.inside, f.place = n, l.tail
	copy(l.inside[l.tail:], inside)
	l.tail += n
	return f
}

// hasRoom reports whether n contiguous contributors fit at the tail of the ring. If they fit only at the start of the
// ring, it moves the tail there.
func (l *link) hasRoom(n int32) bool {
	end := int32(len(l.inside))
	if l.tail < l.head {
		return l.tail+n < l.head
	}
	if l.tail+n <= end {
		return true
	}
	if n < l.head {
		l.tail = 0
		return true
	}
	return false
}

// growInside doubles the size of the ring and moves its contents to the start.
func (l *link) growInside() {
	was := l.inside
	l.inside = make([]olaf.Contributor, max(8, 2*len(was)))
	l.head, l.tail = 0, 0
	for i := range l.len() {
		f := l.at(i)
		if f.inside == 0 {
			continue
		}
		copy(l.inside[l.tail:], was[f.place:f.place+f.inside])
		f.place = l.tail
		l.tail += f.inside
	}
}

// contributorsOf returns the contributors of f, or nil if they were not logged.
func (l *link) contributorsOf(f *frame) []olaf.Contributor {
	if f.inside == 0 {
		return nil
	}
	return l.inside[f.place : f.place+f.inside]
}

// dropFirst removes the first frame on the link.
func (l *link) dropFirst() {
	if f := l.at(0); f.inside > 0 {
		l.head = f.place + f.inside
	}
	l.line.drop()
}

// pool allocates indices for reusable items. The item that was released last is used first.
type pool[T any] struct {
	items []T
	free  []int32
}

func (p *pool[T]) take() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.items = append(p.items, *new(T))
	return int32(len(p.items) - 1)
}

func (p *pool[T]) give(i int32) { p.free = append(p.free, i) }

// len returns the number of items that are in use.
func (p *pool[T]) len() int { return len(p.items) - len(p.free) }

// line is a FIFO queue in a ring buffer that grows.
type line[T any] struct {
	items []T // the length is a power of two
	head  uint32
	tail  uint32
}

func (l *line[T]) len() int { return int(l.tail - l.head) }

// at returns item i, counted from the front of the queue.
func (l *line[T]) at(i int) *T {
	return &l.items[int(l.head+uint32(i))&(len(l.items)-1)]
}

// push appends an item and returns it for the caller to fill. The item may contain old data.
func (l *line[T]) push() *T {
	if l.len() == len(l.items) {
		l.grow()
	}
	l.tail++
	return l.at(l.len() - 1)
}

func (l *line[T]) grow() {
	items := make([]T, max(4, 2*len(l.items)))
	for i := range l.len() {
		items[i] = *l.at(i)
	}
	l.items, l.head, l.tail = items, 0, uint32(l.len())
}

// drop removes the item at the front of the queue.
func (l *line[T]) drop() { l.head++ }

// station is a switch with a program and workers. It adds the workers' updates before they reach a port, and forwards
// packets from other switches.
type station struct {
	closedloop.Switch
	front    *aggregator.Aggregator // nil without workers
	sim      *sim
	at       int32
	clusters int    // highest cluster id of its workers, plus one
	vectors  int    // index of the number of added updates in the program's counts
	merged   uint64 // updates in sums, except the first of each
	refused  uint64 // updates not added
}

// addPrograms installs the program on every switch with workers.
func (n *network) addPrograms(t *Topology) error {
	if t.Program == "" {
		return nil
	}
	s, err := t.addingSystem()
	if err != nil {
		return err
	}
	n.stations = make([]station, n.switches)
	for i := range n.trees {
		tr := &n.trees[i]
		for _, at := range tr.attached {
			st := &n.stations[at]
			st.at, st.clusters = at, max(st.clusters, tr.spec.ID+tr.spec.clusterCount())
		}
	}
	for i := range n.stations {
		if st := &n.stations[i]; st.clusters > 0 {
			if err := st.installProgram(s.Program, t.H); err != nil {
				return t.locateError(t.Pos, "program", err)
			}
		}
	}
	return nil
}

// installProgram creates the switch's program, which processes updates before they reach the ports.
func (st *station) installProgram(d *program.Description, h int) error {
	own := *d
	own.New = func(cfg program.Config) (p program.Program, err error) {
		st.Program, err = d.New(cfg)
		return &st.Switch, err
	}
	st.vectors = d.Ledger.Index("vectors_in")
	var err error
	st.front, err = aggregator.New(&own, aggregator.Config{Clusters: st.clusters, H: h, Up: st.offerSum})
	return err
}

// reachSwitch delivers an update of cluster c from a worker's link to the switch, which sends it towards port to.
func (s *sim) reachSwitch(to, c int32, u *olaf.Update) {
	if s.stations == nil {
		s.offerUpdate(to, c, u, nil)
		return
	}
	st := &s.stations[s.ports[to].from]
	before := st.Counts()[st.vectors]
	st.front.Offer(olaf.Time(s.now), u, 0, nil)
	if st.Counts()[st.vectors] == before {
		st.refused++
		s.meter.countDrop(c, u, s.now)
	}
}

// offerSum offers a sum from the program to the queue of its port.
func (st *station) offerSum(_ olaf.Time, u *olaf.Update, _ []int32, inside []olaf.Contributor) {
	s := st.sim
	c := s.byID[u.Cluster]
	for range u.Count - 1 {
		st.merged++
		s.meter.countMerge(c, engine.Aggregated, s.now)
	}
	s.offerUpdate(s.portToward(s.clusters[c].server, st.at), c, u, inside)
}

// countHeld returns the number of updates that are in incomplete sums.
func (st *station) countHeld() uint64 {
	if st.front == nil {
		return 0
	}
	return st.Counts()[st.vectors-program.VectorsIn+program.VectorsHeld]
}

// auditPrograms verifies the accounting identities of the switches' programs.
func (s *sim) auditPrograms() error {
	if s.stations == nil {
		return nil
	}
	of, err := s.t.addingSystem()
	if err != nil {
		return err
	}
	for i := range s.stations {
		if st := &s.stations[i]; st.front != nil {
			if err := of.Program.CountsOf(st).Balance(); err != nil {
				return fmt.Errorf("switch %s: %w", s.names[i], err)
			}
		}
	}
	return nil
}

type serverState struct {
	processing int64
	free       int64
}

// deliverToServer handles a frame that arrives at the server at the end of p's link, and answers it with an ACK.
func (s *sim) deliverToServer(p *port, f *frame) {
	if f.update.Count == 0 {
		s.meter.backgroundDelivered++
		return
	}
	server := p.to - int32(s.switches)
	c := s.byID[f.update.Cluster]
	s.meter.recordDelivery(s, server, c, f, p.link.contributorsOf(f))
	if !s.acks {
		return
	}
	sv := &s.servers[server]
	sv.free = max(sv.free, s.now) + sv.processing
	tr := &s.trees[s.clusters[c].tree]
	for _, h := range tr.roots {
		s.sendAck(c, tr, h, sv.free, tc.Status{})
	}
}

// ack is one copy of an ACK on its way to the workers.
type ack struct {
	at      int64
	ord     uint64
	cluster int32
	hop     int32 // in the cluster's tree; on the workers' links, the listener
	status  tc.Status
}

// sendAck sends one copy of an ACK down to a hop. The copy arrives neither in the past nor before an earlier ACK to the
// same hop.
func (s *sim) sendAck(c int32, tr *tree, h int32, at int64, status tc.Status) {
	i := tr.hops[h].uplink
	p := &s.ports[i]
	if !p.output.Up() {
		s.meter.acksLost++
		return
	}
	at, _, fate := p.down.Pass(at, 0, s.ack)
	if fate != 0 {
		s.meter.acksLost++
		return
	}
	s.pushAck(&p.acks, kindAck|uint64(i), ack{at, s.arrivalOrder(), c, h, status})
}

// pushAck appends an ACK to the ACKs on a link. Only the first of them has a scheduled event.
func (s *sim) pushAck(acks *line[ack], what uint64, a ack) {
	*acks.push() = a
	if acks.len() == 1 {
		s.queue.Push(calendar.Event{At: a.at, Ord: a.ord, What: what})
	}
}

// popAck removes and returns the first ACK on a link, and schedules the event for the next one.
func (s *sim) popAck(acks *line[ack], what uint64) ack {
	a := *acks.at(0)
	acks.drop()
	if acks.len() > 0 {
		next := acks.at(0)
		s.queue.Push(calendar.Event{At: next.at, Ord: next.ord, What: what})
	}
	return a
}

// passAck writes the status of port i into an arriving ACK, and sends copies to the hops below.
func (s *sim) passAck(i int32) {
	p := &s.ports[i]
	a := s.popAck(&p.acks, kindAck|uint64(i))
	c := &s.clusters[a.cluster]
	tr := &s.trees[c.tree]
	h := &tr.hops[a.hop]
	status := a.status.PassHop(p.ackStatus(s.now, s.t.Control.Count))
	for _, child := range h.children {
		s.sendAck(a.cluster, tr, child, s.now, status)
	}
	if h.leaf < 0 {
		return
	}
	src := &s.sources[c.source]
	s.pushAck(&src.acks, kindHeard|uint64(c.source),
		ack{s.now + src.transmit + src.delay, s.arrivalOrder(), a.cluster, c.listen + h.leaf, status})
}

// hearAck delivers an ACK to all workers of a cluster behind one switch at once. Unless their links lose ACKs, the
// links are identical and the workers share one state.
func (s *sim) hearAck(i int32) {
	a := s.popAck(&s.sources[i].acks, kindHeard|uint64(i))
	s.meter.acks++
	if s.sources[i].lossy {
		s.deliverAckCopies(&a)
		return
	}
	s.listeners[a.hop].OnAck(olaf.Time(s.now), a.status)
}

// deliverAckCopies delivers one copy of an ACK to each worker of a cluster behind one switch. Each copy may be lost on
// the worker's link.
func (s *sim) deliverAckCopies(a *ack) {
	c := &s.clusters[a.cluster]
	leafOf := s.trees[c.tree].leafOf
	for i := range c.workers {
		if leafOf[int(i)%len(leafOf)] != a.hop-c.listen {
			continue
		}
		if s.cables[s.places[c.firstWorker+i]].down.Carry(s.ack, s.sources[c.source].transmit) {
			s.meter.acksLost++
			continue
		}
		s.listeners[c.listen+i].OnAck(olaf.Time(s.now), a.status)
	}
}
