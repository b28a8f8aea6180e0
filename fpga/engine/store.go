package engine

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
)

// place is one slot of the queue, with an update and its state. It fills one cache line.
type place struct {
	update   olaf.Update
	appended olaf.Time
	first    int32 // provenance: nodes of the oldest and the newest contributor
	last     int32
	// owner is R[u]: the worker of the update, or -1 if the flag is not set. R[u] is meaningful only while u has a
	// waiting update, so it is stored here.
	owner int32
	_     [12]byte
}

// store contains the data shared by the disciplines: slots, departure order, lanes, provenance and counters. Updates
// enter at the tail, keep their position, and leave at the head one at a time. Therefore the departure ring can contain
// the updates themselves. The number of a slot is its position in the ring, and no list of free slots is needed.
type store struct {
	cfg      Config
	places   []place
	clusters []int32 // state of the discipline per cluster; 0 if the cluster has no update
	lanes    []int32 // stride lanes per slot
	stride   int
	carries  bool // gradients or provenance are stored
	log      provenance
	inside   []olaf.Contributor // buffer for View

	head    int32 // position of the next frame to leave
	waiting int32 // number of frames from head on
	leaving int32 // position of the locked frame, or NoSlot
	holds   int32 // slots occupied by a frame on the wire: 1, or 0 with FreeSlotOnStart
	stats   Stats
}

// laneBlock is the number of lanes per cache line. The memory of each slot is a multiple of it.
const laneBlock = 64 / olaf.LaneBytes

func newStore(cfg Config) store {
	physical, holds := cfg.Slots, int32(1)
	if cfg.FreeSlotOnStart {
		physical++ // the frame on the wire occupies room but is not counted
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
		log:      provenance{nodes: make([]node, 1)},
		holds:    holds,
		leaving:  int32(NoSlot),
	}
}

// appendUpdate adds u after the last waiting update and returns its slot, or NoSlot if there is no room. It does not
// store gradients and provenance; moveLanes does.
func (s *store) appendUpdate(now olaf.Time, u *olaf.Update) Slot {
	occupied := s.countOccupied()
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

// isLeaving reports whether the frame on the wire belongs to u's cluster.
func (s *store) isLeaving(u *olaf.Update) bool {
	return s.leaving >= 0 && s.places[s.leaving].update.Cluster == u.Cluster
}

// moveLanes stores or merges the gradients and contributors of u, after the decision on u.
func (s *store) moveLanes(o Outcome, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
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
			s.stats.LaneSaturations += adder.AddSaturating(mine, lanes)
		}
	case lanes == nil:
		clear(mine)
	default:
		copy(mine, lanes)
	}
}

// lanesOf returns the gradient memory of slot i, limited to the lanes in u's frame.
func (s *store) lanesOf(i Slot, u *olaf.Update) []int32 {
	at := int(i) * s.stride
	return s.lanes[at : at+min(int(u.Lanes), s.cfg.LaneMemory)]
}

// wrap returns the ring position for i, which may be past the end by at most one round.
func (s *store) wrap(i int32) int32 {
	if i >= int32(len(s.places)) {
		i -= int32(len(s.places))
	}
	return i
}

// countOccupied returns the number of slots in use. It includes the slot of the frame on the wire, if there is one,
// without a branch: leaving is -1 if there is no such frame, so that the mask is all ones.
func (s *store) countOccupied() int32 { return s.waiting + s.holds&^(s.leaving>>31) }

// isZero returns 1 if n is 0, else 0, without a branch. Clusters arrive in random order, so a branch would be
// mispredicted half of the time.
func isZero(n int32) (one int) {
	if n == 0 {
		one = 1
	}
	return one
}

func (s *store) Waiting() int { return int(s.waiting) }

// lock removes the frame at the head of the waiting frames, because it is about to be sent, and returns its slot and
// size.
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

// notLeaving returns the panic message for Release. It is a separate function to keep Release small.
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

// empty removes all frames. Its cost is proportional to the number of frames.
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

func (s *store) Occupancy() int { return int(s.countOccupied()) }
func (s *store) Stats() Stats   { return s.stats }
