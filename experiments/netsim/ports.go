package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/calendar"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/fpga/engine"
)

// portState is the part of a port that changes.
type portState struct {
	up   node.Direction // towards the server, where
	link link           // these are; and
	down node.Wire      // the other way,
	acks line[ack]      // where these are

	activity activity

	framesLost                    uint64 // by the link, or because it failed
	updateFramesLost, updatesLost uint64 // of these, without background
	bypassDropped                 uint64
}

// arrive takes the first frame on the link behind a port to what is at its end.
func (s *sim) arrive(i int32) {
	p := &s.ports[i]
	f := p.link.at(0)
	if f.at > s.now { // it became longer meanwhile
		s.queue.Push(calendar.Event{At: f.at, Ord: f.ord, What: kindArrive | uint64(i)})
		return
	}
	switch {
	case f.place == lost:
	case int(p.to) >= s.switches:
		s.touchInside(&p.link)
		s.deliver(p, f)
	case f.update.Count == 0:
		x := f.place
		s.offerBackground(s.toward(s.extras[x].server, p.to), x)
	default:
		c := s.byID[f.update.Cluster]
		s.offer(s.toward(s.clusters[c].server, p.to), c, &f.update, p.link.contributors(f))
	}
	p.link.drop()
	if p.link.len() > 0 {
		f = p.link.at(0)
		s.queue.Push(calendar.Event{At: f.at, Ord: f.ord, What: kindArrive | uint64(i)})
	}
}

// toward is the port of a node that leads to a server.
func (s *sim) toward(server, node int32) int32 {
	return s.next[int(server)*len(s.names)+int(node)]
}

// offer presents an update to a port.
func (s *sim) offer(to, c int32, u *olaf.Update, inside []olaf.Contributor) {
	p := &s.ports[to]
	if s.active {
		weight := uint32(1)
		if s.t.Control.Count == CountSenders {
			weight = uint32(s.clusters[c].workers)
		}
		p.activity.see(s.now, u.Cluster, weight)
	}
	now := olaf.Time(s.now)
	o := p.output.Discipline().Offer(now, u, nil, inside)
	switch {
	case o.Merged:
		s.meter.merged(c, o.Class, s.now)
	case o.Slot == engine.NoSlot:
		s.meter.dropped(c, u, s.now)
	}
	if p.output.HandleOutcome(now, o) {
		s.launch(to)
	} else if o.Class == engine.Aggregated && p.output.MayContend() {
		s.lengthen(p)
	}
}

// lengthen moves the arrival of the frame on the wire behind a merge that made it wait.
func (s *sim) lengthen(p *port) {
	if _, sending := p.output.Sending(); !sending {
		return
	}
	out, _ := p.output.Next()
	f := p.link.at(p.link.len() - 1)
	p.up.Busy += int64(out) + p.delay - f.at
	f.at = int64(out) + p.delay
}

// turn lets a port's output do what it is due for, and plans what comes next.
func (s *sim) turn(i int32) {
	output := s.ports[i].output
	if output.Step(olaf.Time(s.now)) {
		s.launch(i)
	} else if at, busy := output.Next(); busy {
		s.queue.Push(calendar.Event{At: int64(at), Ord: s.departure(), What: kindOutput | uint64(i)})
	}
}

// launch puts the frame that a port has started to send on its link, and plans both ends of the transmission.
func (s *sim) launch(i int32) {
	p := &s.ports[i]
	var f *frame
	if slot, _ := p.output.Sending(); slot == engine.NoSlot {
		f = p.link.push(nil)
		f.update, f.place = olaf.Update{}, p.output.BypassHandle()
	} else {
		p.output.Discipline().View(slot, &s.view)
		f = p.link.push(s.view.Contributors)
		f.update, f.appended = s.view.Update, s.view.AppendedAt
	}
	at, _ := p.output.Next()
	out := int64(at)
	lost := p.up.Carry(p.output.Size(), out-s.now)
	s.queue.Push(calendar.Event{At: out, Ord: s.departure(), What: kindOutput | uint64(i)})
	f.at, f.ord = out+p.delay, s.arrival()
	if p.link.len() == 1 {
		s.queue.Push(calendar.Event{At: f.at, Ord: f.ord, What: kindArrive | uint64(i)})
	}
	if lost {
		s.lose(p)
	}
}

// lose marks the frame that a link has as its last, and loses; it will not arrive.
func (s *sim) lose(p *port) {
	f := p.link.at(p.link.len() - 1)
	if f.place == lost {
		return
	}
	p.framesLost++
	if f.update.Count > 0 {
		p.updateFramesLost++
		p.updatesLost += uint64(f.update.Count)
		f.update.Count = 0 // it is accounted for
	}
	f.inside, f.place = 0, lost
}

// change applies an entry of the schedule. A new rate holds from the next frame on; a frame on a link that fails is lost.
func (s *sim) change(c *Change) {
	there, back := s.portBetween(c.From, c.To), s.portBetween(c.To, c.From)
	if c.Rate > 0 && there >= 0 {
		p := &s.ports[there]
		p.output.SetClock(s.t.clock(c.Rate, p.spec.Overhead))
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
			s.launch(i)
		}
		if _, sending := p.output.Sending(); sending && !p.output.Up() {
			s.lose(p)
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
