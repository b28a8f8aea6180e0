package switchml

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive is one packet through the pool.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	class := s.receive(now, from, p, lanes, out)
	s.counts[class]++
	return class
}

func (s *Switch) receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	if p.Kind != program.Data && p.Kind != program.Result {
		program.Forward(from, p, lanes, out)
		return Forwarded
	}
	k := s.jobs.Of(p.Job)
	if k == nil {
		return Stranger
	}
	i := int(p.Index)
	if i < k.Base || i >= k.Base+k.Slots {
		return OutOfRange
	}
	v := int(p.Flags & program.Set1 / program.Set1)
	if from == program.Uplink {
		s.relay(i, v, p, lanes, out)
		return Relayed
	}
	if int(from) >= len(k.Ports) || k.Ports[from] < 0 {
		return Stranger
	}
	t := &s.sets[i][v]
	before := t.bitmap
	if before != 0 && t.lanes != p.Lanes {
		return Mismatched
	}
	// Whether it is the first is said by the bitmap, whether it is the last by the counter, as in the two registers of the
	// released program: they differ when a packet outlives its set.
	bit := uint32(1) << (k.Ports[from] & 31)
	t.bitmap |= bit
	s.sets[i][1-v].bitmap &^= bit
	if before&bit != 0 {
		return s.again(k, i, v, from, p, out)
	}
	s.add(now, i, v, before == 0, p, lanes)
	if !s.last(t, len(k.Members)) {
		return Consumed
	}
	s.complete(k, i, v, p, out)
	return Completed
}

// again is a packet that is inside already.
func (s *Switch) again(k *program.Tenant, i, v int, from program.Port, p *program.Packet, out program.Out) program.Class {
	if s.sets[i][v].count > 0 {
		return Duplicate
	}
	s.answer(k, i, v, from, p, out)
	return Answered
}

// add puts a packet into a set; the first one overwrites what is there.
func (s *Switch) add(now olaf.Time, i, v int, first bool, p *program.Packet, lanes []uint32) {
	t := &s.sets[i][v]
	if first {
		s.counts[vectorsCleared] += s.waiting(t)
		s.counts[vectorsHeld] -= s.waiting(t)
		t.lanes, t.since, t.value, t.final, t.trace = p.Lanes, now, p.Value, false, program.Trace{}
		if s.cfg.LaneMemory > 0 {
			copy(s.buffer(i, v), lanes)
		}
	} else {
		if t.count == 0 { // a packet that outlived its set begins another one on top of it
			t.since, t.final, t.trace = now, false, program.Trace{}
		}
		t.value = larger(t.value, p.Value)
		if s.cfg.LaneMemory > 0 {
			adder.Wrapping(s.buffer(i, v), lanes)
		}
	}
	t.trace.Add(&p.Trace)
	s.counts[vectorsIn] += uint64(p.Trace.Vectors)
	s.counts[vectorsHeld] += uint64(p.Trace.Vectors)
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
func (s *Switch) send(k *program.Tenant, i, v int, kind program.Kind, to program.Dest, p *program.Packet, out program.Out) {
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
