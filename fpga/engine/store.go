package engine

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
)

// place is one physical slot: an update and what the queue knows about it. It fills one cache line.
type place struct {
	update   olaf.Update
	appended olaf.Time
	first    int32 // provenance: nodes of the oldest and the newest contributor
	last     int32
	// owner is R[u]: its worker, or -1 while the flag is not set. R[u] means something only while u has a waiting
	// update, so it is kept there.
	owner int32
	_     [12]byte
}

// store is what the disciplines share: slots, departure order, lanes, provenance and counters.
//
// Updates enter at the tail, keep their place, and leave at the head one at a time. So the departure ring can hold the
// updates themselves: a slot's number is its place in the ring, and there is no list of free slots.
type store struct {
	cfg      Config
	places   []place
	clusters []int32 // what the discipline remembers of each cluster, 0 for one with nothing inside
	lanes    []int32 // stride a slot
	stride   int
	carries  bool // gradients or provenance
	log      provenance
	inside   []olaf.Contributor // what View hands out

	head    int32 // place of the next frame to leave
	waiting int32 // frames from head on
	leaving int32 // place of the locked frame, or NoSlot
	holds   int32 // slots that a frame on the wire occupies: 1, or 0 with FreeSlotOnStart
	stats   Stats
}

// laneBlock is the number of lanes in a cache line, to which slots are aligned.
const laneBlock = 64 / olaf.LaneBytes

func newStore(cfg Config) store {
	physical, holds := cfg.Slots, int32(1)
	if cfg.FreeSlotOnStart {
		physical++ // the frame on the wire needs room but does not count
		holds = 0
	}
	stride := (cfg.LaneMemory + laneBlock - 1) / laneBlock * laneBlock
	return store{
		cfg:      cfg,
		places:   make([]place, physical),
		clusters: make([]int32, cfg.Clusters),
		lanes:    make([]int32, stride*physical),
		stride:   stride,
		carries:  stride > 0 || cfg.Provenance,
		log:      newProvenance(),
		holds:    holds,
		leaving:  int32(NoSlot),
	}
}

// append puts u behind the last waiting update and returns its slot, or NoSlot when there is no room. Like every decision
// it moves only the update; gradients and provenance follow by carry, where they are kept.
func (s *store) append(now olaf.Time, u *olaf.Update) Slot {
	occupied := s.occupied()
	if int(occupied) == s.cfg.Slots {
		return NoSlot
	}
	i := s.wrap(s.head + s.waiting)
	s.waiting++
	if int(occupied) >= s.stats.PeakOccupancy {
		s.stats.PeakOccupancy = int(occupied) + 1
	}
	p := &s.places[i]
	p.appended = now
	p.update = *u
	p.owner = int32(u.Worker)
	s.stats.SumAccepted += uint64(u.Count)
	return Slot(i)
}

// isLeaving says whether the frame on the wire is of u's cluster.
func (s *store) isLeaving(u *olaf.Update) bool {
	return s.leaving >= 0 && s.places[s.leaving].update.Cluster == u.Cluster
}

// carry moves what travels beside u, after the decision about it: its gradients and who is inside.
func (s *store) carry(o Outcome, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
	if o.Slot == NoSlot {
		return
	}
	p := &s.places[o.Slot]
	joins := o.Class == Aggregated
	if s.cfg.Provenance {
		if !joins {
			s.log.drop(p)
		}
		s.log.add(p, u, inside)
	}
	mine := s.lanesOf(o.Slot, u)
	switch {
	case joins:
		if lanes != nil {
			s.stats.LaneSaturations += adder.Saturating(mine, lanes)
		}
	case lanes == nil:
		clear(mine)
	default:
		copy(mine, lanes)
	}
}

// lanesOf is the gradient memory of slot i, as long as u's frame needs and the memory has.
func (s *store) lanesOf(i Slot, u *olaf.Update) []int32 {
	at := int(i) * s.stride
	return s.lanes[at : at+min(int(u.Lanes), s.cfg.LaneMemory)]
}

// wrap brings a place that is at most one round ahead back into the ring.
func (s *store) wrap(i int32) int32 {
	if i >= int32(len(s.places)) {
		i -= int32(len(s.places))
	}
	return i
}

// occupied is how many slots are in use. Without a frame on the wire leaving is -1, and the shift a mask of all ones.
func (s *store) occupied() int32 { return s.waiting + s.holds&^(s.leaving>>31) }

// isZero is 1 for 0, else 0. Clusters come in random order; a branch on one would be mispredicted every other time.
func isZero(n int32) (one int) {
	if n == 0 {
		one = 1
	}
	return one
}

func (s *store) Waiting() int { return int(s.waiting) }

// lock takes the head out of the waiting ones.
func (s *store) lock() (Slot, olaf.Size, bool) {
	if s.waiting == 0 || s.leaving >= 0 {
		return NoSlot, 0, false
	}
	head := s.head
	s.leaving = head
	s.head = s.wrap(head + 1)
	s.waiting--
	s.stats.Locked++
	return Slot(head), s.places[head].update.Size(), true
}

func (s *store) View(slot Slot, f *Frame) {
	p := &s.places[slot]
	f.Update, f.AppendedAt = p.update, p.appended
	f.Lanes, f.Contributors = nil, nil
	if s.stride > 0 {
		f.Lanes = s.lanesOf(slot, &p.update)
	}
	if s.cfg.Provenance {
		s.inside = s.log.list(p, s.inside[:0])
		f.Contributors = s.inside
	}
}

func (s *store) Release(slot Slot) {
	if slot == NoSlot || int32(slot) != s.leaving {
		panic(notLeaving(slot))
	}
	p := &s.places[slot]
	s.stats.Released++
	s.stats.SumReleased += uint64(p.update.Count)
	s.leaving = int32(NoSlot)
	if s.cfg.Provenance {
		s.log.drop(p)
	}
}

// notLeaving is apart so that Release stays small.
func notLeaving(slot Slot) string {
	return fmt.Sprintf("engine: slot %d is released but not leaving", slot)
}

func (s *store) Flush() {
	frames, updates := s.QueuedCount()
	s.stats.Flushed += frames
	s.stats.SumFlushed += updates
	s.empty()
}

func (s *store) Reset() {
	s.empty()
	s.stats = Stats{}
}

// empty forgets everything inside; its cost is that of what is inside.
func (s *store) empty() {
	s.Queued(func(slot Slot, _ bool) bool {
		p := &s.places[slot]
		s.clusters[p.update.Cluster] = 0
		p.first, p.last = 0, 0
		return true
	})
	s.log.reset()
	s.head, s.waiting, s.leaving = 0, 0, int32(NoSlot)
}

func (s *store) Queued(visit func(slot Slot, locked bool) bool) {
	if s.leaving >= 0 && !visit(Slot(s.leaving), true) {
		return
	}
	for k := range s.waiting {
		if !visit(Slot(s.wrap(s.head+k)), false) {
			return
		}
	}
}

func (s *store) QueuedCount() (frames, updates uint64) {
	s.Queued(func(slot Slot, _ bool) bool {
		frames++
		updates += uint64(s.places[slot].update.Count)
		return true
	})
	return frames, updates
}

func (s *store) Occupancy() int { return int(s.occupied()) }
func (s *store) Stats() Stats   { return s.stats }
