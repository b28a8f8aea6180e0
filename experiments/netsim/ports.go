package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/calendar"
)

// portState is the mutable part of a port.
type portState struct {
	up   closedloop.Direction // towards the server; it carries
	link link                 // the frames in it
	down closedloop.Wire      // the opposite direction; it carries
	acks line[ack]            // the ACKs in it

	activity tc.Activity

	framesLost                    uint64 // on the link, including failures
	updateFramesLost, updatesLost uint64 // without background frames
	bypassDropped                 uint64
}

// arriveFrame delivers the first frame on the link behind a port to the other end.
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

// portToward returns the port of a node that leads to a server.
func (s *sim) portToward(server, node int32) int32 {
	return s.next[int(server)*len(s.names)+int(node)]
}

// offerUpdate offers an update to a port.
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

// delayFrame delays the arrival of the frame on the wire after a merge that delayed it.
func (s *sim) delayFrame(p *port) {
	if _, sending := p.output.Sending(); !sending {
		return
	}
	out, _ := p.output.Next()
	f := p.link.at(p.link.len() - 1)
	p.up.Busy += int64(out) + p.delay - f.at
	f.at = int64(out) + p.delay
}

// stepPort runs a port's output and schedules its next event.
func (s *sim) stepPort(i int32) {
	output := s.ports[i].output
	if output.Step(olaf.Time(s.now)) {
		s.launchFrame(i)
	} else if at, busy := output.Next(); busy {
		s.queue.Push(calendar.Event{At: int64(at), Ord: s.departureOrder(), What: kindOutput | uint64(i)})
	}
}

// launchFrame puts the frame that a port has started to send on its link, and schedules both ends of the transmission.
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

// loseFrame marks the last frame on a link as lost, so that it will not arrive.
func (s *sim) loseFrame(p *port) {
	f := p.link.at(p.link.len() - 1)
	if f.place == lost {
		return
	}
	p.framesLost++
	if f.update.Count > 0 {
		p.updateFramesLost++
		p.updatesLost += uint64(f.update.Count)
		f.update.Count = 0 // it has been counted
	}
	f.inside, f.place = 0, lost
}

// applyChange applies an entry of the schedule. A new rate applies from the next frame; a frame on a failing link is lost.
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

// frame is an update, or a background packet, on the link behind a port. It fits in one cache line.
type frame struct {
	at       int64 // when it reaches the other end, and
	ord      uint64
	update   olaf.Update // Count is 0 for other packets and lost ones
	appended olaf.Time
	inside   int32 // number of contributors
	place    int32 // of the first of them in the link's ring; else index of the background source, or lost
}

// lost is the place of a frame that was lost on its link, or cut off by a link failure.
const lost int32 = -1

// link contains the frames queued behind a port. A second ring contains their contributors; those of one frame are
// contiguous.
type link struct {
	line[frame]
	inside     []olaf.Contributor
	head, tail int32
}

// pushFrame adds a frame and copies its contributors.
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

// hasRoom reports whether n contributors fit at tail, which moves to the ring's start if they do not fit before its end.
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

// growInside doubles the ring and moves its content to the start.
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

// dropFirst removes the first frame.
func (l *link) dropFirst() {
	if f := l.at(0); f.inside > 0 {
		l.head = f.place + f.inside
	}
	l.line.drop()
}

// pool allocates indices of reusable items, the last released first.
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

// len returns the number of allocated items.
func (p *pool[T]) len() int { return len(p.items) - len(p.free) }

// line is a FIFO queue in a ring that grows.
type line[T any] struct {
	items []T // the length is a power of two
	head  uint32
	tail  uint32
}

func (l *line[T]) len() int { return int(l.tail - l.head) }

// at returns item i, counted from the first.
func (l *line[T]) at(i int) *T {
	return &l.items[int(l.head+uint32(i))&(len(l.items)-1)]
}

// push adds an item for the caller to fill; it may contain old data.
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

// drop removes the first item.
func (l *line[T]) drop() { l.head++ }

// unwrapStamp unwraps a stamp modulo 2^48 ns that is not later than at.
func unwrapStamp(at olaf.Time, genNS uint64) olaf.Time {
	age := (uint64(at.NS()) - genNS) % olaf.GenModulus
	return olaf.Time(at.NS()-int64(age)) * olaf.Time(olaf.Nanosecond)
}
