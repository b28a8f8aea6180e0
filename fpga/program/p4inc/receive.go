package p4inc

import (
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// Receive implements program.Program.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	class := s.handlePacket(now, from, p, lanes, out)
	return s.CountClass(class)
}

func (s *Switch) handlePacket(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	k := s.jobs.Find(p.Job)
	if p.Kind != program.Data || k == nil { // jobs are identified by the published Service ID
		program.ForwardPacket(from, p, lanes, out)
		return Forwarded
	}
	if from < 0 || int(from) >= len(k.Ports) || k.Ports[from] < 0 {
		return Stranger
	}
	i := int(p.Index)
	if i < k.Base || i >= k.Base+k.Slots {
		return OutOfRange
	}
	t := &s.slots[i]
	if t.hasShadow && p.Seg <= t.shadowSeg {
		return s.handleLate(i, from, p, out)
	}
	bit := uint32(1) << k.Ports[from]
	switch {
	case t.bitmap == 0:
		s.startFragment(now, i, p)
	case t.seg < p.Seg:
		s.sendMark(from, p, out)
		return Asynchron
	case t.seg > p.Seg: // a later fragment took a free aggregator too early, and cannot complete before this one
		s.clearSum(t)
		s.startFragment(now, i, p)
	case t.bitmap&bit != 0:
		return Duplicate
	case t.lanes != p.Lanes:
		return Mismatched
	}
	s.addPacket(i, bit, p, lanes)
	if bits.OnesCount32(t.bitmap) < len(k.Members) {
		return Consumed
	}
	s.completeSum(k, i, out)
	return Completed
}

// startFragment starts the sum of a packet's fragment in an empty aggregator.
func (s *Switch) startFragment(now olaf.Time, i int, p *program.Packet) {
	t := &s.slots[i]
	t.seg, t.lanes, t.since, t.trace = p.Seg, p.Lanes, now, program.Trace{}
	clear(s.buffer(i, 0, p.Lanes))
	s.Used++
}

// clearSum discards the partial sum in an aggregator.
func (s *Switch) clearSum(t *aggregator) {
	s.CountCleared(t.trace.Vectors)
	s.Used--
	t.bitmap = 0
}

func (s *Switch) addPacket(i int, bit uint32, p *program.Packet, lanes []uint32) {
	t := &s.slots[i]
	t.bitmap |= bit
	t.trace.Add(&p.Trace)
	adder.AddWrapping(s.buffer(i, 0, t.lanes), lanes)
	s.CountAdded(p.Trace.Vectors)
}

// completeSum sends an aggregator's sum to all workers, stores it as the shadow copy and empties the aggregator.
func (s *Switch) completeSum(k *program.Tenant, i int, out program.Out) {
	t := &s.slots[i]
	s.CountSent(t.trace.Vectors)
	t.hasShadow, t.shadowSeg, t.shadowLen, t.shadowTrace = true, t.seg, t.lanes, t.trace
	copy(s.buffer(i, 1, t.lanes), s.buffer(i, 0, t.lanes))
	t.bitmap = 0
	s.Used--
	s.sendResult(k.ID, i, program.Down, out)
}

// handleLate processes a packet of a fragment that is already complete. It sends the result again if the switch still
// has it.
func (s *Switch) handleLate(i int, from program.Port, p *program.Packet, out program.Out) program.Class {
	if p.Seg < s.slots[i].shadowSeg {
		return Stale
	}
	s.sendResult(p.Job, i, program.Dest(from), out)
	return Answered
}

// sendResult sends the shadow copy in aggregator i as a result.
func (s *Switch) sendResult(id olaf.ClusterID, i int, to program.Dest, out program.Out) {
	t := &s.slots[i]
	s.out = program.Packet{
		Kind: program.Result, Job: id, Seg: t.shadowSeg, Index: uint32(i), Count: uint16(t.shadowTrace.Vectors),
		Lanes: t.shadowLen, Trace: t.shadowTrace,
	}
	out.Emit(to, &s.out, s.buffer(i, 1, t.shadowLen))
}

// sendMark sends a congestion mark to a sender, because its aggregator is used by another fragment.
func (s *Switch) sendMark(from program.Port, p *program.Packet, out program.Out) {
	s.out = program.Packet{Kind: program.Control, Action: Collided, Flags: program.ECN, Job: p.Job, Worker: p.Worker,
		Seg: p.Seg, Index: p.Index}
	out.Emit(program.Dest(from), &s.out, nil)
}
