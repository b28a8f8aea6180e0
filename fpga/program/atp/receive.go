package atp

import (
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive implements program.Program.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	switch {
	case p.Kind == program.Ack:
		return s.CountClass(s.handleAck(p, lanes, out))
	case p.Kind != program.Data || from == program.Uplink:
		program.ForwardPacket(from, p, lanes, out)
		return s.CountClass(forwarded)
	case p.Flags&program.Overflow != 0:
		out.Emit(program.Up, p, lanes)
		return s.CountClass(bypassed)
	case int(p.Index) >= len(s.slots):
		return s.CountClass(outOfRange)
	}
	k := s.findJob(p.Job)
	bit, ok := bitOf(k, from, p)
	switch {
	case !ok:
		return s.CountClass(stranger)
	case k.Slots > 0 && k.ID == p.Job && (int(p.Index) < k.Base || int(p.Index) >= k.Base+k.Slots):
		return s.CountClass(outOfRange)
	case s.levels && (k.Level > 0) != (p.Flags&program.Second != 0):
		out.Emit(program.Up, p, lanes) // for the other level
		return s.CountClass(forwarded)
	case p.Flags&program.Resend != 0:
		return s.CountClass(s.handleResend(k, bit, p, lanes, out))
	}
	t, key := &s.slots[p.Index], keyOf(p)
	switch {
	case t.key == 0:
		t.key, t.lanes, t.since = key, p.Lanes, now
		s.Used++
	case t.key != key:
		s.sendCollided(p, lanes, out)
		return s.CountClass(Collided)
	case t.lanes != p.Lanes:
		return s.CountClass(mismatched)
	}
	marked := t.ecn
	t.ecn = t.ecn || p.Flags&program.ECN != 0
	full := requiredCount(k, p)
	if t.bitmap&bit != 0 {
		if t.time < full {
			return s.CountClass(duplicate)
		}
		s.sendSum(k, int(p.Index), p, marked, out)
		return s.CountClass(answered)
	}
	s.addPacket(t, bit, p, lanes)
	if t.time < full {
		return s.CountClass(consumed)
	}
	s.markLeft(t)
	s.sendSum(k, int(p.Index), p, marked, out)
	return s.CountClass(completed)
}

// levelShift is the position of the second bitmap in a packet's Bitmap. The first bitmap is for the workers in a rack,
// and the second is for racks.
const levelShift = 32

// bitOf returns the bit that represents the sender of a packet in bitmaps. It is the packet's own bit for this level
// or, if the packet has none, the bit of the member at the port. It returns false if there is no such member.
func bitOf(k *program.Job, from program.Port, p *program.Packet) (uint32, bool) {
	if k == nil {
		return 0, false
	}
	if own := uint32(p.Bitmap >> (levelShift * min(k.Level, 1))); own != 0 {
		return own, true
	}
	if int(from) < len(k.Members) && k.Members[from].Port == from {
		return 1 << from, true
	}
	for i := range k.Members {
		if k.Members[i].Port == from {
			return 1 << i, true
		}
	}
	return 0, false
}

// requiredCount returns the number of contributions that complete an aggregator. It is taken from the packet if it
// specifies a fan-in, and otherwise from the job.
func requiredCount(k *program.Job, p *program.Packet) uint16 {
	switch {
	case p.Fan > 0:
		return p.Fan
	case k.Fan > 0:
		return uint16(k.Fan)
	}
	return uint16(len(k.Members))
}

// sendCollided marks a packet as collided and forwards it up, because its aggregator is used by another sum.
func (s *Switch) sendCollided(p *program.Packet, lanes []uint32, out program.Out) {
	s.out = *p
	s.out.Flags |= program.Collision
	out.Emit(program.Up, &s.out, lanes)
}

// handleResend processes a retransmission. It sends the contents of the packet's aggregator to the server and frees the
// aggregator. If the aggregator is free, it is not used, and the packet itself is forwarded.
func (s *Switch) handleResend(k *program.Job, bit uint32, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	i := int(p.Index)
	t := &s.slots[i]
	if t.key != keyOf(p) || t.lanes != p.Lanes {
		out.Emit(program.Up, p, lanes)
		return forwarded
	}
	if s.levels && k.Level > 0 {
		s.freeSlot(t)
		out.Emit(program.Up, p, lanes)
		return flushed
	}
	marked := t.ecn
	if t.bitmap&bit == 0 && !t.left {
		s.addPacket(t, bit, p, lanes)
	}
	if !t.left {
		s.markLeft(t)
	}
	s.sendSum(k, i, p, marked, out)
	s.freeSlot(t)
	return flushed
}

// addPacket adds a packet to an aggregator. The first packet overwrites contents from an earlier use.
func (s *Switch) addPacket(t *aggregator, bit uint32, p *program.Packet, lanes []uint32) {
	if s.cfg.LaneMemory > 0 {
		s.addLanes(int(p.Index), lanes)
	}
	t.bitmap |= bit
	t.time++
	t.trace.Add(&p.Trace)
	s.CountAdded(p.Trace.Vectors)
}

// addLanes adds a packet's lanes to aggregator i, or stores them if it is empty.
func (s *Switch) addLanes(i int, lanes []uint32) {
	if s.slots[i].bitmap == 0 {
		copy(s.buffer(i), lanes)
	} else {
		adder.AddSticky(s.buffer(i), lanes)
	}
}

// markLeft marks an aggregator's sum as sent to the server and updates the counts.
func (s *Switch) markLeft(t *aggregator) {
	t.left = true
	s.CountSent(t.trace.Vectors)
}

// sendSum replaces the contents of the current packet with the aggregator's sum and forwards the packet. The sum is
// ECN-marked if the aggregator was marked before this packet. The mark of the packet itself is lost, as in the released
// program.
func (s *Switch) sendSum(k *program.Job, i int, p *program.Packet, marked bool, out program.Out) {
	t := &s.slots[i]
	s.out = *p
	s.out.Bitmap, s.out.Count = uint64(t.bitmap), t.time
	s.out.Trace.Set(&t.trace)
	s.out.Flags &^= program.ECN
	if marked {
		s.out.Flags |= program.ECN
	}
	if s.levels {
		level := levelShift * min(k.Level, 1)
		s.out.Flags |= program.Second
		s.out.Bitmap = p.Bitmap&^(math.MaxUint32<<level) | uint64(t.bitmap)<<level
		s.out.Fan = 0 // the next level sets it
	}
	out.Emit(program.Up, &s.out, s.buffer(i))
}

// handleAck frees the aggregator that an acknowledgement names, if it still belongs to the acknowledged packet, and
// forwards the acknowledgement to the job's workers. A request of the server for floats does not free an aggregator.
func (s *Switch) handleAck(p *program.Packet, lanes []uint32, out program.Out) program.Class {
	class := forwarded
	if p.Flags&program.Overflow == 0 || p.Flags&program.Resend != 0 {
		if int(p.Index) < len(s.slots) && s.slots[p.Index].key == keyOf(p) {
			s.freeSlot(&s.slots[p.Index])
			class = freed
		}
	}
	out.Emit(program.Down, p, lanes)
	return class
}
