package iswitch

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive is one packet through the accelerator (paper, §3.3).
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	class := Forwarded
	switch {
	case p.Kind == program.Control:
		class = s.control(from, p, out)
	case p.Kind == program.Data || p.Kind == program.Result:
		class = s.data(now, from, p, lanes, out)
	default:
		program.Forward(from, p, lanes, out)
	}
	s.counts[class]++
	return class
}

// data adds a child's packet to its segment, or passes the parent's result down.
func (s *Switch) data(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	k := s.job(p.Job)
	if k == nil {
		return Stranger
	}
	if from == program.Uplink {
		s.relay(k, p, lanes, out)
		return Relayed
	}
	i, ok := s.place(k, p.Seg)
	if !ok {
		return OutOfRange
	}
	t := &s.slots[i]
	if t.count > 0 && t.lanes != p.Lanes {
		return Mismatched
	}
	if s.exact {
		if class := k.admit(t, from, p); class != Consumed {
			return class
		}
	}
	if t.count == 0 {
		t.since, t.lanes = now, p.Lanes
		s.used++
	}
	if s.cfg.LaneMemory > 0 {
		s.add(i, lanes)
	}
	t.count++
	t.trace.Add(&p.Trace)
	s.counts[vectorsIn] += uint64(p.Trace.Vectors)
	s.counts[vectorsHeld] += uint64(p.Trace.Vectors)
	if int(t.count) < k.fan {
		return Consumed
	}
	s.emit(i, k, p.Seg, out)
	return Completed
}

// relay passes the parent's result down; under isw-x it takes the place of the part that went up.
func (s *Switch) relay(k *job, p *program.Packet, lanes []uint32, out program.Out) {
	if i, ok := s.place(k, p.Seg); ok && s.exact {
		if t := &s.slots[i]; t.done && t.round == p.Round {
			t.final, t.kept, t.lanes, t.bitmap, t.trace = true, p.Count, p.Lanes, p.Bitmap, p.Trace
			copy(s.buffer(i), lanes)
		}
	}
	s.out = *p
	s.out.Kind = program.Result
	out.Emit(program.Down, &s.out, lanes)
}

// buffer is the lanes of slot i, as many as it has in use; nil of a switch that stores none.
func (s *Switch) buffer(i int) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[i*n:][:min(n, int(s.slots[i].lanes))]
}

// place is the slot of a job's segment.
func (s *Switch) place(k *job, seg uint64) (int, bool) {
	if seg >= uint64(k.Slots) {
		if !s.cfg.Wrap {
			return 0, false
		}
		seg %= uint64(k.Slots)
	}
	return k.Base + int(seg), true
}

// admit is isw-x's check of round and contributor; Consumed lets the packet be added.
func (k *job) admit(t *slot, from program.Port, p *program.Packet) program.Class {
	place := k.place(from)
	if place < 0 || !k.joined[place] {
		return Stranger
	}
	ahead := int16(p.Round - t.round)
	switch {
	case ahead < 0 || ahead == 0 && t.done:
		return Duplicate // that round is over
	case ahead > 0 && t.count > 0:
		return Duplicate // a sender that left the round at hand before it was complete; it will come again
	}
	bit := uint64(1) << place
	if t.count > 0 && t.bitmap&bit != 0 {
		return Duplicate
	}
	if t.count == 0 {
		t.bitmap, t.trace = 0, program.Trace{}
	}
	t.round, t.done, t.final = p.Round, false, false
	t.bitmap |= bit
	return Consumed
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

// add sums a packet's lanes into slot i. The buffer starts from zeros, so that the first packet's -0 becomes 0.
func (s *Switch) add(i int, lanes []uint32) {
	buffer := s.buffer(i)
	if s.slots[i].count == 0 {
		clear(buffer)
	}
	adder.Floats(buffer, lanes)
}

// emit sends what slot i holds towards its readers and empties it in the same pass.
func (s *Switch) emit(i int, k *job, seg uint64, out program.Out) {
	t := &s.slots[i]
	s.counts[vectorsOut] += uint64(t.trace.Vectors)
	s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
	s.used--
	t.kept, t.count, t.done, t.final = t.count, 0, true, !k.Parent
	if k.Parent {
		s.send(i, k, seg, program.Data, program.Up, out)
	} else {
		s.send(i, k, seg, program.Result, program.Down, out)
	}
	if !s.exact {
		*t = slot{}
	}
}

// send emits the sum that slot i keeps.
func (s *Switch) send(i int, k *job, seg uint64, kind program.Kind, to program.Dest, out program.Out) {
	t, o := &s.slots[i], &s.out
	*o = program.Packet{}
	o.Kind, o.Job, o.Seg, o.Count, o.Lanes = kind, k.ID, seg, t.kept, t.lanes
	o.Trace.Set(&t.trace)
	if s.exact {
		o.Round, o.Bitmap = t.round, t.bitmap
	}
	out.Emit(to, o, s.buffer(i))
}

// empty frees a slot; its round stays known.
func (s *Switch) empty(t *slot) {
	s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
	s.used--
	*t = slot{round: t.round}
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
		if i, ok := s.place(k, p.Seg); ok && s.slots[i].count > 0 {
			s.emit(i, k, p.Seg, out)
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
	if i, ok := s.place(k, p.Seg); ok && s.exact {
		t := &s.slots[i]
		switch known := t.done && t.round == p.Round; {
		case known && t.final && from != program.Uplink:
			s.send(i, k, p.Seg, program.Result, program.Dest(from), out)
			return
		case known && !t.final:
			s.send(i, k, p.Seg, program.Data, program.Up, out)
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
		i, ok := s.place(k, seg)
		if !ok {
			return
		}
		first, end = i, i+1
	}
	for i := first; i < end; i++ {
		t := &s.slots[i]
		if t.count == 0 || by != nil && s.exact && seg != AllSegments && by.Round != t.round {
			continue
		}
		s.counts[vectorsCleared] += uint64(t.trace.Vectors)
		s.empty(t)
	}
}
