package xagg

import (
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// control obeys a control packet of a child, or of the parent where child is below 0.
func (s *Server) control(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
	if child < 0 {
		s.fromParent(k, p, out)
		return
	}
	switch p.Action {
	case Ready:
		s.rates[k.ID].ready(child, p.Round, olaf.Rate(p.Value))
		s.divide(k, child, p.Round, out)
	case Finished:
		s.finished(k, child, from, p, out)
	case Ask:
		s.asked(k, child, from, p, out)
	case Begin, Still, Leave:
		s.begins(k, child, from, p, out)
	}
}

// begins answers a child whose job is to begin, or has, with no sum so far. An answer that repeats the child's own epoch is left out, as the
// child would take it for a sign of life.
func (s *Server) begins(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
	if s.epochs == nil {
		return
	}
	first, answer := s.epochs(child, p.Action, p.Value, uint32(p.Seg))
	s.out = program.Packet{Kind: program.Control, Action: First, Job: k.ID, Seg: p.Seg, Value: uint64(first)}
	switch {
	case answer == Unanswered, answer == Answered && p.Action == Still && first == p.Round:
		return
	case answer != Answered:
		s.out.Action, s.out.Value = Refuse, uint64(answer)
	}
	out.Emit(program.Dest(from), &s.out, nil)
}

// fromParent is what the parent tells this server as one of its children.
func (s *Server) fromParent(k *program.Tenant, p *program.Packet, out program.Out) {
	switch p.Action {
	case Rate:
		s.rates[k.ID].grant(olaf.Rate(p.Value))
		s.divide(k, -1, p.Round, out)
	case Lost:
		for which := p.Bitmap; which != 0; which &= which - 1 {
			i := p.Seg + uint64(bits.TrailingZeros64(which))
			if i >= uint64(k.Slots) {
				return
			}
			// What is under way here comes by itself.
			if t := s.look(k, k.Base+int(i)); t.whole && t.epoch == p.Round && s.sendUp(k, k.Base+int(i), out) {
				s.counts[resent]++
			}
		}
	}
}

// divide tells children whose rate has changed, the one that asked in any case, and asks the parent for what is to flow up.
func (s *Server) divide(k *program.Tenant, asker int, epoch uint16, out program.Out) {
	flow, changed := s.rates[k.ID].divide()
	for i, m := range k.Members {
		if s.rates[k.ID].tells(i, i == asker) {
			s.out = program.Packet{Kind: program.Control, Action: Rate, Job: k.ID,
				Value: uint64(s.rates[k.ID].share[i]), Round: epoch}
			out.Emit(program.Dest(m.Port), &s.out, nil)
		}
	}
	if changed && k.Parent {
		s.out = program.Packet{Kind: program.Control, Action: Ready, Job: k.ID, Value: uint64(flow), Round: epoch}
		out.Emit(program.Up, &s.out, nil)
	}
}

// finished looks for what is missing of a child that has sent all. When every child is complete this server has finished as
// well.
func (s *Server) finished(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
	end := int(min(p.Seg, uint64(k.Slots)))
	if s.epochs != nil && p.Seg > uint64(k.Slots) {
		s.out = program.Packet{Kind: program.Control, Action: Refuse, Job: k.ID, Seg: p.Seg,
			Value: uint64(TooManyFragments), Round: p.Round}
		out.Emit(program.Dest(from), &s.out, nil)
		return
	}
	if !s.check(k, child, from, p.Round, 0, end, out) {
		return
	}
	s.rates[k.ID].finish(child)
	s.divide(k, -1, p.Round, out)
	s.tell(k, from, Checked, 0, 0, p.Round, out)
	if !k.Parent {
		return
	}
	for i := range end {
		if t := s.look(k, k.Base+i); t.epoch != p.Round || !t.whole {
			return
		}
	}
	s.out = program.Packet{Kind: program.Control, Action: Finished, Job: k.ID, Seg: p.Seg, Round: p.Round}
	out.Emit(program.Up, &s.out, nil)
}

// asked helps a worker that misses results: with the result where it is kept, by asking for what is missing below, by sending
// the sum up once more, and by asking on.
func (s *Server) asked(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
	var lost, onward uint64
	for which := p.Bitmap; which != 0; which &= which - 1 {
		bit := bits.TrailingZeros64(which)
		seg := p.Seg + uint64(bit)
		if seg >= uint64(k.Slots) {
			break
		}
		i := k.Base + int(seg)
		t := s.look(k, i)
		switch {
		case !k.Parent && s.results[i].of(uint16(p.Value), p.Round):
			s.sendResult(k, i, program.Dest(from), out)
			s.counts[resent]++
		case !t.has(child, p.Round):
			lost |= 1 << bit
		case k.Parent && t.whole && t.epoch == p.Round:
			if s.sendUp(k, i, out) {
				s.counts[resent]++
			}
			onward |= 1 << bit
		case k.Parent && (t.epoch != p.Round || uint16(p.Value) != p.Round): // the result may be kept above
			onward |= 1 << bit
		}
	}
	if lost != 0 {
		s.counts[missed] += uint64(bits.OnesCount64(lost))
		s.tell(k, from, Lost, int(p.Seg), lost, p.Round, out)
		if k.Parent && uint16(p.Value) != p.Round {
			onward |= lost
		}
	}
	if onward != 0 {
		s.out = *p
		s.out.Bitmap = onward
		out.Emit(program.Up, &s.out, nil)
	}
}

// of says whether a result is of one of the epochs that a worker used for its vector: every change of the tree added two.
func (r *result) of(first, last uint16) bool {
	ahead := r.epoch - first
	return r.held && ahead <= last-first && ahead%2 == 0
}
