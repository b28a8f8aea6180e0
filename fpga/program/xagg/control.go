package xagg

import (
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// handleControl executes a control packet from a child, or from the parent if child is negative.
func (s *Server) handleControl(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
	if child < 0 {
		s.handleParent(k, p, out)
		return
	}
	switch p.Action {
	case Ready:
		s.rates[k.ID].setReady(child, p.Round, olaf.Rate(p.Value))
		s.sendRates(k, child, p.Round, out)
	case Finished:
		s.handleFinished(k, child, from, p, out)
	case Ask:
		s.handleAsk(k, child, from, p, out)
	case Begin, Still, Leave:
		s.answerEpoch(k, child, from, p, out)
	}
}

// answerEpoch answers a child that has received no sum and asks for its first epoch. It does not answer if the epoch is
// still the child's own, because the child would mistake this for progress.
func (s *Server) answerEpoch(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
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

// handleParent executes a control packet that the parent sent to this server.
func (s *Server) handleParent(k *program.Tenant, p *program.Packet, out program.Out) {
	switch p.Action {
	case Rate:
		s.rates[k.ID].setGranted(olaf.Rate(p.Value))
		s.sendRates(k, -1, p.Round, out)
	case Lost:
		for which := p.Bitmap; which != 0; which &= which - 1 {
			i := p.Seg + uint64(bits.TrailingZeros64(which))
			if i >= uint64(k.Slots) {
				return
			}
			// Sums in progress will be sent in any case.
			if t := s.refreshSlot(k, k.Base+int(i)); t.complete && t.epoch == p.Round && s.sendUp(k, k.Base+int(i), out) {
				s.Counts()[resent]++
			}
		}
	}
}

// sendRates sends new rates to the asker and to the children whose rate changed. It requests the resulting upward rate
// from the parent.
func (s *Server) sendRates(k *program.Tenant, asker int, epoch uint16, out program.Out) {
	flow, changed := s.rates[k.ID].computeShares()
	for i, m := range k.Members {
		if s.rates[k.ID].mustTell(i, i == asker) {
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

// handleFinished handles a child's message that it has sent all fragments, and reports missing fragments to the child.
// When all children are complete, this server has finished as well.
func (s *Server) handleFinished(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
	end := int(min(p.Seg, uint64(k.Slots)))
	if s.epochs != nil && p.Seg > uint64(k.Slots) {
		s.out = program.Packet{Kind: program.Control, Action: Refuse, Job: k.ID, Seg: p.Seg,
			Value: uint64(TooManyFragments), Round: p.Round}
		out.Emit(program.Dest(from), &s.out, nil)
		return
	}
	if !s.reportMissing(k, child, from, p.Round, 0, end, out) {
		return
	}
	s.rates[k.ID].setDone(child)
	s.sendRates(k, -1, p.Round, out)
	s.nameFragments(k, from, Checked, 0, 0, p.Round, out)
	if !k.Parent {
		return
	}
	s.refreshSlots(k, end)
	for i := range end {
		if t := &s.slots[k.Base+i]; t.epoch != p.Round || !t.complete {
			return
		}
	}
	s.out = program.Packet{Kind: program.Control, Action: Finished, Job: k.ID, Seg: p.Seg, Round: p.Round}
	out.Emit(program.Up, &s.out, nil)
}

// handleAsk handles the request of a worker that lacks results. It sends each result that is stored. For the others, it
// requests fragments that are missing from this child, sends the sum to the parent again, or forwards the request.
func (s *Server) handleAsk(k *program.Tenant, child int, from program.Port, p *program.Packet, out program.Out) {
	var lost, onward, awaited uint64
	for which := p.Bitmap; which != 0; which &= which - 1 {
		bit := bits.TrailingZeros64(which)
		seg := p.Seg + uint64(bit)
		if seg >= uint64(k.Slots) {
			break
		}
		i := k.Base + int(seg)
		t := s.refreshSlot(k, i)
		if lost|onward|awaited == 0 && s.epochs != nil && t.hasChild(child, p.Round) && t.epoch == p.Round && !t.complete {
			awaited = s.reportAwaited(k, t, int(seg), from, out)
		}
		switch {
		case !k.Parent && s.results[i].inEpochs(uint16(p.Value), p.Round):
			s.sendResult(k, i, program.Dest(from), out)
			s.Counts()[resent]++
		case !t.hasChild(child, p.Round):
			lost |= 1 << bit
		case k.Parent && t.complete && t.epoch == p.Round:
			if s.sendUp(k, i, out) {
				s.Counts()[resent]++
			}
			onward |= 1 << bit
		case k.Parent && (t.epoch != p.Round || uint16(p.Value) != p.Round): // the parent may have the result already
			onward |= 1 << bit
		}
	}
	if lost != 0 {
		s.Counts()[missed] += uint64(bits.OnesCount64(lost))
		s.nameFragments(k, from, Lost, int(p.Seg), lost, p.Round, out)
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

// reportAwaited sends a child the list of other children whose fragments are missing, and returns the children as a
// bitmap.
func (s *Server) reportAwaited(k *program.Tenant, t *slot, fragment int, to program.Port, out program.Out) uint64 {
	awaited := (uint64(1)<<len(k.Members) - 1) &^ t.bitmap
	s.nameFragments(k, to, Awaits, fragment, awaited, t.epoch, out)
	return awaited
}

// inEpochs reports whether the result belongs to one of the epochs that a worker used for its vector, from first to
// last. Every change of the tree adds two epochs.
func (r *result) inEpochs(first, last uint16) bool {
	ahead := r.epoch - first
	return r.stored && ahead <= last-first && ahead%2 == 0
}
