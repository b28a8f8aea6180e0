package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/calendar"
	"github.com/olafctl/olaf/internal/splitmix"
)

// heldUpdate waits for its worker's link.
type heldUpdate struct {
	update olaf.Update
	next   int32 // 1 + index of the next one
}

// scheduleUpdate schedules the next update of a worker.
func (s *sim) scheduleUpdate(i int32) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	order := uint64(0)
	if s.script != nil {
		w.gen, order = s.script.sendOf(int(s.clusters[w.cluster].firstWorker)+int(w.number), w.seq)
		order |= s.late
	} else {
		w.gen = src.generationTime(w)
	}
	if w.gen >= src.end {
		return
	}
	if s.script == nil {
		order = s.arrivalOrder()
	}
	if !s.direct {
		s.queue.Push(calendar.Event{At: w.gen, Ord: order, What: kindSend | uint64(i)})
		return
	}
	s.meter.countSend(w, w.gen)
	s.meter.airborne++
	w.free = max(w.gen, w.free) + src.transmit
	s.queue.Push(calendar.Event{At: w.free + src.delay, Ord: order, What: kindFirst | uint64(i)})
}

// newUpdate returns the update that worker i generated last.
func (s *sim) newUpdate(i int32) olaf.Update {
	w := &s.workers[i]
	u := olaf.Update{
		GenNS: uint64(w.gen/int64(olaf.Nanosecond)) % olaf.GenModulus, Seq: w.seq, Cluster: w.id, Worker: w.number,
		Count: 1, Lanes: uint16((s.t.Update - olaf.HeaderBytes) / olaf.LaneBytes),
	}
	if s.t.RewardFilter {
		u.Reward = w.drawReward()
	}
	return u
}

// reachFirst delivers a worker's update to the port of its switch.
func (s *sim) reachFirst(i int32) {
	w := &s.workers[i]
	s.update = s.newUpdate(i)
	w.seq++
	s.meter.airborne--
	if s.cables == nil || !s.cables[i].up.Carry(s.t.Update, s.sources[w.source].transmit) {
		s.reachSwitch(w.port, int32(w.cluster), &s.update)
	}
	s.scheduleUpdate(i)
}

// generateUpdate handles an update that a worker has just generated: transmission control decides whether to send it
// over the access link.
func (s *sim) generateUpdate(i int32) {
	w := &s.workers[i]
	if s.decideSend(w) {
		s.meter.countSend(w, s.now)
		u := s.newUpdate(i)
		a := &s.waiting[i]
		switch {
		case a.first != 0:
			h := s.holdUpdate(u)
			s.held.items[a.last-1].next = h
			a.last = h
		case s.now < w.free || s.now == w.free && s.order < a.done:
			a.first = s.holdUpdate(u)
			a.last = a.first
			s.queue.Push(calendar.Event{At: w.free, Ord: a.done, What: kindAccess | uint64(i)})
		default:
			s.transmitUpdate(i, &u)
		}
	} else {
		s.meter.countWithhold(int32(w.cluster), s.now)
	}
	w.seq++
	s.scheduleUpdate(i)
}

func (s *sim) decideSend(w *worker) bool {
	if !s.t.Control.Enabled {
		return true
	}
	draw := uniformDraw(splitmix.MixBits(w.base ^ saltControl + uint64(w.seq)))
	return s.listeners[w.listener].Decide(s.control, olaf.Time(s.now), draw)
}

// holdUpdate stores an update that must wait for its worker's link; it returns 1 + its index.
func (s *sim) holdUpdate(u olaf.Update) int32 {
	h := s.held.take()
	s.held.items[h] = heldUpdate{update: u}
	return h + 1
}

// transmitUpdate puts an update on its worker's link, which is idle.
func (s *sim) transmitUpdate(i int32, u *olaf.Update) {
	w := &s.workers[i]
	src := &s.sources[w.source]
	w.free = s.now + src.transmit
	s.waiting[i].done = s.departureOrder()
	if s.cables != nil && s.cables[i].up.Carry(s.t.Update, src.transmit) {
		return
	}
	x := src.sent.push()
	*x = entering{w.free + src.delay, s.arrivalOrder(), *u, int32(w.cluster), w.port}
	if src.sent.len() == 1 {
		s.queue.Push(calendar.Event{At: x.at, Ord: x.ord, What: kindEnter | uint64(w.source)})
	}
}

// transmitHeld puts the next waiting update on a worker's link.
func (s *sim) transmitHeld(i int32) {
	a := &s.waiting[i]
	h := a.first - 1
	a.first = s.held.items[h].next
	s.transmitUpdate(i, &s.held.items[h].update)
	s.held.give(h)
	if a.first != 0 {
		s.queue.Push(calendar.Event{At: s.workers[i].free, Ord: a.done, What: kindAccess | uint64(i)})
	}
}

// enterSwitch delivers the first update on a source's links to the port of its switch.
func (s *sim) enterSwitch(i int32) {
	sent := &s.sources[i].sent
	x := sent.at(0)
	s.reachSwitch(x.port, x.cluster, &x.update)
	sent.drop()
	if sent.len() > 0 {
		x = sent.at(0)
		s.queue.Push(calendar.Event{At: x.at, Ord: x.ord, What: kindEnter | uint64(i)})
	}
}
