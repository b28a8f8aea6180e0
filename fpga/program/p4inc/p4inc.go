// Package p4inc is P4INC-AOI's switch program (Xie et al., §VI-B): an array of aggregators of which every job has a segment.
// Workers choose the aggregator of a packet; the switch adds what is of the fragment that it holds, answers what is of another
// with a mark of congestion, sends the sum to all workers once all are inside, and keeps it until the next sum of the
// aggregator, for workers that lost it. No parameter server takes part.
//
// docs/papers/p4inc.md tells apart what is published and what is decided here.
package p4inc

import (
	"fmt"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Profile is the only one: what the paper describes, with our answers to what it leaves open.
const Profile = "paper"

const (
	// Lanes is how many values a packet carries where nobody says otherwise: the paper prints no number; 64 stages' worth is
	// what SwitchML's smaller build has.
	Lanes = 64
	// DefaultSlots is how many aggregators there are.
	DefaultSlots = 8192
	// MaxSlots is what an index of 16 bits reaches, MaxMembers the bits of a bitmap.
	MaxSlots   = 1 << 16
	MaxMembers = 32
)

// Collided is the action of the control packet that marks congestion; its Seg is the fragment that has to be sent again.
const Collided uint8 = 1

// What becomes of an arriving packet.
const (
	Forwarded  program.Class = iota // of no job that the switch aggregates for
	Consumed                        // added, the aggregator waits for more
	Completed                       // added, and all are inside: the sum went to all workers
	Asynchron                       // of another fragment than the aggregator holds: dropped, the sender was told
	Duplicate                       // inside an aggregator that waits
	Answered                        // of the fragment that was completed last: its sum went to the sender again
	Stale                           // of a fragment before that
	Mismatched                      // of another length than what the aggregator holds
	OutOfRange                      // of an aggregator outside the job's segment
	Stranger                        // from a port that is no member's
	classes
)

// aggregator is one place of the table, with the shadow copy of its last sum.
type aggregator struct {
	bitmap   uint32 // who is inside; 0 is nobody
	lanes    uint16
	seg      uint64
	since    olaf.Time
	trace    program.Trace
	kept     bool // there is a shadow copy
	keptSeg  uint64
	keptLen  uint16
	keptMark program.Trace
}

// Switch is one switch's table. It implements program.Program.
type Switch struct {
	cfg    program.Config
	jobs   program.Tenants
	slots  []aggregator
	lanes  []uint32 // LaneMemory each, of the sum and of the shadow copy
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

// New builds a table. Slots 0 is DefaultSlots. The error matches program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.Fill(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{cfg: cfg, slots: make([]aggregator, cfg.Slots), lanes: make([]uint32, 2*cfg.Slots*cfg.LaneMemory)},
		nil
}

// Configure gives a job its segment. Segments do not overlap, and all of a job's workers hang on this switch (§VI-A).
func (s *Switch) Configure(j program.Job) error {
	if j.Parent || j.Level > 0 {
		return fmt.Errorf("%w: P4INC aggregates on one switch alone, that of all workers of a job", program.ErrConfig)
	}
	rule := program.Division{Slots: len(s.slots), Members: MaxMembers, Places: "aggregators", Children: "workers",
		Sum: "a sum"}
	k, err := rule.Admit(j, s.jobs)
	if err != nil {
		return err
	}
	s.Remove(j.ID)
	s.jobs.Put(k)
	return nil
}

// Remove ends a job and frees what it held.
func (s *Switch) Remove(id olaf.ClusterID) {
	k := s.jobs.Of(id)
	if k == nil {
		return
	}
	for i := k.Base; i < k.Base+k.Slots; i++ {
		t := &s.slots[i]
		if t.bitmap != 0 {
			s.clear(t)
		}
		*t = aggregator{}
	}
	s.jobs[id] = nil
}

// Reset empties the table and the counts and keeps jobs and memory.
func (s *Switch) Reset() {
	clear(s.slots)
	s.counts, s.used = [counters]uint64{}, 0
}

// Slots is the length of the table.
func (s *Switch) Slots() int { return len(s.slots) }

// Occupied is how many aggregators wait for packets.
func (s *Switch) Occupied() int { return s.used }

// Counts are the values of the ledger that Describe declares.
func (s *Switch) Counts() []uint64 { return s.counts[:] }

// Memory is, of each aggregator, values and their shadow, a bitmap and two fragment numbers of 4 bytes.
func (s *Switch) Memory() olaf.Size {
	lanes := s.cfg.Lanes
	if lanes == 0 {
		lanes = Lanes
	}
	return olaf.Size(len(s.slots) * (2*olaf.LaneBytes*lanes + 3*4))
}

// Slot views aggregator i.
func (s *Switch) Slot(i int) program.Slot {
	t := &s.slots[i]
	if t.bitmap == 0 {
		return program.Slot{}
	}
	return program.Slot{
		Held: true, Job: s.owner(i), Seg: t.seg, Bitmap: uint64(t.bitmap), Count: bits.OnesCount32(t.bitmap),
		Since: t.since, Trace: t.trace,
		Lanes: s.buffer(i, 0, t.lanes),
	}
}

// owner is the job whose segment aggregator i is in.
func (s *Switch) owner(i int) olaf.ClusterID {
	if k := s.jobs.Holding(i); k != nil {
		return k.ID
	}
	return 0
}

// buffer is the lanes of an aggregator or, as 1, of its shadow, as many as are in use; nil of a switch that stores none.
func (s *Switch) buffer(i, shadow int, lanes uint16) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[(2*i+shadow)*n:][:min(n, int(lanes))]
}
