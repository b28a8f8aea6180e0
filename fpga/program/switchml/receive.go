package switchml

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive is one packet through the pool.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Kind != program.Data && p.Kind != program.Result {
		program.Forward(from, p, lanes, out)
		return s.counted(Forwarded)
	}
	k := s.jobs.Of(p.Job)
	if k == nil {
		return s.counted(Stranger)
	}
	i := int(p.Index)
	if i < k.Base || i >= k.Base+k.Slots {
		return s.counted(OutOfRange)
	}
	v := int(p.Flags & program.Set1 / program.Set1)
	if from == program.Uplink {
		s.relay(i, v, p, lanes, out)
		return s.counted(Relayed)
	}
	if int(from) >= len(k.Ports) || k.Ports[from] < 0 {
		return s.counted(Stranger)
	}
	slot := &s.sets[i]
	t := &slot[v]
	first := t.bitmap == 0
	if !first && t.lanes != p.Lanes {
		return s.counted(Mismatched)
	}
	// Whether it is the first is said by the bitmap, whether it is the last by the counter, as in the two registers of the
	// released program: they differ when a packet outlives its set.
	bit := uint32(1) << (k.Ports[from] & 31)
	inside := t.bitmap&bit != 0
	t.bitmap |= bit
	slot[1-v].bitmap &^= bit
	if inside {
		return s.counted(s.again(k, i, v, from, p, out))
	}
	if first || t.count == 0 {
		s.begin(now, t, first, p)
	}
	if !first {
		t.value = larger(t.value, p.Value)
	}
	t.trace.Add(&p.Trace)
	s.counts[vectorsIn] += uint64(p.Trace.Vectors)
	s.counts[vectorsHeld] += uint64(p.Trace.Vectors)
	if s.cfg.LaneMemory > 0 {
		s.add(i, v, first, lanes)
	}
	if !s.last(t, len(k.Members)) {
		return s.counted(Consumed)
	}
	s.complete(k, i, v, p, out)
	return s.counted(Completed)
}

// counted is a packet's class, with the packet counted in it.
func (s *Switch) counted(class program.Class) program.Class {
	s.counts[class]++
	return class
}

// again is a packet that is inside already.
func (s *Switch) again(k *program.Tenant, i, v int, from program.Port, p *program.Packet,
	out program.Out) program.Class {
	if s.sets[i][v].count > 0 {
		return Duplicate
	}
	s.answer(k, i, v, from, p, out)
	return Answered
}

// begin empties a set for the first packet of a sum, which overwrites what is there, and for one that outlived its set and begins
// another sum on top of it.
func (s *Switch) begin(now olaf.Time, t *set, first bool, p *program.Packet) {
	if first {
		s.counts[vectorsCleared] += s.waiting(t)
		s.counts[vectorsHeld] -= s.waiting(t)
		t.lanes, t.value = p.Lanes, p.Value
	}
	t.since, t.final = now, false
	t.trace = program.Trace{}
}

// add puts a packet's lanes into a set; those of the first overwrite what is there.
func (s *Switch) add(i, v int, first bool, lanes []uint32) {
	if first {
		copy(s.buffer(i, v), lanes)
	} else {
		adder.Wrapping(s.buffer(i, v), lanes)
	}
}

// waiting is how many contributions wait in a set.
func (s *Switch) waiting(t *set) uint64 {
	if t.count == 0 {
		return 0
	}
	return uint64(t.trace.Vectors)
}

// last counts a packet down and says whether nothing is missing any more.
func (s *Switch) last(t *set, workers int) bool {
	switch {
	case workers == 1:
		return true
	case t.count == 0:
		t.count = uint8(workers - 1)
		s.used++
		return false
	}
	t.count--
	if t.count == 0 {
		s.used--
	}
	return t.count == 0
}

// larger takes the larger of each of two exponents, signed bytes.
func larger(a, b uint64) uint64 {
	high := max(int8(a>>8), int8(b>>8))
	low := max(int8(a), int8(b))
	return uint64(uint8(high))<<8 | uint64(uint8(low))
}

// complete sends a set's sum to all, or as a part to the parent.
func (s *Switch) complete(k *program.Tenant, i, v int, p *program.Packet, out program.Out) {
	t := &s.sets[i][v]
	s.counts[vectorsOut] += uint64(t.trace.Vectors)
	s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
	t.final = !k.Parent
	if k.Parent {
		s.send(k, i, v, program.Data, program.Up, p, out)
		return
	}
	s.send(k, i, v, program.Result, program.Down, p, out)
}

// answer repeats to a sender what became of a set that is complete: its result, or the part that the parent may have missed.
func (s *Switch) answer(k *program.Tenant, i, v int, from program.Port, p *program.Packet, out program.Out) {
	if s.sets[i][v].final {
		s.send(k, i, v, program.Result, program.Dest(from), p, out)
		return
	}
	s.send(k, i, v, program.Data, program.Up, p, out)
}

// send emits a set.
func (s *Switch) send(k *program.Tenant, i, v int, kind program.Kind, to program.Dest, p *program.Packet,
	out program.Out) {
	t, o := &s.sets[i][v], &s.out
	*o = program.Packet{}
	o.Kind, o.Job, o.Seg, o.Index, o.Flags = kind, k.ID, p.Seg, p.Index, p.Flags&program.Set1
	o.Value, o.Count, o.Lanes = t.value, uint16(len(k.Members)), t.lanes
	o.Trace.Set(&t.trace)
	out.Emit(to, o, s.buffer(i, v))
}

// relay passes the parent's result down and keeps it in the place of the part that went up.
func (s *Switch) relay(i, v int, p *program.Packet, lanes []uint32, out program.Out) {
	if t := &s.sets[i][v]; t.count == 0 && t.lanes == p.Lanes {
		t.final, t.value, t.trace = true, p.Value, p.Trace
		copy(s.buffer(i, v), lanes)
	}
	s.out = *p
	s.out.Kind = program.Result
	out.Emit(program.Down, &s.out, lanes)
}
