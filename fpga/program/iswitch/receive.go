package iswitch

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive implements program.Program (paper, §3.3).
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Kind < program.Data || p.Kind > program.Result || from == program.Uplink {
		return s.handleOther(from, p, lanes, out)
	}
	k := s.findJob(p.Job)
	if k == nil {
		return s.CountClass(stranger)
	}
	t := s.findSlot(k, p.Seg)
	if t == nil {
		return s.CountClass(outOfRange)
	}
	count := t.count
	if count > 0 && t.sum.Lanes != p.Lanes {
		return s.CountClass(mismatched)
	}
	if s.exact {
		bit := k.portBit(from)
		if bit == 0 {
			return s.CountClass(stranger)
		}
		if !t.admitRound(bit, p) {
			return s.CountClass(duplicate)
		}
	}
	if count == 0 {
		t.since, t.sum.Lanes = now, p.Lanes
		t.sum.Trace.Set(&p.Trace)
		s.Used++
	} else {
		t.sum.Trace.Add(&p.Trace)
	}
	count++
	t.count = count
	s.CountAdded(p.Trace.Vectors)
	if s.cfg.LaneMemory > 0 {
		s.addLanes(t, lanes)
	}
	if int(count) < k.fan {
		return s.CountClass(consumed)
	}
	s.CountClass(completed)
	s.freeSum(t, k)
	s.sendSum(t, k, p.Seg, k.sumDest(), out)
	return completed
}

// handleOther processes a packet that is not a contribution of a child.
func (s *Switch) handleOther(from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	switch {
	case p.Kind == program.Control:
		return s.CountClass(s.handleControl(from, p, out))
	case p.Kind != program.Data && p.Kind != program.Result:
		program.ForwardPacket(from, p, lanes, out)
		return s.CountClass(forwarded)
	}
	k := s.findJob(p.Job)
	if k == nil {
		return s.CountClass(stranger)
	}
	s.relayResult(k, p, lanes, out)
	return s.CountClass(Relayed)
}

// relayResult forwards a result from the parent switch to the children. In profile isw-x it also stores the result in
// place of the partial sum that was sent up.
func (s *Switch) relayResult(k *job, p *program.Packet, lanes []uint32, out program.Out) {
	if t := s.findSlot(k, p.Seg); t != nil && s.exact && t.done && t.sum.Round == p.Round {
		t.final, t.sum.Count, t.sum.Lanes, t.sum.Bitmap, t.sum.Trace = true, p.Count, p.Lanes, p.Bitmap, p.Trace
		copy(s.buffer(t), lanes)
	}
	s.out = *p
	s.out.Kind = program.Result
	out.Emit(program.Down, &s.out, lanes)
}

// buffer returns the lanes that a slot uses, or nil if the switch does not store lanes.
func (s *Switch) buffer(t *slot) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[int(t.at)*n:][:min(n, int(t.sum.Lanes))]
}

// findSlot returns the slot for a segment of a job, or nil if the segment has no slot.
func (s *Switch) findSlot(k *job, seg uint64) *slot {
	if seg >= uint64(k.Slots) {
		if !s.cfg.Wrap {
			return nil
		}
		seg %= uint64(k.Slots)
	}
	return &s.slots[k.Base+int(seg)]
}

// portBit returns the bitmap bit for the member at a port, or 0 if no member has joined there.
func (k *job) portBit(from program.Port) uint64 {
	if from >= 0 && int(from) < len(k.bits) {
		return k.bits[from]
	}
	return 0
}

// admitRound checks a packet's round and contributor in profile isw-x. It rejects duplicates, packets of past rounds,
// and packets of a later round while the current round is incomplete. The latter will be sent again.
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

// memberAt returns the index of the member at a port, or -1 if there is none, for example at the uplink. Members are
// usually sorted by port, so it first looks at the index that equals the port.
func (k *job) memberAt(from program.Port) int {
	if from >= 0 && int(from) < len(k.Members) && k.Members[from].Port == from {
		return int(from)
	}
	return slices.IndexFunc(k.Members, func(m program.Member) bool { return m.Port == from })
}

// addLanes adds the lanes of a packet that was already counted to a slot. The first packet is added to zeros, so that
// -0 becomes 0.
func (s *Switch) addLanes(t *slot, lanes []uint32) {
	buffer := s.buffer(t)
	if t.count == 1 {
		clear(buffer)
	}
	adder.AddFloats(buffer, lanes)
}

// freeSum counts the contributions in a slot as sent and frees the slot.
func (s *Switch) freeSum(t *slot, k *job) {
	s.CountSent(t.sum.Vectors)
	s.Used--
	t.sum.Count, t.count = t.count, 0
	t.done, t.final = true, !k.Parent
}

// sumDest returns the destination of a job's sums, which is the parent or the members.
func (k *job) sumDest() program.Dest {
	if k.Parent {
		return program.Up
	}
	return program.Down
}

// sendSum sends the sum in a slot to the given destination. To the parent it is a partial sum, to others a result.
func (s *Switch) sendSum(t *slot, k *job, seg uint64, to program.Dest, out program.Out) {
	t.sum.Kind, t.sum.Job, t.sum.Seg = program.Result, k.ID, seg
	if to == program.Up {
		t.sum.Kind = program.Data
	}
	out.Emit(to, &t.sum, s.buffer(t))
}

// clearSlot frees a slot but keeps its round.
func (s *Switch) clearSlot(t *slot) {
	s.CountCleared(t.sum.Vectors)
	s.Used--
	*t = slot{sum: program.Packet{Round: t.sum.Round}, at: t.at}
}

// handleControl executes or forwards a control packet (paper, Table 2).
func (s *Switch) handleControl(from program.Port, p *program.Packet, out program.Out) program.Class {
	k := s.findJob(p.Job)
	if k == nil {
		return stranger
	}
	switch p.Action {
	case Join, Leave:
		place := k.memberAt(from)
		s.acknowledge(from, p, place >= 0, out)
		if place < 0 {
			return stranger
		}
		k.setJoined(place, p.Action == Join)
	case SetH:
		ok := p.Value >= 1 && p.Value <= maxH
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
	case Acknowledge: // a reply, although this switch did not ask
	default:
		s.acknowledge(from, p, false, out)
	}
	return controlled
}

// answerHelp handles a worker's request for a missing result by forwarding it to all members and switches that may have
// the result. In profile isw-x the request names the round. The switch then answers itself if it still has the result,
// or sends its partial sum again if the parent has not returned a result.
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

// clearSums discards the partial sums of a job, in one segment or in all. In profile isw-x, a Reset for one segment
// names the round and has no effect on other rounds. by is the Reset packet, or nil if a controller clears the sums.
func (s *Switch) clearSums(k *job, seg uint64, by *program.Packet) {
	first, end := k.Base, k.Base+k.Slots
	if seg != allSegments {
		t := s.findSlot(k, seg)
		if t == nil {
			return
		}
		first, end = int(t.at), int(t.at)+1
	}
	for i := first; i < end; i++ {
		t := &s.slots[i]
		if t.count == 0 || by != nil && s.exact && seg != allSegments && by.Round != t.sum.Round {
			continue
		}
		s.clearSlot(t)
	}
}
