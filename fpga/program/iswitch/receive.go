package iswitch

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive processes one packet (paper, §3.3).
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Kind < program.Data || p.Kind > program.Result || from == program.Uplink {
		return s.handleOther(from, p, lanes, out)
	}
	k := s.findJob(p.Job)
	if k == nil {
		return s.countClass(Stranger)
	}
	t := s.findSlot(k, p.Seg)
	if t == nil {
		return s.countClass(OutOfRange)
	}
	count := t.count
	if count > 0 && t.sum.Lanes != p.Lanes {
		return s.countClass(Mismatched)
	}
	if s.exact {
		bit := k.portBit(from)
		if bit == 0 {
			return s.countClass(Stranger)
		}
		if !t.admitRound(bit, p) {
			return s.countClass(Duplicate)
		}
	}
	if count == 0 {
		t.since, t.sum.Lanes = now, p.Lanes
		t.sum.Trace.Set(&p.Trace)
		s.used++
	} else {
		t.sum.Trace.Add(&p.Trace)
	}
	count++
	t.count = count
	s.counts[vectorsIn] += uint64(p.Trace.Vectors)
	s.counts[vectorsHeld] += uint64(p.Trace.Vectors)
	if s.cfg.LaneMemory > 0 {
		s.addLanes(t, lanes)
	}
	if int(count) < k.fan {
		return s.countClass(Consumed)
	}
	s.counts[Completed]++
	s.freeSum(t, k)
	s.sendSum(t, k, p.Seg, k.sumDest(), out)
	return Completed
}

// handleOther processes a packet that is not a child's contribution.
func (s *Switch) handleOther(from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	switch {
	case p.Kind == program.Control:
		return s.countClass(s.handleControl(from, p, out))
	case p.Kind != program.Data && p.Kind != program.Result:
		program.ForwardPacket(from, p, lanes, out)
		return s.countClass(Forwarded)
	}
	k := s.findJob(p.Job)
	if k == nil {
		return s.countClass(Stranger)
	}
	s.relayResult(k, p, lanes, out)
	return s.countClass(Relayed)
}

// countClass counts a packet in its class.
func (s *Switch) countClass(class program.Class) program.Class {
	s.counts[class]++
	return class
}

// relayResult passes the parent's result down. Under isw-x it replaces the partial sum that went up.
func (s *Switch) relayResult(k *job, p *program.Packet, lanes []uint32, out program.Out) {
	if t := s.findSlot(k, p.Seg); t != nil && s.exact && t.done && t.sum.Round == p.Round {
		t.final, t.sum.Count, t.sum.Lanes, t.sum.Bitmap, t.sum.Trace = true, p.Count, p.Lanes, p.Bitmap, p.Trace
		copy(s.buffer(t), lanes)
	}
	s.out = *p
	s.out.Kind = program.Result
	out.Emit(program.Down, &s.out, lanes)
}

// buffer returns the used lanes of a slot, or nil if the switch stores none.
func (s *Switch) buffer(t *slot) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[int(t.at)*n:][:min(n, int(t.sum.Lanes))]
}

// findSlot returns the slot of a job's segment, or nil if it has none.
func (s *Switch) findSlot(k *job, seg uint64) *slot {
	if seg >= uint64(k.Slots) {
		if !s.cfg.Wrap {
			return nil
		}
		seg %= uint64(k.Slots)
	}
	return &s.slots[k.Base+int(seg)]
}

// portBit returns the bit of the member at a port, or 0 if none has joined.
func (k *job) portBit(from program.Port) uint64 {
	if from >= 0 && int(from) < len(k.bits) {
		return k.bits[from]
	}
	return 0
}

// admitRound is isw-x's check of round and contributor. It rejects duplicates, packets of past rounds, and packets
// of a later round while the current one is incomplete; those will be sent again.
func (t *slot) admitRound(bit uint64, p *program.Packet) bool {
	inside := t.sum.Bitmap
	if t.count == 0 {
		inside = 0
	}
	ahead := int16(p.Round - t.sum.Round)
	if ahead < 0 || ahead == 0 && t.done || ahead > 0 && t.count > 0 || inside&bit != 0 {
		return false
	}
	t.sum.Round, t.sum.Bitmap = p.Round, inside|bit
	t.done, t.final = false, false
	return true
}

// memberAt returns the index of the member at a port, or -1 if there is none, as for the uplink. Members are
// usually sorted by port.
func (k *job) memberAt(from program.Port) int {
	if from >= 0 && int(from) < len(k.Members) && k.Members[from].Port == from {
		return int(from)
	}
	for i := range k.Members {
		if k.Members[i].Port == from {
			return i
		}
	}
	return -1
}

// addLanes adds the lanes of an already counted packet to a slot. The buffer starts from zeros, so that a -0 in the
// first packet becomes 0.
func (s *Switch) addLanes(t *slot, lanes []uint32) {
	buffer := s.buffer(t)
	if t.count == 1 {
		clear(buffer)
	}
	adder.AddFloats(buffer, lanes)
}

// freeSum counts a slot's sum as departed and frees the slot.
func (s *Switch) freeSum(t *slot, k *job) {
	s.counts[vectorsOut] += uint64(t.sum.Vectors)
	s.counts[vectorsHeld] -= uint64(t.sum.Vectors)
	s.used--
	t.sum.Count, t.count = t.count, 0
	t.done, t.final = true, !k.Parent
}

// sumDest returns the destination of a job's sums.
func (k *job) sumDest() program.Dest {
	if k.Parent {
		return program.Up
	}
	return program.Down
}

// sendSum emits a slot's sum: a partial sum to the parent, a result to others.
func (s *Switch) sendSum(t *slot, k *job, seg uint64, to program.Dest, out program.Out) {
	t.sum.Kind, t.sum.Job, t.sum.Seg = program.Result, k.ID, seg
	if to == program.Up {
		t.sum.Kind = program.Data
	}
	out.Emit(to, &t.sum, s.buffer(t))
}

// clearSlot frees a slot and keeps its round.
func (s *Switch) clearSlot(t *slot) {
	s.counts[vectorsHeld] -= uint64(t.sum.Vectors)
	s.used--
	*t = slot{sum: program.Packet{Round: t.sum.Round}, at: t.at}
}

// handleControl executes or forwards a control packet (paper, Table 2).
func (s *Switch) handleControl(from program.Port, p *program.Packet, out program.Out) program.Class {
	k := s.findJob(p.Job)
	if k == nil {
		return Stranger
	}
	switch p.Action {
	case Join, Leave:
		place := k.memberAt(from)
		s.acknowledge(from, p, place >= 0, out)
		if place < 0 {
			return Stranger
		}
		k.setJoined(place, p.Action == Join)
	case SetH:
		ok := p.Value >= 1 && p.Value <= MaxH
		if ok {
			k.fan, k.fixed = int(p.Value), true
		}
		s.acknowledge(from, p, ok, out)
	case Reset:
		s.clearSums(k, p.Seg, p)
	case ForceBroadcast:
		if t := s.findSlot(k, p.Seg); t != nil && t.count > 0 {
			s.freeSum(t, k)
			s.sendSum(t, k, p.Seg, k.sumDest(), out)
		}
	case Help:
		s.answerHelp(k, from, p, out)
	case Halt:
		out.Emit(program.Down, p, nil)
	case Acknowledge: // answers a switch that did not ask
	default:
		s.acknowledge(from, p, false, out)
	}
	return Controlled
}

// answerHelp forwards a worker's request to all who may have the missing result. Under isw-x, where it names the
// round, the switch answers if it still has the result, and resends its partial sum if no result has returned.
func (s *Switch) answerHelp(k *job, from program.Port, p *program.Packet, out program.Out) {
	if t := s.findSlot(k, p.Seg); t != nil && s.exact {
		switch known := t.done && t.sum.Round == p.Round; {
		case known && t.final && from != program.Uplink:
			s.sendSum(t, k, p.Seg, program.Dest(from), out)
			return
		case known && !t.final:
			s.sendSum(t, k, p.Seg, program.Up, out)
		}
	}
	if from == program.Uplink {
		out.Emit(program.Down, p, nil)
		return
	}
	out.Emit(program.Others, p, nil)
	if k.Parent {
		out.Emit(program.Up, p, nil)
	}
}

func (s *Switch) acknowledge(to program.Port, p *program.Packet, done bool, out program.Out) {
	status := uint64(Refused)
	if done {
		status = Done
	}
	s.out = program.Packet{Kind: program.Control, Action: Acknowledge, Job: p.Job, Value: uint64(p.Action)<<8 | status}
	out.Emit(program.Dest(to), &s.out, nil)
}

// clearSums discards a job's partial sums, of one segment or all. Under isw-x a Reset names its round and has no
// effect if that round is over. by is nil if a controller clears.
func (s *Switch) clearSums(k *job, seg uint64, by *program.Packet) {
	first, end := k.Base, k.Base+k.Slots
	if seg != AllSegments {
		t := s.findSlot(k, seg)
		if t == nil {
			return
		}
		first, end = int(t.at), int(t.at)+1
	}
	for i := first; i < end; i++ {
		t := &s.slots[i]
		if t.count == 0 || by != nil && s.exact && seg != AllSegments && by.Round != t.sum.Round {
			continue
		}
		s.counts[vectorsCleared] += uint64(t.sum.Vectors)
		s.clearSlot(t)
	}
}
