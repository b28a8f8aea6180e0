// Package engine holds the queue disciplines of the data path as pure algorithms over abstract time: fifo and olaf.
//
// docs/reference/semantics.md is normative; this package, the twin, the simulator and the RTL obey the same page. A Discipline
// decides what becomes of an arriving update and in which order frames leave; a Port puts the output serialiser behind
// it. There are no registers, goroutines, clocks or files here, and nothing allocates per update.
package engine

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// ErrConfig is the kind of every refused configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "engine: bad configuration")

// Class is what became of an arriving update; every arrival is in exactly one class (docs/reference/semantics.md, Enqueue).
type Class uint8

const (
	Appended Class = iota
	Aggregated
	Replaced
	ReplacedReward
	DroppedFull
	DroppedReward
	DroppedMismatch
	// Classes is how many there are.
	Classes
)

var classNames = [Classes]string{"appended", "aggregated", "replaced", "replaced_reward", "dropped_full",
	"dropped_reward", "dropped_mismatch"}

// String is the name the class has in reports and golden vectors.
func (c Class) String() string {
	if c < Classes {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// Outcome is what an arrival means to those who count it and to the output that its frame waits for.
type Outcome struct {
	Slot   Slot  // where the update landed; NoSlot when it was dropped
	Class  Class // for the accounts
	Ready  bool  // a frame can leave that could not before, so an idle output has to start
	Merged bool  // it met a frame that waits, which costs the output engine cycles
}

// Config shapes a discipline. The zero value of an option is its off state.
type Config struct {
	Slots    int // updates the queue holds, 1 … MaxSlots
	Clusters int // cluster ids run from 0 to Clusters-1, at most 65,536
	// LaneMemory is how many gradient lanes a slot stores and merges; 0 decides without moving gradients, which is what
	// metrics need. At most olaf.MaxLanes.
	LaneMemory int
	// FreeSlotOnStart frees a slot the moment its frame starts to leave, as ns-3's drop-tail queue does, instead of when
	// its last bit has left (slot_held_during_tx = false).
	FreeSlotOnStart bool
	RewardFilter    bool
	RewardThreshold int32 // θ in Q24.8, not negative
	Provenance      bool  // log who is inside every waiting update
}

// Limits of Config.
const (
	MaxSlots    = 1 << 16 // of Config.Slots
	MaxClusters = 1 << 16 // of Config.Clusters: all that a ClusterID names
)

// Stats counts since the discipline was made or reset. Updates are counted once by class, frames once when they leave.
type Stats struct {
	Offered     uint64 // arrivals, counted on entry and apart from Class, so that "every arrival has a class" can be checked
	Class       [Classes]uint64
	SumAccepted uint64 // Σ count over arrivals that were appended, aggregated or took a slot; each is 1 straight from workers
	Locked      uint64 // frames that started to leave
	Released    uint64 // frames whose last bit left ("delivered_frames")
	Flushed     uint64 // frames discarded by Flush
	SumReleased uint64 // Σ count over released frames
	SumFlushed  uint64 // Σ count over flushed frames
	// SumDiscarded is Σ count over updates that a replacement of either kind took out of their slot.
	SumDiscarded    uint64
	LaneSaturations uint64
	RewardSaturations,
	CountSaturations uint64
	LockedCollisions uint64 // arrivals whose cluster had an update leaving and none waiting (paper §12.1)
	PeakOccupancy    int
}

// In is how many updates arrived.
func (s *Stats) In() uint64 {
	var n uint64
	for _, c := range s.Class {
		n += c
	}
	return n
}

// Slot names a place in the queue. An update keeps its slot from append to Release.
type Slot int32

// NoSlot is where a dropped arrival landed.
const NoSlot Slot = -1

// Frame is a view of one slot. Lanes is valid until the slot is released or another arrival merges into it; a locked slot
// never changes. Contributors is valid until the next call of View.
type Frame struct {
	Update     olaf.Update
	AppendedAt olaf.Time // when the slot was filled; merges and replacements keep it
	Lanes      []int32   // the first Config.LaneMemory gradients; nil without lane memory
	// Contributors lists who is inside, oldest first; nil without provenance.
	Contributors []olaf.Contributor
}

// Discipline is what a port does with the frames that wait for it. It is not safe for concurrent use, and the same calls
// always give the same results.
type Discipline interface {
	// Offer presents u, which arrives at now, with its gradients, and says what became of it. inside lists the
	// contributors of an update that an earlier hop merged, oldest first, for the provenance log; nil stands for u itself.
	// Nothing is kept of the arguments. u.Cluster must be below Config.Clusters, u.Count at least 1, u.GenNS below
	// olaf.GenModulus, and lanes nil, which counts as zeros, or u.Lanes long.
	Offer(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome

	// Lock takes the head of the departure order, which is size long on the wire. From now on nothing merges into it; its
	// cluster has no waiting update. It is refused while nothing waits or another frame is still leaving.
	Lock() (s Slot, size olaf.Size, ok bool)
	// Release says that the locked slot's last bit has left. It panics for a slot that is not leaving.
	Release(s Slot)
	// Flush discards everything inside, waiting or locked, and counts it as flushed.
	Flush()
	// Reset empties the discipline and its counters without counting anything, and keeps its memory.
	Reset()

	// View shows a waiting or locked slot in f.
	View(s Slot, f *Frame)
	// Waiting is how many frames wait to leave; one that is leaving does not count.
	Waiting() int
	// Occupancy is the number of slots in use, which with FreeSlotOnStart leaves out the frame on the wire. ActiveClusters
	// is how many clusters have an update inside, waiting or leaving.
	Occupancy() int
	ActiveClusters() int
	// Queued calls visit for every update inside, in departure order, the locked head first, until it returns false.
	Queued(visit func(s Slot, locked bool) bool)
	// QueuedCount is how many frames are inside, waiting or leaving, and Σ count over them, for the accounting identities.
	QueuedCount() (frames, updates uint64)
	Stats() Stats
}
