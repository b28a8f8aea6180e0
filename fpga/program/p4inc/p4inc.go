// Package p4inc implements P4INC-AOI's switch program (Xie et al., §VI-B): an array of aggregators, partitioned among
// jobs. Workers choose the aggregator of a packet. The switch adds packets of the aggregator's current fragment,
// answers packets of other fragments with a congestion mark, sends the sum to all workers when it is complete, and
// keeps it until the aggregator's next sum for workers that lost it. There is no parameter server.
//
// docs/papers/p4inc.md separates the published rules from our decisions.
package p4inc

import (
	"fmt"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Profile is the only profile: the paper's description, with our choices where it is silent.
const Profile = "paper"

const (
	// Lanes is the default number of values per packet. The paper gives none; 64 is that of SwitchML's smaller
	// build.
	Lanes = 64
	// DefaultSlots is the default number of aggregators.
	DefaultSlots = 8192
	// MaxSlots is the range of a 16-bit index, MaxMembers the number of bits in a bitmap.
	MaxSlots   = 1 << 16
	MaxMembers = 32
)

// Collided is the action of the control packet that marks congestion; its Seg is the fragment to send again.
const Collided uint8 = 1

// Classes of arriving packets.
const (
	Forwarded  program.Class = iota // of a job that the switch does not aggregate
	Consumed                        // added, the aggregator is incomplete
	Completed                       // added and complete: the sum went to all workers
	Asynchron                       // of a later fragment than the aggregator's: dropped, the sender was notified
	Duplicate                       // already in an incomplete aggregator
	Answered                        // of the last completed fragment: its sum was sent to the sender again
	Stale                           // of an earlier fragment than that
	Mismatched                      // length differs from the aggregator's
	OutOfRange                      // outside of the job's segment
	Stranger                        // from a port without a member
	classes
)

// aggregator is one slot of the table, with the shadow copy of its last sum.
type aggregator struct {
	bitmap   uint32 // contributors; 0 means empty
	lanes    uint16
	seg      uint64
	since    olaf.Time
	trace    program.Trace
	kept     bool // there is a shadow copy
	keptSeg  uint64
	keptLen  uint16
	keptMark program.Trace
}

// Switch is the table of one switch. It implements program.Program.
type Switch struct {
	cfg    program.Config
	jobs   program.Tenants
	slots  []aggregator
	lanes  []uint32 // LaneMemory each for the sum and the shadow copy
	counts [counters]uint64
	used   int
	out    program.Packet
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "P4INC", Profiles: []string{Profile},
	Slots: MaxSlots, Reach: "an index of 16 bits reaches", Default: DefaultSlots, Places: "aggregators",
	Unwrapped: "P4INC's workers choose aggregators themselves",
}

// New returns a table without jobs. Slots 0 means DefaultSlots. The error matches program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.FillConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{cfg: cfg, slots: make([]aggregator, cfg.Slots), lanes: make([]uint32, 2*cfg.Slots*cfg.LaneMemory)},
		nil
}

// Configure assigns a segment to a job. Segments must not overlap, and all workers of a job are connected to this
// switch (§VI-A).
func (s *Switch) Configure(j program.Job) error {
	if j.Parent || j.Level > 0 {
		return fmt.Errorf("%w: P4INC aggregates on one switch alone, that of all workers of a job", program.ErrConfig)
	}
	rule := program.Division{Slots: len(s.slots), Members: MaxMembers, Places: "aggregators", Children: "workers",
		Sum: "a sum"}
	k, err := rule.AdmitJob(j, s.jobs)
	if err != nil {
		return err
	}
	s.Remove(j.ID)
	s.jobs.Put(k)
	return nil
}

// Remove ends a job and frees its aggregators.
func (s *Switch) Remove(id olaf.ClusterID) {
	k := s.jobs.Find(id)
	if k == nil {
		return
	}
	for i := k.Base; i < k.Base+k.Slots; i++ {
		t := &s.slots[i]
		if t.bitmap != 0 {
			s.clearSum(t)
		}
		*t = aggregator{}
	}
	s.jobs[id] = nil
}

// Reset empties the table, zeroes the counts and keeps jobs and memory.
func (s *Switch) Reset() {
	clear(s.slots)
	s.counts, s.used = [counters]uint64{}, 0
}

// Slots returns the size of the table.
func (s *Switch) Slots() int { return len(s.slots) }

// CountOccupied returns the number of incomplete aggregators.
func (s *Switch) CountOccupied() int { return s.used }

// Counts returns the values of the ledger declared by Describe.
func (s *Switch) Counts() []uint64 { return s.counts[:] }

// Memory returns, per aggregator, values and their shadow, a bitmap and two fragment numbers of 4 bytes.
func (s *Switch) Memory() olaf.Size {
	lanes := s.cfg.Lanes
	if lanes == 0 {
		lanes = Lanes
	}
	return olaf.Size(len(s.slots) * (2*olaf.LaneBytes*lanes + 3*4))
}

// Slot returns a view of aggregator i.
func (s *Switch) Slot(i int) program.Slot {
	t := &s.slots[i]
	if t.bitmap == 0 {
		return program.Slot{}
	}
	return program.Slot{
		Held: true, Job: s.ownerOf(i), Seg: t.seg, Bitmap: uint64(t.bitmap), Count: bits.OnesCount32(t.bitmap),
		Since: t.since, Trace: t.trace,
		Lanes: s.buffer(i, 0, t.lanes),
	}
}

// ownerOf returns the job whose segment contains aggregator i.
func (s *Switch) ownerOf(i int) olaf.ClusterID {
	if k := s.jobs.OwnerOf(i); k != nil {
		return k.ID
	}
	return 0
}

// buffer returns the used lanes of an aggregator or, for shadow 1, of its shadow copy; nil if the switch stores
// none.
func (s *Switch) buffer(i, shadow int, lanes uint16) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[(2*i+shadow)*n:][:min(n, int(lanes))]
}
