package iswitch

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive is one packet through the accelerator (paper, §3.3).
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Kind < program.Data || p.Kind > program.Result || from == program.Uplink {
		return s.pass(from, p, lanes, out)
	}
	k := s.job(p.Job)
	if k == nil {
		return s.counted(Stranger)
	}
	t := s.place(k, p.Seg)
	if t == nil {
		return s.counted(OutOfRange)
	}
	count := t.count
	if count > 0 && t.sum.Lanes != p.Lanes {
		return s.counted(Mismatched)
	}
	if s.exact {
		bit := k.bit(from)
		if bit == 0 {
			return s.counted(Stranger)
		}
		if !t.admit(bit, p) {
			return s.counted(Duplicate)
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
		s.add(t, lanes)
	}
	if int(count) < k.fan {
		return s.counted(Consumed)
	}
	s.counts[Completed]++
	s.leave(t, k)
	s.send(t, k, p.Seg, k.readers(), out)
	return Completed
}

// pass is a packet that no child sent to be added.
func (s *Switch) pass(from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	switch {
	case p.Kind == program.Control:
		return s.counted(s.control(from, p, out))
	case p.Kind != program.Data && p.Kind != program.Result:
		program.Forward(from, p, lanes, out)
		return s.counted(Forwarded)
	}
	k := s.job(p.Job)
	if k == nil {
		return s.counted(Stranger)
	}
	s.relay(k, p, lanes, out)
	return s.counted(Relayed)
}

// counted is a packet's class, with the packet counted in it.
func (s *Switch) counted(class program.Class) program.Class {
	s.counts[class]++
	return class
}

// relay passes the parent's result down; under isw-x it takes the place of the part that went up.
func (s *Switch) relay(k *job, p *program.Packet, lanes []uint32, out program.Out) {
	if t := s.place(k, p.Seg); t != nil && s.exact && t.done && t.sum.Round == p.Round {
		t.final, t.sum.Count, t.sum.Lanes, t.sum.Bitmap, t.sum.Trace = true, p.Count, p.Lanes, p.Bitmap, p.Trace
		copy(s.buffer(t), lanes)
	}
	s.out = *p
	s.out.Kind = program.Result
	out.Emit(program.Down, &s.out, lanes)
}

// buffer is the lanes of a slot, as many as it has in use; nil of a switch that stores none.
func (s *Switch) buffer(t *slot) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[int(t.at)*n:][:min(n, int(t.sum.Lanes))]
}

// place is the slot of a job's segment, nil where it has none.
func (s *Switch) place(k *job, seg uint64) *slot {
	if seg >= uint64(k.Slots) {
		if !s.cfg.Wrap {
			return nil
		}
		seg %= uint64(k.Slots)
	}
	return &s.slots[k.Base+int(seg)]
}

// bit is that of the member behind a port, 0 where nobody has joined.
func (k *job) bit(from program.Port) uint64 {
	if from >= 0 && int(from) < len(k.bits) {
		return k.bits[from]
	}
	return 0
}

// admit is isw-x's check of round and contributor. It refuses whoever is inside, a round that is over, and a sender that left the
// round at hand before it was complete; that one will come again.
func (t *slot) admit(bit uint64, p *program.Packet) bool {
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

// place finds the member behind a port, -1 when there is none, as behind the uplink. Members usually stand in the order of
// their ports.
func (k *job) place(from program.Port) int {
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

// add sums the lanes of a packet that is counted already into a slot. The buffer starts from zeros, so that the first packet's
// -0 becomes 0.
func (s *Switch) add(t *slot, lanes []uint32) {
	buffer := s.buffer(t)
	if t.count == 1 {
		clear(buffer)
	}
	adder.Floats(buffer, lanes)
}

// leave counts what a slot holds as gone to its readers, and frees it.
func (s *Switch) leave(t *slot, k *job) {
	s.counts[vectorsOut] += uint64(t.sum.Vectors)
	s.counts[vectorsHeld] -= uint64(t.sum.Vectors)
	s.used--
	t.sum.Count, t.count = t.count, 0
	t.done, t.final = true, !k.Parent
}

// readers are whom a job's sums are for.
func (k *job) readers() program.Dest {
	if k.Parent {
		return program.Up
	}
	return program.Down
}

// send emits the sum that a slot has made: a part to the parent, a result to others.
func (s *Switch) send(t *slot, k *job, seg uint64, to program.Dest, out program.Out) {
	t.sum.Kind, t.sum.Job, t.sum.Seg = program.Result, k.ID, seg
	if to == program.Up {
		t.sum.Kind = program.Data
	}
	out.Emit(to, &t.sum, s.buffer(t))
}

// empty frees a slot; its round stays known.
func (s *Switch) empty(t *slot) {
	s.counts[vectorsHeld] -= uint64(t.sum.Vectors)
	s.used--
	*t = slot{sum: program.Packet{Round: t.sum.Round}, at: t.at}
}

// control obeys or passes on a control packet (paper, Table 2).
func (s *Switch) control(from program.Port, p *program.Packet, out program.Out) program.Class {
	k := s.job(p.Job)
	if k == nil {
		return Stranger
	}
	switch p.Action {
	case Join, Leave:
		place := k.place(from)
		s.acknowledge(from, p, place >= 0, out)
		if place < 0 {
			return Stranger
		}
		k.join(place, p.Action == Join)
	case SetH:
		ok := p.Value >= 1 && p.Value <= MaxH
		if ok {
			k.fan, k.fixed = int(p.Value), true
		}
		s.acknowledge(from, p, ok, out)
	case Reset:
		s.clear(k, p.Seg, p)
	case ForceBroadcast:
		if t := s.place(k, p.Seg); t != nil && t.count > 0 {
			s.leave(t, k)
			s.send(t, k, p.Seg, k.readers(), out)
		}
	case Help:
		s.help(k, from, p, out)
	case Halt:
		out.Emit(program.Down, p, nil)
	case Acknowledge: // answers a switch that asked nothing
	default:
		s.acknowledge(from, p, false, out)
	}
	return Controlled
}

// help passes a worker's question on, to all who may have what it misses. Under isw-x, where it names its round, the switch
// answers itself if the result is still here, and sends its part once more if that left and nothing came back.
func (s *Switch) help(k *job, from program.Port, p *program.Packet, out program.Out) {
	if t := s.place(k, p.Seg); t != nil && s.exact {
		switch known := t.done && t.sum.Round == p.Round; {
		case known && t.final && from != program.Uplink:
			s.send(t, k, p.Seg, program.Dest(from), out)
			return
		case known && !t.final:
			s.send(t, k, p.Seg, program.Up, out)
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

// clear discards a job's partial sums, of one segment or of all. Under isw-x a Reset names its round, and one that was
// overtaken by its round's end does nothing; by is nil when a controller clears.
func (s *Switch) clear(k *job, seg uint64, by *program.Packet) {
	first, end := k.Base, k.Base+k.Slots
	if seg != AllSegments {
		t := s.place(k, seg)
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
		s.empty(t)
	}
}
