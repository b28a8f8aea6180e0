package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/calendar"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/splitmix"
)

// first takes a worker's update to the port of its switch.
func (s *sim) first(i int32) {
	w := &s.workers[i]
	s.update = s.fresh(i)
	w.seq++
	s.meter.airborne--
	s.offer(w.port, int32(w.cluster), &s.update, nil)
	s.schedule(i)
}

// send handles the update that a worker just generated: transmission control decides, then it takes the access link.
func (s *sim) send(i int32) {
	w := &s.workers[i]
	if s.decide(w) {
		s.meter.sent(w, s.now)
		u := s.fresh(i)
		a := &s.waiting[i]
		switch {
		case a.first != 0:
			h := s.hold(u)
			s.held.items[a.last-1].next = h
			a.last = h
		case s.now < w.free || s.now == w.free && s.order < a.done:
			a.first = s.hold(u)
			a.last = a.first
			s.queue.Push(calendar.Event{At: w.free, Ord: a.done, What: kindAccess | uint64(i)})
		default:
			s.transmit(i, &u)
		}
	} else {
		s.meter.withheld(int32(w.cluster), s.now)
	}
	w.seq++
	s.schedule(i)
}

func (s *sim) decide(w *worker) bool {
	if !s.t.Control.Enabled {
		return true
	}
	draw := uniform(splitmix.Mix(w.base ^ saltControl + uint64(w.seq)))
	return s.listeners[w.listener].Decide(s.control, olaf.Time(s.now), draw)
}

// hold keeps an update that must wait for its worker's link; it gives 1 + its index.
func (s *sim) hold(u olaf.Update) int32 {
	h := s.held.take()
	s.held.items[h] = heldUpdate{update: u}
	return h + 1
}

// transmit puts an update on its worker's link, which is free.
func (s *sim) transmit(i int32, u *olaf.Update) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	w.free = s.now + src.transmit
	s.waiting[i].done = s.departure()
	x := src.sent.push()
	*x = entering{w.free + src.delay, s.arrival(), *u, int32(w.cluster), w.port}
	if src.sent.len() == 1 {
		s.queue.Push(calendar.Event{At: x.at, Ord: x.ord, What: kindEnter | uint64(w.source)})
	}
}

// access puts the next waiting update on a worker's link.
func (s *sim) access(i int32) {
	a := &s.waiting[i]
	h := a.first - 1
	a.first = s.held.items[h].next
	s.transmit(i, &s.held.items[h].update)
	s.held.give(h)
	if a.first != 0 {
		s.queue.Push(calendar.Event{At: s.workers[i].free, Ord: a.done, What: kindAccess | uint64(i)})
	}
}

// enter takes the first update on a source's links to the port of its switch.
func (s *sim) enter(i int32) {
	sent := &s.sources[i].sent
	x := sent.at(0)
	s.offer(x.port, x.cluster, &x.update, nil)
	sent.drop()
	if sent.len() > 0 {
		x = sent.at(0)
		s.queue.Push(calendar.Event{At: x.at, Ord: x.ord, What: kindEnter | uint64(i)})
	}
}

// arrive takes the first frame on the link behind a port to what is at its end.
func (s *sim) arrive(i int32) {
	p := &s.ports[i]
	f := p.link.at(0)
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
	if p.output.Heed(now, o) {
		s.launch(to)
	}
}

// offerBackground presents a packet of a background source to a port.
func (s *sim) offerBackground(to, x int32) {
	p := &s.ports[to]
	taken, started := p.output.Bypass(olaf.Time(s.now), s.extras[x].size, x)
	if !taken {
		p.bypassDropped++
	}
	if started {
		s.launch(to)
	}
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
		f.update, f.place = olaf.Update{}, p.output.Bypassing()
	} else {
		p.output.Discipline().View(slot, &s.view)
		f = p.link.push(s.view.Contributors)
		f.update, f.appended = s.view.Update, s.view.AppendedAt
	}
	at, _ := p.output.Next()
	out := int64(at)
	p.busy += out - s.now
	s.queue.Push(calendar.Event{At: out, Ord: s.departure(), What: kindOutput | uint64(i)})
	f.at, f.ord = out+p.delay, s.arrival()
	if p.link.len() == 1 {
		s.queue.Push(calendar.Event{At: f.at, Ord: f.ord, What: kindArrive | uint64(i)})
	}
}

// lose marks the frame that was leaving when its link failed; it will not arrive.
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

// deliver is the reception of a frame by the server at the end of p's link, which answers.
func (s *sim) deliver(p *port, f *frame) {
	if f.update.Count == 0 {
		s.meter.backgroundDelivered++
		return
	}
	server := p.to - int32(s.switches)
	c := s.byID[f.update.Cluster]
	s.meter.deliver(s, server, c, f, p.link.contributors(f))
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

// sendAck sends one copy of an ACK down to a hop, at an instant that is not before now, nor before that of an earlier
// one to the same hop.
func (s *sim) sendAck(c int32, tr *tree, h int32, at int64, status tc.Status) {
	i := tr.hops[h].uplink
	p := &s.ports[i]
	if !p.output.Up() {
		s.meter.acksLost++
		return
	}
	if p.ackTakes > 0 {
		at = max(at, p.ackFree) + p.ackTakes
		p.ackFree = at
	}
	s.pushAck(&p.acks, kindAck|uint64(i), ack{at + p.delay, s.arrival(), c, h, status})
}

// pushAck adds an ACK to those on a link, whose first has an event.
func (s *sim) pushAck(acks *line[ack], what uint64, a ack) {
	*acks.push() = a
	if acks.len() == 1 {
		s.queue.Push(calendar.Event{At: a.at, Ord: a.ord, What: what})
	}
}

// popAck takes the first ACK off a link.
func (s *sim) popAck(acks *line[ack], what uint64) ack {
	a := *acks.at(0)
	acks.drop()
	if acks.len() > 0 {
		next := acks.at(0)
		s.queue.Push(calendar.Event{At: next.at, Ord: next.ord, What: what})
	}
	return a
}

// passAck writes the status of port i into an ACK that came towards it, and multicasts it onwards.
func (s *sim) passAck(i int32) {
	p := &s.ports[i]
	a := s.popAck(&p.acks, kindAck|uint64(i))
	c := &s.clusters[a.cluster]
	tr := &s.trees[c.tree]
	h := &tr.hops[a.hop]
	status := a.status.Pass(p.status(s.now, s.t.Control.Count))
	for _, child := range h.children {
		s.sendAck(a.cluster, tr, child, s.now, status)
	}
	if h.leaf < 0 {
		return
	}
	src := &s.sources[c.source]
	s.pushAck(&src.acks, kindHeard|uint64(c.source), ack{s.now + src.transmit + src.delay, s.arrival(), a.cluster, c.listen + h.leaf, status})
}

// hear gives an ACK to all workers of a cluster behind one switch at once: their links are alike, so they share what
// they know.
func (s *sim) hear(i int32) {
	a := s.popAck(&s.sources[i].acks, kindHeard|uint64(i))
	s.listeners[a.hop].OnAck(olaf.Time(s.now), a.status)
	s.meter.acks++
}

// scheduleExtra plans a source's next background packet.
func (s *sim) scheduleExtra(i int) {
	x := &s.extras[i]
	x.w.gen = x.source.generation(&x.w)
	if x.w.gen < x.source.end {
		s.queue.Push(calendar.Event{At: x.w.gen, Ord: s.arrival(), What: kindExtra | uint64(i)})
	}
}

func (s *sim) extra(i int32) {
	x := &s.extras[i]
	x.w.seq++
	s.meter.backgroundSent++
	s.offerBackground(x.w.port, i)
	s.scheduleExtra(int(i))
}

// change applies an entry of the schedule. A new rate holds from the next frame on; a frame on a link that fails is lost.
func (s *sim) change(c *Change) {
	there, back := s.portBetween(c.From, c.To), s.portBetween(c.To, c.From)
	if c.Rate > 0 && there >= 0 {
		p := &s.ports[there]
		p.output.Pace(s.t.clock(c.Rate, p.spec.Overhead))
	}
	if c.Link == "" {
		return
	}
	for _, i := range []int32{there, back} {
		if i < 0 {
			continue
		}
		p := &s.ports[i]
		if p.output.Link(olaf.Time(s.now), c.Link == LinkUp) {
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
