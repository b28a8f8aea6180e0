package netsim

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results/metric"
)

// ErrAccounting is matched by errors about broken accounting identities.
var ErrAccounting = olaf.ErrAccounting

// checkAccounts verifies that the simulator neither created nor lost updates: every update sent was delivered, dropped
// by an engine, replaced or lost on a link, or is still in the network. It also checks every engine's own identities.
func (s *sim) checkAccounts() error {
	var saturated uint64
	for i := range s.ports {
		d := s.ports[i].output.Discipline()
		if err := engine.AuditDiscipline(d); err != nil {
			return fmt.Errorf("port %s: %w", s.portName(i), err)
		}
		saturated += d.Stats().CountSaturations
	}
	if err := s.auditPrograms(); err != nil {
		return err
	}
	if f := s.countFates(); saturated == 0 && f.Sent != f.sumParts() {
		return fmt.Errorf("%w: sent = delivered + dropped + replaced + lost on links + inside + flying: %d ≠ %d + %d + %d + %d + %d + %d",
			ErrAccounting, f.Sent, f.Delivered, f.Dropped, f.Replaced, f.LostOnLinks, f.Queued, f.Flying)
	}
	return s.meter.total.counts().Balance()
}

// Fate counts what happened to all updates sent, including the warm-up. Its parts add up to Sent.
type Fate struct {
	Sent        uint64
	Delivered   uint64 // merged ones included
	Dropped     uint64 // by queues, or by a program that did not add them
	Replaced    uint64 // by a newer one of the same worker
	LostOnLinks uint64
	Queued      uint64 // in slots of ports or of switches that add; excludes the frame on the wire
	Flying      uint64 // on links
}

func (f *Fate) sumParts() uint64 {
	return f.Delivered + f.Dropped + f.Replaced + f.LostOnLinks + f.Queued + f.Flying
}

// countFates counts the sent updates by outcome.
func (s *sim) countFates() Fate {
	t := &s.meter.total
	f := Fate{Sent: t[countSent], Delivered: t[countUpdates], Dropped: t[countDroppedUpdates],
		Flying: uint64(s.meter.airborne)}
	for i := range s.ports {
		p := &s.ports[i]
		f.Replaced += p.output.Discipline().Stats().SumDiscarded
		f.LostOnLinks += p.updatesLost
		for i := range p.link.len() {
			f.Flying += uint64(p.link.at(i).update.Count)
		}
		var frame engine.Frame
		p.output.Discipline().Queued(func(slot engine.Slot, locked bool) bool {
			if !locked {
				p.output.Discipline().View(slot, &frame)
				f.Queued += uint64(frame.Update.Count)
			}
			return true
		})
	}
	for i := range s.stations {
		f.Queued += s.stations[i].countHeld()
	}
	for i := range s.cables {
		f.LostOnLinks += s.cables[i].up.Lost
	}
	for i := range s.sources {
		f.Flying += uint64(s.sources[i].sent.len())
	}
	f.Flying += uint64(s.held.len())
	return f
}

// networkCounts returns the account of a network with the counts after the warm-up, taken from window.
func networkCounts(window metric.Values) olaf.Counts {
	c := olaf.NewCounts(system.NetworkDeclaration().Ledger)
	for _, counter := range metric.OfWindow().Counters {
		if window.Has(counter.Name) {
			c.Add(counter.Name, int64(window.Of(counter.Name)))
		}
	}
	return c
}

// sumTotals returns the account of all updates in the whole run, including the warm-up, with the network taken as one
// queue: it counts merges and losses at any hop, but not transfers to the next hop. Updates in flight at the end count
// as queued, frames lost on links as flushed. It also contains the counts after the warm-up.
func (s *sim) sumTotals(window metric.Values) olaf.Counts {
	t, f := &s.meter.total, s.countFates()
	c := networkCounts(window)
	for name, n := range map[string]uint64{
		"sent": t[countSent], "tc_withheld": t[countWithheld], "in": t[countSent], "delivered": t[countDelivered],
		"received": t[countDelivered], "queued": uint64(s.framesInside()),
		"count_delivered": f.Delivered, "count_queued": f.Queued + f.Flying, "count_flushed": f.LostOnLinks,
		// A dropped merged frame also loses the other updates in it.
		"count_discarded": f.Replaced + t[countDroppedUpdates] - t[countDropped],
	} {
		c.Add(name, int64(n))
	}
	appended := int64(t[countSent])
	for i := range s.ports {
		p := &s.ports[i]
		st := p.output.Discipline().Stats()
		for class := range engine.Classes {
			if n := int64(st.Class[class]); class != engine.Appended {
				c.Add(class.String(), n)
				appended -= n
			}
		}
		c.Add("flushed", int64(p.updateFramesLost))
		c.Add("count_saturations", int64(st.CountSaturations))
		c.Add("reward_saturations", int64(st.RewardSaturations))
	}
	for i := range s.stations {
		st := &s.stations[i]
		c.Add(engine.Aggregated.String(), int64(st.merged))
		c.Add(engine.DroppedMismatch.String(), int64(st.refused))
		appended -= int64(st.merged + st.refused)
	}
	for i := range s.cables {
		c.Add("flushed", int64(s.cables[i].up.Lost))
	}
	c.Add(engine.Appended.String(), appended)
	return c
}

// framesInside counts the frames in slots or on links.
func (s *sim) framesInside() int64 {
	n := int64(s.meter.airborne)
	for i := range s.ports {
		p := &s.ports[i]
		n += int64(p.output.Discipline().Waiting())
		for k := range p.link.len() {
			if p.link.at(k).update.Count > 0 {
				n++
			}
		}
	}
	for i := range s.stations {
		n += int64(s.stations[i].countHeld())
	}
	for i := range s.sources {
		n += int64(s.sources[i].sent.len())
	}
	n += int64(s.held.len())
	return n
}
