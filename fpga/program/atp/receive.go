package atp

import (
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive is one packet through the table.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	switch {
	case p.Kind == program.Ack:
		return s.counted(s.acknowledge(p, lanes, out))
	case p.Kind != program.Data || from == program.Uplink:
		program.Forward(from, p, lanes, out)
		return s.counted(Forwarded)
	case p.Flags&program.Overflow != 0:
		out.Emit(program.Up, p, lanes)
		return s.counted(Bypassed)
	case int(p.Index) >= len(s.slots):
		return s.counted(OutOfRange)
	}
	k := s.job(p.Job)
	bit, ok := bitOf(k, from, p)
	switch {
	case !ok:
		return s.counted(Stranger)
	case k.Slots > 0 && k.ID == p.Job && (int(p.Index) < k.Base || int(p.Index) >= k.Base+k.Slots):
		return s.counted(OutOfRange)
	case s.levels && (k.Level > 0) != (p.Flags&program.Second != 0):
		out.Emit(program.Up, p, lanes) // another level's matter
		return s.counted(Forwarded)
	case p.Flags&program.Resend != 0:
		return s.counted(s.resent(k, bit, p, lanes, out))
	}
	t, key := &s.slots[p.Index], keyOf(p)
	switch {
	case t.key == 0:
		t.key, t.lanes, t.since = key, p.Lanes, now
		s.used++
	case t.key != key:
		s.collide(p, lanes, out)
		return s.counted(Collided)
	case t.lanes != p.Lanes:
		return s.counted(Mismatched)
	}
	marked := t.ecn
	t.ecn = t.ecn || p.Flags&program.ECN != 0
	full := fan(k, p)
	if t.bitmap&bit != 0 {
		if t.time < full {
			return s.counted(Duplicate)
		}
		s.send(k, int(p.Index), p, marked, out)
		return s.counted(Answered)
	}
	s.add(t, bit, p, lanes)
	if t.time < full {
		return s.counted(Consumed)
	}
	s.leave(t)
	s.send(k, int(p.Index), p, marked, out)
	return s.counted(Completed)
}

// counted is a packet's class, with the packet counted in it.
func (s *Switch) counted(class program.Class) program.Class {
	s.counts[class]++
	return class
}

// levelShift is where a packet's second bitmap begins, that of racks; the first is that of workers in theirs.
const levelShift = 32

// bitOf is the contributor's bit: the packet's own of this level, or that of the member behind the port.
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

// fan is how many contributions complete an aggregator: what the packet says, or the job.
func fan(k *program.Job, p *program.Packet) uint16 {
	switch {
	case p.Fan > 0:
		return p.Fan
	case k.Fan > 0:
		return uint16(k.Fan)
	}
	return uint16(len(k.Members))
}

// collide passes on a packet whose aggregator is another's, and says so in it.
func (s *Switch) collide(p *program.Packet, lanes []uint32, out program.Out) {
	s.out = *p
	s.out.Flags |= program.Collision
	out.Emit(program.Up, &s.out, lanes)
}

// resent is a packet that is sent again: whatever its aggregator holds goes to the server, and the aggregator is free. It
// never takes a free one.
func (s *Switch) resent(k *program.Job, bit uint32, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	i := int(p.Index)
	t := &s.slots[i]
	if t.key != keyOf(p) || t.lanes != p.Lanes {
		out.Emit(program.Up, p, lanes)
		return Forwarded
	}
	if s.levels && k.Level > 0 {
		s.free(t)
		out.Emit(program.Up, p, lanes)
		return Flushed
	}
	marked := t.ecn
	if t.bitmap&bit == 0 && !t.left {
		s.add(t, bit, p, lanes)
	}
	if !t.left {
		s.leave(t)
	}
	s.send(k, i, p, marked, out)
	s.free(t)
	return Flushed
}

// add puts a packet into an aggregator; the first one overwrites what an earlier use left.
func (s *Switch) add(t *aggregator, bit uint32, p *program.Packet, lanes []uint32) {
	if s.cfg.LaneMemory > 0 {
		s.sum(int(p.Index), lanes)
	}
	t.bitmap |= bit
	t.time++
	t.trace.Add(&p.Trace)
	s.counts[vectorsIn] += uint64(p.Trace.Vectors)
	s.counts[vectorsHeld] += uint64(p.Trace.Vectors)
}

// sum puts a packet's lanes into aggregator i.
func (s *Switch) sum(i int, lanes []uint32) {
	if s.slots[i].bitmap == 0 {
		copy(s.buffer(i), lanes)
	} else {
		adder.Sticky(s.buffer(i), lanes)
	}
}

// leave counts what an aggregator holds as gone to the server.
func (s *Switch) leave(t *aggregator) {
	t.left = true
	s.counts[vectorsOut] += uint64(t.trace.Vectors)
	s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
}

// send puts an aggregator's sum into the packet at hand and lets that go on. Its mark is what the register held before this
// packet: that of the packet itself is lost, as in the released program.
func (s *Switch) send(k *program.Job, i int, p *program.Packet, marked bool, out program.Out) {
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
		s.out.Fan = 0 // the next level's own
	}
	out.Emit(program.Up, &s.out, s.buffer(i))
}

// acknowledge frees the aggregator that the packet names, if it is this packet's, and tells the job's workers. The server's
// request for floats frees nothing.
func (s *Switch) acknowledge(p *program.Packet, lanes []uint32, out program.Out) program.Class {
	class := Forwarded
	if p.Flags&program.Overflow == 0 || p.Flags&program.Resend != 0 {
		if int(p.Index) < len(s.slots) && s.slots[p.Index].key == keyOf(p) {
			s.free(&s.slots[p.Index])
			class = Freed
		}
	}
	out.Emit(program.Down, p, lanes)
	return class
}
