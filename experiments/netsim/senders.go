package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/calendar"
	"github.com/olafctl/olaf/internal/splitmix"
)

// heldUpdate waits for its worker's link.
type heldUpdate struct {
	update olaf.Update
	next   int32 // 1 + the one behind it
}

// schedule plans the next update of a worker.
func (s *sim) schedule(i int32) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	order := uint64(0)
	if s.script != nil {
		w.gen, order = s.script.send(int(s.clusters[w.cluster].firstWorker)+int(w.number), w.seq)
		order |= s.late
	} else {
		w.gen = src.generation(w)
	}
	if w.gen >= src.end {
		return
	}
	if s.script == nil {
		order = s.arrival()
	}
	if !s.direct {
		s.queue.Push(calendar.Event{At: w.gen, Ord: order, What: kindSend | uint64(i)})
		return
	}
	s.meter.sent(w, w.gen)
	s.meter.airborne++
	w.free = max(w.gen, w.free) + src.transmit
	s.queue.Push(calendar.Event{At: w.free + src.delay, Ord: order, What: kindFirst | uint64(i)})
}

// fresh is the update that worker i generated last.
func (s *sim) fresh(i int32) olaf.Update {
	w := &s.workers[i]
	return olaf.Update{
		GenNS: uint64(w.gen/int64(olaf.Nanosecond)) % olaf.GenModulus, Seq: w.seq, Cluster: w.id, Worker: w.number,
		Count: 1, Lanes: uint16((s.t.Update - olaf.HeaderBytes) / olaf.LaneBytes),
	}
}

// first takes a worker's update to the port of its switch.
func (s *sim) first(i int32) {
	w := &s.workers[i]
	s.update = s.fresh(i)
	w.seq++
	s.meter.airborne--
	if s.cables == nil || !s.cables[i].up.Carry(s.t.Update, s.sources[w.source].transmit) {
		s.reach(w.port, int32(w.cluster), &s.update)
	}
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
	if s.cables != nil && s.cables[i].up.Carry(s.t.Update, src.transmit) {
		return
	}
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
	s.reach(x.port, x.cluster, &x.update)
	sent.drop()
	if sent.len() > 0 {
		x = sent.at(0)
		s.queue.Push(calendar.Event{At: x.at, Ord: x.ord, What: kindEnter | uint64(i)})
	}
}
