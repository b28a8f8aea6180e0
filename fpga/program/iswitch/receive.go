package iswitch

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive is one packet through the accelerator (paper, §3.3).
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
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
	if from == program.Uplink {
		s.relay(k, p, lanes, out)
		return s.counted(Relayed)
	}
	i, t := s.place(k, p.Seg)
	if t == nil {
		return s.counted(OutOfRange)
	}
	count, vectors := t.count, uint64(p.Trace.Vectors)
	if count > 0 && t.lanes != p.Lanes {
		return s.counted(Mismatched)
	}
	if s.exact {
		if class := k.admit(t, from, p); class != Consumed {
			return s.counted(class)
		}
	}
	if count == 0 {
		t.since, t.lanes = now, p.Lanes
		s.used++
	}
	count++
	t.count = count
	t.trace.Add(&p.Trace)
	s.counts[vectorsIn] += vectors
	s.counts[vectorsHeld] += vectors
	if int(count) < k.fan {
		if s.cfg.LaneMemory > 0 {
			s.add(i, lanes)
		}
		return s.counted(Consumed)
	}
	s.complete(i, k, p.Seg, lanes, out)
	return s.counted(Completed)
}

// counted is a packet's class, with the packet counted in it.
func (s *Switch) counted(class program.Class) program.Class {
	s.counts[class]++
	return class
}

// relay passes the parent's result down; under isw-x it takes the place of the part that went up.
func (s *Switch) relay(k *job, p *program.Packet, lanes []uint32, out program.Out) {
	if i, t := s.place(k, p.Seg); t != nil && s.exact && t.done && t.round == p.Round {
		t.final, t.kept, t.lanes, t.bitmap, t.trace = true, p.Count, p.Lanes, p.Bitmap, p.Trace
		copy(s.buffer(i), lanes)
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

// place is the slot of a job's segment, nil where it has none, and its number.
func (s *Switch) place(k *job, seg uint64) (int, *slot) {
	if seg >= uint64(k.Slots) {
		if !s.cfg.Wrap {
			return 0, nil
		}
		seg %= uint64(k.Slots)
	}
	i := k.Base + int(seg)
	return i, &s.slots[i]
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

// add sums the lanes of a packet that is counted already into slot i. The buffer starts from zeros, so that the first packet's
// -0 becomes 0.
func (s *Switch) add(i int, lanes []uint32) {
	buffer := s.buffer(i)
	if s.slots[i].count == 1 {
		clear(buffer)
	}
	adder.Floats(buffer, lanes)
}

// complete adds what a segment waited for, and sends the sum.
func (s *Switch) complete(i int, k *job, seg uint64, lanes []uint32, out program.Out) {
	if s.cfg.LaneMemory > 0 {
		s.add(i, lanes)
	}
	s.emit(i, k, seg, out)
}

// emit sends what slot i holds towards its readers and empties it in the same pass.
func (s *Switch) emit(i int, k *job, seg uint64, out program.Out) {
	t := &s.slots[i]
	vectors := uint64(t.trace.Vectors)
	s.counts[vectorsOut] += vectors
	s.counts[vectorsHeld] -= vectors
	s.used--
	t.kept, t.count = t.count, 0
	if s.exact {
		t.done, t.final = true, !k.Parent
	}
	if k.Parent {
		s.send(i, k, seg, program.Data, program.Up, out)
	} else {
		s.send(i, k, seg, program.Result, program.Down, out)
	}
}

// send emits the sum that slot i keeps; isw-1 keeps none any longer.
func (s *Switch) send(i int, k *job, seg uint64, kind program.Kind, to program.Dest, out program.Out) {
	t, o, sum := &s.slots[i], &s.sum, s.buffer(i)
	o.Kind, o.Job, o.Seg, o.Count, o.Lanes = kind, k.ID, seg, t.kept, t.lanes
	o.Trace.Set(&t.trace)
	if s.exact {
		o.Round, o.Bitmap = t.round, t.bitmap
	} else {
		*t = slot{}
	}
	out.Emit(to, o, sum)
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
		if i, t := s.place(k, p.Seg); t != nil && t.count > 0 {
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
	if i, t := s.place(k, p.Seg); t != nil && s.exact {
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
		i, t := s.place(k, seg)
		if t == nil {
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
