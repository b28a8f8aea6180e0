package switchml

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive implements program.Program.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Kind != program.Data && p.Kind != program.Result {
		program.ForwardPacket(from, p, lanes, out)
		return s.CountClass(forwarded)
	}
	k := s.jobs.Find(p.Job)
	if k == nil {
		return s.CountClass(stranger)
	}
	i := int(p.Index)
	if i < k.Base || i >= k.Base+k.Slots {
		return s.CountClass(outOfRange)
	}
	v := int(p.Flags & program.Set1 / program.Set1)
	if from == program.Uplink {
		s.relayResult(i, v, p, lanes, out)
		return s.CountClass(relayed)
	}
	if int(from) >= len(k.Ports) || k.Ports[from] < 0 {
		return s.CountClass(stranger)
	}
	slot := &s.sets[i]
	t := &slot[v]
	first := t.bitmap == 0
	if !first && t.lanes != p.Lanes {
		return s.CountClass(mismatched)
	}
	// The bitmap determines the first packet and the counter the last, as in the two registers of the released program.
	// They disagree if a packet arrives after the end of its set.
	bit := uint32(1) << (k.Ports[from] & 31)
	inside := t.bitmap&bit != 0
	t.bitmap |= bit
	slot[1-v].bitmap &^= bit
	if inside {
		return s.CountClass(s.handleRepeat(k, i, v, from, p, out))
	}
	if first || t.count == 0 {
		s.startSet(now, t, first, p)
	}
	if !first {
		t.value = maxExponents(t.value, p.Value)
	}
	t.trace.Add(&p.Trace)
	s.CountAdded(p.Trace.Vectors)
	if s.cfg.LaneMemory > 0 {
		s.addLanes(i, v, first, lanes)
	}
	if !s.countDown(t, len(k.Members)) {
		return s.CountClass(consumed)
	}
	s.completeSet(k, i, v, p, out)
	return s.CountClass(completed)
}

// handleRepeat processes a packet whose contribution was already added.
func (s *Switch) handleRepeat(k *program.Tenant, i, v int, from program.Port, p *program.Packet,
	out program.Out) program.Class {
	if s.sets[i][v].count > 0 {
		return duplicate
	}
	s.answerRepeat(k, i, v, from, p, out)
	return answered
}

// startSet starts a new sum in a set. If first is set, it discards the set's contents. Otherwise the packet has
// outlived its set, and the new sum is added to the old contents, as in the released program.
func (s *Switch) startSet(now olaf.Time, t *set, first bool, p *program.Packet) {
	if first {
		s.CountCleared(s.countWaiting(t))
		t.lanes, t.value = p.Lanes, p.Value
	}
	t.since, t.final = now, false
	t.trace = program.Trace{}
}

// addLanes adds a packet's lanes to a set. The lanes of the first packet overwrite the set.
func (s *Switch) addLanes(i, v int, first bool, lanes []uint32) {
	if first {
		copy(s.buffer(i, v), lanes)
	} else {
		adder.AddWrapping(s.buffer(i, v), lanes)
	}
}

// countWaiting returns the number of contributions in a set if the set is incomplete, and otherwise 0.
func (s *Switch) countWaiting(t *set) uint32 {
	if t.count == 0 {
		return 0
	}
	return t.trace.Vectors
}

// countDown decrements the number of packets that a set still waits for, and reports whether the set is complete.
func (s *Switch) countDown(t *set, workers int) bool {
	switch {
	case workers == 1:
		return true
	case t.count == 0:
		t.count = uint8(workers - 1)
		s.Used++
		return false
	}
	t.count--
	if t.count == 0 {
		s.Used--
	}
	return t.count == 0
}

// maxExponents returns the elementwise maximum of two pairs of exponents, each of which is a signed byte.
func maxExponents(a, b uint64) uint64 {
	high := max(int8(a>>8), int8(b>>8))
	low := max(int8(a), int8(b))
	return uint64(uint8(high))<<8 | uint64(uint8(low))
}

// completeSet sends a set's sum to all workers, or to the parent as a partial sum.
func (s *Switch) completeSet(k *program.Tenant, i, v int, p *program.Packet, out program.Out) {
	t := &s.sets[i][v]
	s.CountSent(t.trace.Vectors)
	t.final = !k.Parent
	if k.Parent {
		s.sendSet(k, i, v, program.Data, program.Up, p, out)
		return
	}
	s.sendSet(k, i, v, program.Result, program.Down, p, out)
}

// answerRepeat sends a complete set again. A result is sent to the sender of the repeated packet. A partial sum is sent
// to the parent, which may have missed it.
func (s *Switch) answerRepeat(k *program.Tenant, i, v int, from program.Port, p *program.Packet, out program.Out) {
	if s.sets[i][v].final {
		s.sendSet(k, i, v, program.Result, program.Dest(from), p, out)
		return
	}
	s.sendSet(k, i, v, program.Data, program.Up, p, out)
}

// sendSet sends the contents of a set as a packet of the given kind.
func (s *Switch) sendSet(k *program.Tenant, i, v int, kind program.Kind, to program.Dest, p *program.Packet,
	out program.Out) {
	t, o := &s.sets[i][v], &s.out
	*o = program.Packet{}
	o.Kind, o.Job, o.Seg, o.Index, o.Flags = kind, k.ID, p.Seg, p.Index, p.Flags&program.Set1
	o.Value, o.Count, o.Lanes = t.value, uint16(len(k.Members)), t.lanes
	o.Trace.Set(&t.trace)
	out.Emit(to, o, s.buffer(i, v))
}

// relayResult forwards a result from the parent to the workers and stores it in place of the partial sum that was sent
// up.
func (s *Switch) relayResult(i, v int, p *program.Packet, lanes []uint32, out program.Out) {
	if t := &s.sets[i][v]; t.count == 0 && t.lanes == p.Lanes {
		t.final, t.value, t.trace = true, p.Value, p.Trace
		copy(s.buffer(i, v), lanes)
	}
	s.out = *p
	s.out.Kind = program.Result
	out.Emit(program.Down, &s.out, lanes)
}
