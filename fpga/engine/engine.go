// Package engine implements the queue disciplines of the data path, fifo and olaf, as pure algorithms over abstract
// time. docs/reference/semantics.md is normative for this package, the twin, the simulator and the RTL. A Discipline
// decides what happens to an arriving update and in which order frames leave. A Port adds the output serializer. The
// package has no registers, goroutines, clocks or files, and updates cause no allocation.
package engine

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// ErrConfig is matched by errors about invalid configurations.
var ErrConfig = olaf.NewError(olaf.Usage, "engine: bad configuration")

// Class is the decision on an arriving update. Every arrival has exactly one class (docs/reference/semantics.md,
// Enqueue).
type Class uint8

const (
	Appended Class = iota
	Aggregated
	Replaced
	ReplacedReward
	DroppedFull
	DroppedReward
	DroppedMismatch
	// Classes is the number of values of Class.
	Classes
)

var classNames = [Classes]string{"appended", "aggregated", "replaced", "replaced_reward", "dropped_full",
	"dropped_reward", "dropped_mismatch"}

// String returns the class's name, as used in reports and golden vectors.
func (c Class) String() string {
	if c < Classes {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// Outcome is the result of offering an update to a discipline. It is used for accounting and by the output.
type Outcome struct {
	Slot   Slot  // slot of the update; NoSlot if the update was dropped
	Class  Class // class for accounting
	Ready  bool  // a frame became ready to leave, so an idle output must start
	Merged bool  // the update was merged into a waiting frame, which costs the output engine cycles
}

// Config configures a discipline. The zero value of an option turns it off.
type Config struct {
	Slots    int // capacity in updates, 1 … MaxSlots
	Clusters int // cluster ids run from 0 to Clusters-1, at most 65,536
	// LaneMemory is the number of gradient lanes stored and merged per slot, at most olaf.MaxLanes. With 0, the engine
	// decides without moving gradients, which is sufficient for metrics.
	LaneMemory int
	// FreeSlotOnStart frees a slot as soon as its frame starts to leave, as ns-3's drop-tail queue does, instead of
	// when its last bit has left (slot_held_during_tx = false).
	FreeSlotOnStart bool
	RewardFilter    bool
	RewardThreshold int32 // θ in Q24.8, not negative
	Provenance      bool  // log the contributors of every waiting update
}

// Limits of Config.
const (
	MaxSlots    = 1 << 16 // limit of Config.Slots
	MaxClusters = 1 << 16 // limit of Config.Clusters: the range of a ClusterID
)

// Stats contains the counts since the discipline was created or reset. Updates are counted by class when they arrive,
// and frames when they leave.
type Stats struct {
	// Offered counts arrivals on entry. It is independent of Class, to check that every arrival has a class.
	Offered uint64
	Class   [Classes]uint64
	// SumAccepted is Σ count over arrivals that were appended, were aggregated, or replaced another update. Updates
	// straight from workers have count 1.
	SumAccepted uint64
	Locked      uint64 // frames that have started to leave
	Released    uint64 // frames whose last bit has left ("delivered_frames")
	Flushed     uint64 // frames discarded by Flush
	SumReleased uint64 // Σ count over released frames
	SumFlushed  uint64 // Σ count over flushed frames
	// SumDiscarded is Σ count over updates removed from their slot by a replacement of either kind.
	SumDiscarded    uint64
	LaneSaturations uint64
	RewardSaturations,
	CountSaturations uint64
	LockedCollisions uint64 // arrivals whose cluster had an update on the wire but none waiting (paper §12.1)
	PeakOccupancy    int
}

// In returns the number of arrivals.
func (s *Stats) In() uint64 {
	var n uint64
	for _, c := range s.Class {
		n += c
	}
	return n
}

// Slot is the number of a position in the queue. An update keeps its slot from its append until Release.
type Slot int32

// NoSlot is returned as the slot of a dropped arrival.
const NoSlot Slot = -1

// Frame is a view of the frame in one slot. Lanes is valid until the slot is released or another arrival is merged into
// it; a locked slot never changes. Contributors is valid until the next call of View.
type Frame struct {
	Update     olaf.Update
	AppendedAt olaf.Time // time when the slot was filled; kept by merges and replacements
	Lanes      []int32   // the first Config.LaneMemory gradients; nil without lane memory
	// Contributors lists the contributors, oldest first; nil without provenance.
	Contributors []olaf.Contributor
}

// Discipline is a queue discipline, with the frames that wait for a port. It is not safe for concurrent use. The same
// calls always have the same results.
type Discipline interface {
	// Offer presents u, which arrives at now, with its gradients, and returns the outcome. inside lists the
	// contributors of an update merged by an earlier hop, oldest first, for the provenance log; nil means that u is the
	// only contributor. The arguments are not retained. u.Cluster must be below Config.Clusters, u.Count at least 1,
	// u.GenNS below olaf.GenModulus, and lanes must be nil (zeros) or u.Lanes long.
	Offer(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) Outcome

	// Lock removes the next frame to leave from the waiting frames and returns its slot and its size on the wire.
	// Nothing merges into the frame any more, and its cluster has no waiting update. ok is false if no frame waits or
	// another frame is still leaving.
	Lock() (s Slot, size olaf.Size, ok bool)
	// Release frees the locked slot after its last bit has left. It panics if the slot is not leaving.
	Release(s Slot)
	// Flush discards all frames, waiting or locked, and counts them as flushed.
	Flush()
	// Reset empties the discipline without counting and clears its counters. It keeps the memory.
	Reset()

	// View fills f with the frame in a waiting or locked slot.
	View(s Slot, f *Frame)
	// Waiting returns the number of waiting frames, without the frame that is leaving.
	Waiting() int
	// Occupancy returns the number of slots in use, without the frame on the wire if FreeSlotOnStart is set.
	// ActiveClusters returns the number of clusters with a waiting or leaving update.
	Occupancy() int
	ActiveClusters() int
	// Queued calls visit for every queued update in departure order, beginning with a locked head, until visit returns
	// false.
	Queued(visit func(s Slot, locked bool) bool)
	// QueuedCount returns the number of frames, waiting or leaving, and Σ count over them, for the accounting
	// identities.
	QueuedCount() (frames, updates uint64)
	Stats() Stats
}
