package xagg

import (
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive implements program.Program.
func (s *Server) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	class := s.handlePacket(now, from, p, lanes, out)
	return s.CountClass(class)
}

func (s *Server) handlePacket(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Kind != program.Data && p.Kind != program.Result && p.Kind != program.Control {
		program.ForwardPacket(from, p, lanes, out)
		return Forwarded
	}
	k := s.jobs.Find(p.Job)
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
		s.handleControl(k, child, from, p, out)
		return Controlled
	case child < 0:
		s.out = *p
		s.out.Kind = program.Result
		out.Emit(program.Down, &s.out, lanes)
		return Relayed
	case s.model != nil: // the packet bypassed the model, which handles data
		return Stranger
	}
	return s.handleData(now, k, child, from, p, lanes, out)
}

// handleData processes a data packet from a child, which contains one fragment.
func (s *Server) handleData(now olaf.Time, k *program.Tenant, child int, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if p.Seg >= uint64(k.Slots) {
		return OutOfRange
	}
	class := s.addFragment(now, k, child, p, lanes, out)
	if last, group := int(p.Seg), s.group; (last%group == group-1 || last == k.Slots-1) && class != Late {
		s.reportMissing(k, child, from, p.Round, last&^(group-1), last+1, out)
	}
	return class
}

// addFragment adds a child's fragment to the sum (paper, Algorithm 1).
func (s *Server) addFragment(now olaf.Time, k *program.Tenant, child int, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	i := k.Base + int(p.Seg)
	t := &s.slots[i]
	if t.lanes == 0 || p.Round != t.epoch {
		if t.lanes != 0 && int16(p.Round-t.epoch) < 0 {
			return Late
		}
		s.discardSum(t)
		*t = slot{epoch: p.Round, lanes: p.Lanes, since: now}
	}
	bit := uint64(1) << child
	switch {
	case t.bitmap&bit != 0:
		return Duplicate
	case t.lanes != p.Lanes:
		return Mismatched
	}
	s.addLanes(i, t.inside == 0, lanes)
	if t.inside == 0 {
		s.Used++
	}
	t.bitmap |= bit
	t.inside++
	t.count += uint32(p.Count)
	t.trace.Add(&p.Trace)
	s.CountAdded(p.Trace.Vectors)
	if int(t.inside) < len(k.Members) {
		return Consumed
	}
	s.sendComplete(k, i, out)
	return Completed
}

// addLanes adds lanes to the sum of fragment i. The lanes of the first packet in an epoch overwrite the sum.
func (s *Server) addLanes(i int, first bool, lanes []uint32) {
	buffer := s.buffer(i)
	switch {
	case first:
		copy(buffer, lanes)
	case s.wrap:
		adder.AddWrapping(buffer, lanes)
	default:
		s.Counts()[saturated] += adder.AddSaturating(buffer, lanes)
	}
}

// sendComplete sends the sum of fragment i to the parent, or to all children if this server is the root.
func (s *Server) sendComplete(k *program.Tenant, i int, out program.Out) {
	t := &s.slots[i]
	t.complete = true
	s.Used--
	s.CountSent(t.trace.Vectors)
	if k.Parent {
		s.sendUp(k, i, out)
		return
	}
	r := &s.results[i]
	*r = result{stored: true, epoch: t.epoch, lanes: t.lanes, count: t.count, trace: t.trace}
	copy(s.part(s.resultLanes, i, r.lanes), s.buffer(i))
	s.sendResult(k, i, program.Down, out)
}

// sendUp sends the sum of fragment i to the parent. It returns false if a newer epoch has begun for the fragment.
func (s *Server) sendUp(k *program.Tenant, i int, out program.Out) bool {
	t, lanes := &s.slots[i], s.buffer(i)
	if s.model != nil {
		if lanes = s.readSum(k, i); !t.complete {
			return false
		}
	}
	s.out = program.Packet{
		Kind: program.Data, Job: k.ID, Seg: uint64(i - k.Base), Round: t.epoch, Bitmap: t.bitmap,
		Count: clampCount(t.count), Lanes: t.lanes, Trace: t.trace,
	}
	out.Emit(program.Up, &s.out, lanes)
	return true
}

func (s *Server) sendResult(k *program.Tenant, i int, to program.Dest, out program.Out) {
	r := &s.results[i]
	s.out = program.Packet{
		Kind: program.Result, Job: k.ID, Seg: uint64(i - k.Base), Round: r.epoch, Count: clampCount(r.count),
		Lanes: r.lanes, Trace: r.trace,
	}
	out.Emit(to, &s.out, s.part(s.resultLanes, i, r.lanes))
}

// reportMissing finds the fragments in the range from first to end-1 that are missing from a child, and sends their
// numbers to the child. It reports whether none is missing.
func (s *Server) reportMissing(k *program.Tenant, child int, from program.Port, epoch uint16, first, end int,
	out program.Out) (all bool) {
	s.Counts()[checks]++
	all = true
	s.refreshSlots(k, end)
	for ; first < end; first += NameSpan {
		var lost uint64
		for i := first; i < min(first+NameSpan, end); i++ {
			if !s.slots[k.Base+i].hasChild(child, epoch) {
				lost |= 1 << (i - first)
			}
		}
		if lost != 0 {
			all = false
			s.nameFragments(k, from, Lost, first, lost, epoch, out)
			s.Counts()[missed] += uint64(bits.OnesCount64(lost))
		}
	}
	return all
}

// hasChild reports whether a child's contribution in an epoch was added to the fragment. It also returns true if a
// newer epoch has begun for the fragment.
func (t *slot) hasChild(child int, epoch uint16) bool {
	if t.lanes == 0 || t.epoch != epoch {
		return t.lanes != 0 && int16(t.epoch-epoch) > 0
	}
	return t.bitmap>>child&1 != 0
}

// nameFragments sends a control packet with a list of fragments to a child.
func (s *Server) nameFragments(k *program.Tenant, to program.Port, action uint8, first int, which uint64, epoch uint16,
	out program.Out) {
	s.out = program.Packet{Kind: program.Control, Action: action, Job: k.ID, Seg: uint64(first), Bitmap: which,
		Round: epoch}
	out.Emit(program.Dest(to), &s.out, nil)
}
