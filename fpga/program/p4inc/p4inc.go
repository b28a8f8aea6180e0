// Package p4inc implements the switch program of P4INC-AOI (Xie et al., §VI-B). It is an array of aggregators that is
// partitioned among jobs. Workers choose the aggregator of each packet. The switch adds packets of the aggregator's
// current fragment and answers packets of other fragments with a congestion mark. It sends a complete sum to all
// workers and keeps it until the aggregator's next sum, for workers that lost it. There is no parameter server.
// docs/papers/p4inc.md lists which rules are published and which are ours.
package p4inc

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// profile is the name of the only profile. It follows the paper, with our choices where the paper does not specify a
// rule.
const profile = "paper"

const (
	// Lanes is the default number of values per packet. The paper does not specify one; 64 is the number in SwitchML's
	// smaller build.
	Lanes = 64
	// DefaultSlots is the default number of aggregators.
	DefaultSlots = 8192
	// MaxSlots is the number of aggregators that a 16-bit index can address. MaxMembers is the number of bits in a
	// bitmap.
	MaxSlots   = 1 << 16
	MaxMembers = 32
)

// Collided is the action code of the control packet that signals congestion. The packet's Seg is the fragment to send
// again.
const Collided uint8 = 1

// Classes of arriving packets.
const (
	Forwarded  program.Class = iota // from a job that the switch does not aggregate
	Consumed                        // added; the aggregator is still incomplete
	Completed                       // added; the aggregator is complete and the sum went to all workers
	Asynchron                       // for a later fragment than the aggregator's: dropped, and the sender was notified
	Duplicate                       // already in an incomplete aggregator
	Answered                        // for the last completed fragment: its sum was sent to the sender again
	Stale                           // for a fragment before the last completed one
	Mismatched                      // length differs from the aggregator's
	OutOfRange                      // outside of the job's segment
	Stranger                        // from a port without a member
	classes
)

// aggregator is one slot in the table. It includes a shadow copy of its last sum.
type aggregator struct {
	bitmap      uint32 // contributors; 0 means that the aggregator is empty
	lanes       uint16
	seg         uint64
	since       olaf.Time
	trace       program.Trace
	hasShadow   bool // the sum has a shadow copy
	shadowSeg   uint64
	shadowLen   uint16
	shadowTrace program.Trace
}

// Switch is the table of aggregators in one switch. It implements program.Program.
type Switch struct {
	program.Tally
	cfg   program.Config
	jobs  program.Tenants
	slots []aggregator
	lanes []uint32 // LaneMemory each for the sum and the shadow copy
	out   program.Packet
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "P4INC", Profiles: []string{profile},
	Slots: MaxSlots, Reach: "an index of 16 bits reaches", Default: DefaultSlots, Places: "aggregators",
	Unwrapped: "P4INC's workers choose aggregators themselves",
}

// New returns a table without jobs. If cfg.Slots is 0, it has DefaultSlots aggregators. The error matches
// program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.FillConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{Tally: program.NewTally(classes, 0), cfg: cfg, slots: make([]aggregator, cfg.Slots),
		lanes: make([]uint32, 2*cfg.Slots*cfg.LaneMemory)}, nil
}

// Configure adds a job and assigns its segment of the table. Segments must not overlap, and all workers of a job must
// be connected to this switch (§VI-A).
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

// Remove removes a job and frees its aggregators.
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

// Reset empties the table and sets the counts to 0. Jobs and allocated memory are kept.
func (s *Switch) Reset() {
	clear(s.slots)
	s.ResetCounts()
}

// Slots returns the number of aggregators in the table.
func (s *Switch) Slots() int { return len(s.slots) }

// Memory returns the size of the table. Each aggregator has its values, their shadow copy, a bitmap, and two fragment
// numbers of 4 bytes.
func (s *Switch) Memory() olaf.Size {
	lanes := cmp.Or(s.cfg.Lanes, Lanes)
	return olaf.Size(len(s.slots) * (2*olaf.LaneBytes*lanes + 3*4))
}

// Slot returns the contents of aggregator i.
func (s *Switch) Slot(i int) program.Slot {
	t := &s.slots[i]
	if t.bitmap == 0 {
		return program.Slot{}
	}
	return program.Slot{
		Occupied: true, Job: s.ownerOf(i), Seg: t.seg, Bitmap: uint64(t.bitmap), Count: bits.OnesCount32(t.bitmap),
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

// buffer returns the lanes that an aggregator uses, or those of its shadow copy if shadow is 1. It returns nil if the
// switch does not store lanes.
func (s *Switch) buffer(i, shadow int, lanes uint16) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[(2*i+shadow)*n:][:min(n, int(lanes))]
}
