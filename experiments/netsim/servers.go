package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/internal/calendar"
)

type serverState struct {
	processing int64
	free       int64
}

// deliverToServer handles the reception of a frame by the server at the end of p's link, and answers it.
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

// ack is one copy of an ACK in flight.
type ack struct {
	at      int64
	ord     uint64
	cluster int32
	hop     int32 // in the cluster's tree; on the workers' links, the listener
	status  tc.Status
}

// sendAck sends one copy of an ACK down to a hop, not before now, nor before an earlier ACK to the same hop.
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

// pushAck adds an ACK to a link. Only the first one has an event.
func (s *sim) pushAck(acks *line[ack], what uint64, a ack) {
	*acks.push() = a
	if acks.len() == 1 {
		s.queue.Push(calendar.Event{At: a.at, Ord: a.ord, What: what})
	}
}

// popAck removes the first ACK from a link.
func (s *sim) popAck(acks *line[ack], what uint64) ack {
	a := *acks.at(0)
	acks.drop()
	if acks.len() > 0 {
		next := acks.at(0)
		s.queue.Push(calendar.Event{At: next.at, Ord: next.ord, What: what})
	}
	return a
}

// passAck writes the status of port i into an arriving ACK, and multicasts it downwards.
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

// hearAck delivers an ACK to all workers of a cluster behind one switch at once: their links are identical, so they
// share one state, unless links lose ACKs.
func (s *sim) hearAck(i int32) {
	a := s.popAck(&s.sources[i].acks, kindHeard|uint64(i))
	s.meter.acks++
	if s.sources[i].lossy {
		s.hearApart(&a)
		return
	}
	s.listeners[a.hop].OnAck(olaf.Time(s.now), a.status)
}

// hearApart delivers a copy of an ACK to each worker of a cluster behind one switch, over a link that may lose it.
func (s *sim) hearApart(a *ack) {
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
