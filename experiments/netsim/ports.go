package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/calendar"
)

// portState is the mutable part of a port.
type portState struct {
	up   node.Direction // towards the server; it carries
	link link           // the frames in it
	down node.Wire      // the opposite direction; it carries
	acks line[ack]      // the ACKs in it

	activity activity

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
		p.activity.recordUpdate(s.now, u.Cluster, weight)
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
