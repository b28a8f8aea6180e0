package xagg

import (
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive is one packet through the server.
func (s *Server) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	class := s.receive(now, from, p, lanes, out)
	s.counts[class]++
	return class
}

func (s *Server) receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Kind != program.Data && p.Kind != program.Result && p.Kind != program.Control {
		program.Forward(from, p, lanes, out)
		return Forwarded
	}
	k := s.jobs.Of(p.Job)
	if k == nil {
		return Stranger
	}
	child := -1
	if from != program.Uplink {
		if int(from) >= len(k.Ports) || k.Ports[from] < 0 {
			return Stranger
		}
		child = k.Ports[from]
	}
	switch {
	case p.Kind == program.Control:
		s.control(k, child, from, p, out)
		return Controlled
	case child < 0:
		s.out = *p
		s.out.Kind = program.Result
		out.Emit(program.Down, &s.out, lanes)
		return Relayed
	case s.model != nil: // it went past the model, which has what belongs to it
		return Stranger
	}
	return s.data(now, k, child, from, p, lanes, out)
}

// data is a child's fragment.
func (s *Server) data(now olaf.Time, k *program.Tenant, child int, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Seg >= uint64(k.Slots) {
		return OutOfRange
	}
	class := s.add(now, k, child, p, lanes, out)
	if last, group := int(p.Seg), s.group; (last%group == group-1 || last == k.Slots-1) && class != Late {
		s.check(k, child, from, p.Round, last&^(group-1), last+1, out)
	}
	return class
}

// add brings a fragment to those inside (paper, Algorithm 1).
func (s *Server) add(now olaf.Time, k *program.Tenant, child int, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	i := k.Base + int(p.Seg)
	t := &s.slots[i]
	if t.lanes == 0 || p.Round != t.epoch {
		if t.lanes != 0 && int16(p.Round-t.epoch) < 0 {
			return Late
		}
		s.abandon(t)
		*t = slot{epoch: p.Round, lanes: p.Lanes, since: now}
	}
	bit := uint64(1) << child
	switch {
	case t.bitmap&bit != 0:
		return Duplicate
	case t.lanes != p.Lanes:
		return Mismatched
	}
	s.sum(i, t.inside == 0, lanes)
	if t.inside == 0 {
		s.used++
	}
	t.bitmap |= bit
	t.inside++
	t.count += uint32(p.Count)
	t.trace.Add(&p.Trace)
	s.counts[vectorsIn] += uint64(p.Trace.Vectors)
	s.counts[vectorsHeld] += uint64(p.Trace.Vectors)
	if int(t.inside) < len(k.Members) {
		return Consumed
	}
	s.complete(k, i, out)
	return Completed
}

// sum adds lanes to those of fragment i; the first of an epoch overwrite what is there.
func (s *Server) sum(i int, first bool, lanes []uint32) {
	buffer := s.buffer(i)
	switch {
	case first:
		copy(buffer, lanes)
	case s.wrap:
		adder.Wrapping(buffer, lanes)
	default:
		s.counts[saturated] += adder.Saturating(buffer, lanes)
	}
}

// complete sends the sum of fragment i: to the parent, or at the root to all.
func (s *Server) complete(k *program.Tenant, i int, out program.Out) {
	t := &s.slots[i]
	t.whole = true
	s.used--
	s.counts[vectorsOut] += uint64(t.trace.Vectors)
	s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
	if k.Parent {
		s.sendUp(k, i, out)
		return
	}
	r := &s.results[i]
	*r = result{held: true, epoch: t.epoch, lanes: t.lanes, count: t.count, trace: t.trace}
	copy(s.part(s.kept, i, r.lanes), s.buffer(i))
	s.sendResult(k, i, program.Down, out)
}

// sendUp sends the sum of fragment i to the parent; false when it has begun another epoch meanwhile.
func (s *Server) sendUp(k *program.Tenant, i int, out program.Out) bool {
	t, lanes := &s.slots[i], s.buffer(i)
	if s.model != nil {
		if lanes = s.read(k, i); !t.whole {
			return false
		}
	}
	s.out = program.Packet{
		Kind: program.Data, Job: k.ID, Seg: uint64(i - k.Base), Round: t.epoch, Bitmap: t.bitmap,
		Count: updates(t.count), Lanes: t.lanes, Trace: t.trace,
	}
	out.Emit(program.Up, &s.out, lanes)
	return true
}

func (s *Server) sendResult(k *program.Tenant, i int, to program.Dest, out program.Out) {
	r := &s.results[i]
	s.out = program.Packet{
		Kind: program.Result, Job: k.ID, Seg: uint64(i - k.Base), Round: r.epoch, Count: updates(r.count),
		Lanes: r.lanes, Trace: r.trace,
	}
	out.Emit(to, &s.out, s.part(s.kept, i, r.lanes))
}

// check looks for what a child's fragments from first to before end lack, and tells the child. It says whether nothing does.
func (s *Server) check(k *program.Tenant, child int, from program.Port, epoch uint16, first, end int,
	out program.Out) (all bool) {
	s.counts[checks]++
	all = true
	for ; first < end; first += NameSpan {
		var lost uint64
		for i := first; i < min(first+NameSpan, end); i++ {
			if !s.look(k, k.Base+i).has(child, epoch) {
				lost |= 1 << (i - first)
			}
		}
		if lost != 0 {
			all = false
			s.tell(k, from, Lost, first, lost, epoch, out)
			s.counts[missed] += uint64(bits.OnesCount64(lost))
		}
	}
	return all
}

// has says whether a child is inside of an epoch, or was when a newer one took the fragment over.
func (t *slot) has(child int, epoch uint16) bool {
	if t.lanes == 0 || t.epoch != epoch {
		return t.lanes != 0 && int16(t.epoch-epoch) > 0
	}
	return t.bitmap>>child&1 != 0
}

// tell names fragments to a child.
func (s *Server) tell(k *program.Tenant, to program.Port, action uint8, first int, which uint64, epoch uint16,
	out program.Out) {
	s.out = program.Packet{Kind: program.Control, Action: action, Job: k.ID, Seg: uint64(first), Bitmap: which,
		Round: epoch}
	out.Emit(program.Dest(to), &s.out, nil)
}
