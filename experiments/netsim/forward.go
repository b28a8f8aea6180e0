package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
)

// first takes a worker's update to the port of its switch.
func (s *sim) first(i int32) {
	w := &s.workers[i]
	s.update = s.fresh(i)
	w.seq++
	s.meter.airborne--
	s.offer(w.port, w.cluster, &s.update, nil)
	s.schedule(i)
}

// send handles the update that a worker just generated: transmission control decides, then it takes the access link.
func (s *sim) send(i int32) {
	w := &s.workers[i]
	if s.decide(w) {
		s.meter.sent(w, s.now)
		f := s.frames.take()
		fr := &s.frames.items[f]
		fr.update, fr.background, fr.lost, fr.next = s.fresh(i), false, false, 0
		fr.inside = fr.inside[:0]
		a := &s.waiting[i]
		switch {
		case a.first != 0:
			s.frames.items[a.last-1].next = f + 1
			a.last = f + 1
		case s.now < w.free || s.now == w.free && s.order < a.done:
			a.first, a.last = f+1, f+1
			s.queue.push(event{w.free, a.done, kindAccess | uint64(i)})
		default:
			s.transmit(i, f)
		}
	} else {
		s.meter.withheld(w.cluster, s.now)
	}
	w.seq++
	s.schedule(i)
}

func (s *sim) decide(w *worker) bool {
	if !s.t.Control.Enabled {
		return true
	}
	draw := uniform(splitMix(w.base ^ saltControl + uint64(w.seq)))
	return s.listeners[w.listener].Decide(s.control, olaf.Time(s.now), draw)
}

// transmit puts a frame on its worker's link, which is free.
func (s *sim) transmit(i, f int32) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	w.free = s.now + src.transmit
	s.waiting[i].done = s.departure()
	s.queue.push(event{w.free + src.delay, s.arrival(), kindArrive | uint64(w.port)<<32 | uint64(f)})
}

// access puts the next waiting frame on a worker's link.
func (s *sim) access(i int32) {
	a := &s.waiting[i]
	f := a.first - 1
	a.first = s.frames.items[f].next
	s.transmit(i, f)
	if a.first != 0 {
		s.queue.push(event{s.workers[i].free, a.done, kindAccess | uint64(i)})
	}
}

// arrive takes a frame to a port.
func (s *sim) arrive(to, f int32) {
	fr := &s.frames.items[f]
	if fr.lost {
		s.frames.give(f)
		return
	}
	if fr.background {
		s.offerBackground(to, f)
		return
	}
	var inside []olaf.Contributor
	if len(fr.inside) > 0 {
		inside = fr.inside
	}
	s.offer(to, s.byID[fr.update.Cluster], &fr.update, inside)
	s.frames.give(f)
}

// offer presents an update to a port's engine.
func (s *sim) offer(to, c int32, u *olaf.Update, inside []olaf.Contributor) {
	p := &s.ports[to]
	if s.active {
		weight := uint32(1)
		if s.t.Control.Count == CountSenders {
			weight = uint32(s.clusters[c].workers)
		}
		p.activity.see(s.now, u.Cluster, weight)
	}
	class := p.engine.OfferMerged(olaf.Time(s.now), u, nil, inside)
	switch class {
	case engine.Appended:
		if p.phase == idle {
			s.start(to)
		}
	case engine.Aggregated, engine.Replaced, engine.ReplacedReward:
		s.meter.merged(c, class, s.now)
		if p.phase == paying {
			p.until += p.mergeCost
		} else {
			p.merges++
		}
	default:
		s.meter.dropped(c, u, s.now)
	}
}

func (s *sim) offerBackground(to, f int32) {
	p := &s.ports[to]
	if !p.bypass.push(f) {
		p.bypassDropped++
		s.frames.give(f)
		return
	}
	if p.phase == idle {
		s.start(to)
	}
}

// start puts the next frame of an idle port on the wire. Bypass and engine take turns when both have one.
func (s *sim) start(i int32) {
	p := &s.ports[i]
	background := p.bypass.len() > 0 && (p.robin || p.engine.Waiting(engine.ToServer) == 0)
	var size olaf.Size
	switch {
	case !p.up:
		p.phase, p.carry = idle, 0
		return
	case background:
		p.robin = false
		p.frame = p.bypass.pop()
		size = s.frames.items[p.frame].size
	default:
		slot, ok := p.engine.Lock(engine.ToServer)
		if !ok {
			p.phase, p.carry = idle, 0
			return
		}
		p.robin = true
		p.slot, p.frame = slot, s.frames.take()
		f := &s.frames.items[p.frame]
		view := p.engine.Frame(slot)
		f.update, f.appended, f.background, f.lost = view.Update, view.AppendedAt, false, false
		f.server = s.clusters[s.byID[view.Update.Cluster]].server
		f.inside = append(f.inside[:0], view.Contributors...)
		size = view.Update.Size()
	}
	p.background, p.phase = background, sending
	var took int64
	if s.ns3 {
		took = transmissionNS3(size+p.overhead, p.rate)
	} else {
		took, p.carry = transmission(size+p.overhead, p.rate, p.carry)
	}
	p.busy += took
	out := s.now + took
	s.queue.push(event{out, s.departure(), kindDepart | uint64(i)})
	server := s.frames.items[p.frame].server
	what := kindDeliver | uint64(server)<<32
	if int(p.to) < s.switches {
		what = kindArrive | uint64(s.next[int(server)*len(s.names)+int(p.to)])<<32
	}
	s.queue.push(event{out + p.delay, s.arrival(), what | uint64(p.frame)})
}

// depart ends a transmission, whose frame is on its way, and starts the next.
func (s *sim) depart(i int32) {
	p := &s.ports[i]
	if !p.background {
		p.engine.Release(p.slot)
	}
	cost := p.dequeueCost + p.merges*p.mergeCost
	p.merges = 0
	if p.background || cost == 0 {
		s.start(i)
		return
	}
	p.phase, p.until = paying, s.now+cost
	s.queue.push(event{p.until, s.departure(), kindPaid | uint64(i)})
}

// lose marks the frame that was on a link when it failed; it will not arrive.
func (s *sim) lose(p *port) {
	f := &s.frames.items[p.frame]
	if f.lost {
		return
	}
	f.lost = true
	p.framesLost++
	if !f.background {
		p.updateFramesLost++
		p.updatesLost += uint64(f.update.Count)
		f.update.Count = 0 // it is accounted for
	}
}

// paid ends the engine cycles, unless merges meanwhile made them longer.
func (s *sim) paid(i int32) {
	p := &s.ports[i]
	if s.now < p.until {
		s.queue.push(event{p.until, s.departure(), kindPaid | uint64(i)})
		return
	}
	s.start(i)
}

// deliver is the reception of a frame by its server, which answers.
func (s *sim) deliver(server, i int32) {
	f := &s.frames.items[i]
	if f.lost {
		s.frames.give(i)
		return
	}
	if f.background {
		s.meter.backgroundDelivered++
		s.frames.give(i)
		return
	}
	c := s.byID[f.update.Cluster]
	s.meter.deliver(s, server, c, f)
	s.frames.give(i)
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

// sendAck sends one copy of an ACK down to a hop, at an instant that is not before now.
func (s *sim) sendAck(c int32, tr *tree, h int32, at int64, status tc.Status) {
	p := &s.ports[tr.hops[h].uplink]
	if !p.up {
		s.meter.acksLost++
		return
	}
	if p.ackRate > 0 {
		at = max(at, p.ackFree) + s.transmission(s.ackSize+p.overhead, p.ackRate)
		p.ackFree = at
	}
	m := s.messages.take()
	s.messages.items[m] = ack{c, h, status}
	s.queue.push(event{at + p.delay, s.arrival(), kindAck | uint64(m)})
}

// passAck writes a hop's status into an ACK and multicasts it onwards.
func (s *sim) passAck(i int32) {
	a := s.messages.items[i]
	c := &s.clusters[a.cluster]
	tr := &s.trees[c.tree]
	h := &tr.hops[a.hop]
	status := a.status.Pass(s.ports[h.uplink].status(s.now, s.t.Control.Count))
	for _, child := range h.children {
		s.sendAck(a.cluster, tr, child, s.now, status)
	}
	if h.leaf < 0 {
		s.messages.give(i)
		return
	}
	s.messages.items[i] = ack{a.cluster, c.listen + h.leaf, status}
	src := &s.sources[s.workers[c.firstWorker].source]
	s.queue.push(event{s.now + src.transmit + src.delay, s.arrival(), kindHeard | uint64(i)})
}

// hear gives an ACK to all workers of a cluster behind one switch at once: their links are alike, so they share what
// they know.
func (s *sim) hear(i int32) {
	a := &s.messages.items[i]
	s.listeners[a.hop].OnAck(olaf.Time(s.now), a.status)
	s.meter.acks++
	s.messages.give(i)
}

// scheduleExtra plans a source's next background packet.
func (s *sim) scheduleExtra(i int) {
	x := &s.extras[i]
	x.w.gen = x.source.generation(&x.w)
	if x.w.gen < x.source.end {
		s.queue.push(event{x.w.gen, s.arrival(), kindExtra | uint64(i)})
	}
}

func (s *sim) extra(i int32) {
	x := &s.extras[i]
	x.w.seq++
	f := s.frames.take()
	fr := &s.frames.items[f]
	fr.update, fr.background, fr.lost, fr.size, fr.server = olaf.Update{}, true, false, x.size, x.server
	s.meter.backgroundSent++
	s.offerBackground(x.w.port, f)
	s.scheduleExtra(int(i))
}

// change applies an entry of the schedule. A new rate holds from the next frame on; a frame on a link that fails is lost.
func (s *sim) change(c *Change) {
	there, back := s.portBetween(c.From, c.To), s.portBetween(c.To, c.From)
	if c.Rate > 0 && there >= 0 {
		s.ports[there].rate, s.ports[there].carry = c.Rate, 0
	}
	if c.Link == "" {
		return
	}
	for _, i := range []int32{there, back} {
		if i < 0 {
			continue
		}
		p := &s.ports[i]
		p.up = c.Link == LinkUp
		if !p.up {
			if p.phase == sending {
				s.lose(p)
			}
		} else if p.phase == idle {
			s.start(i)
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
