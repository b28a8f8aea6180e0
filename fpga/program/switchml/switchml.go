// Package switchml is SwitchML's pool of slots as a switch program (Sapio et al., NSDI 2021; the rules are those of its
// released P4): a worker chooses slot and set, the first packet of a set overwrites, the last one is answered with the sum
// to all, and a repeat of what is complete is answered to its sender alone. Two sets a slot are enough as long as no packet
// outlives its set's next use.
//
// docs/papers/switchml.md tells apart what the released code does and what is decided here.
package switchml

import (
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// MaxMembers is how many bits a bitmap has, DefaultSlots what the released program is built with, and MaxSlots what its
// index of 14 bits reaches.
const (
	MaxMembers   = 32
	DefaultSlots = 8192
	MaxSlots     = 1 << 14
)

// Lanes of the two packet sizes that the released program is built for.
const (
	Lanes256  = 64
	Lanes1024 = 256
)

// What becomes of an arriving packet.
const (
	Forwarded  program.Class = iota // no SwitchML packet
	Consumed                        // added, or the first of its set
	Completed                       // the last one: the sum left
	Relayed                         // a result from the parent, passed down
	Answered                        // inside a set that is complete: its result goes to the sender
	Duplicate                       // inside already, and the set is not complete
	Mismatched                      // of another length than what the set holds
	OutOfRange                      // of a slot that the job does not have
	Stranger                        // of a job or a port that is no member
	classes
)

// set is one of the two uses of a slot.
type set struct {
	bitmap uint32 // who is inside, or was when it completed
	count  uint8  // packets that are still missing; 0 is none yet, or none any more
	lanes  uint16
	final  bool // the sum is the job's, not only a part that went to the parent
	since  olaf.Time
	value  uint64 // exponents, the larger of each
	trace  program.Trace
}

// Switch is one switch's pool. It implements program.Program.
type Switch struct {
	cfg    program.Config
	jobs   program.Tenants
	sets   [][2]set // by slot
	lanes  []uint32 // LaneMemory a set
	counts [counters]uint64
	used   int // sets that wait for packets
	out    program.Packet
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "SwitchML", Profiles: []string{Profile},
	Slots: MaxSlots, Default: DefaultSlots, Places: "slots",
	Unwrapped: "SwitchML's workers choose slots themselves",
}

// New builds a pool without jobs. Slots 0 is DefaultSlots. The error matches program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.Fill(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{cfg: cfg, sets: make([][2]set, cfg.Slots), lanes: make([]uint32, 2*cfg.Slots*cfg.LaneMemory)}, nil
}

// Configure admits a job: its members' bits are their places. Its slots are its own; indices in packets are the switch's.
func (s *Switch) Configure(j program.Job) error {
	rule := program.Division{Slots: len(s.sets), Members: MaxMembers, Places: "slots", Children: "workers",
		Sum: "a set"}
	k, err := rule.Admit(j, s.jobs)
	if err != nil {
		return err
	}
	s.Remove(j.ID)
	s.jobs.Put(k)
	return nil
}

// Remove ends a job and forgets what its slots hold.
func (s *Switch) Remove(id olaf.ClusterID) {
	k := s.jobs.Of(id)
	if k == nil {
		return
	}
	for i := k.Base; i < k.Base+k.Slots; i++ {
		for v := range s.sets[i] {
			s.discard(&s.sets[i][v])
			s.sets[i][v] = set{}
		}
	}
	s.jobs[id] = nil
}

// discard takes what waits in a set out of the account.
func (s *Switch) discard(t *set) {
	if t.count > 0 {
		s.counts[vectorsCleared] += uint64(t.trace.Vectors)
		s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
		s.used--
	}
}

// Reset empties the table and the counts and keeps jobs and memory.
func (s *Switch) Reset() {
	clear(s.sets)
	s.counts, s.used = [counters]uint64{}, 0
}

// Slots is the length of the pool; a slot has two sets.
func (s *Switch) Slots() int { return len(s.sets) }

// Occupied is how many slots have a set that waits for packets.
func (s *Switch) Occupied() int { return s.used }

// Counts are the values of the ledger that Describe declares.
func (s *Switch) Counts() []uint64 { return s.counts[:] }

// Memory is, of each of the two sets of a slot, a bitmap, a counter, two exponents and the lanes that it is built for.
func (s *Switch) Memory() olaf.Size {
	lanes := s.cfg.Lanes
	if lanes == 0 {
		lanes = Lanes256
	}
	return olaf.Size(len(s.sets) * 2 * (4 + 1 + 2 + olaf.LaneBytes*lanes))
}

// Slot views place i: of its sets the one that waits, else the first.
func (s *Switch) Slot(i int) program.Slot {
	v := 0
	if s.sets[i][0].count == 0 && s.sets[i][1].count > 0 {
		v = 1
	}
	t := &s.sets[i][v]
	view := program.Slot{Held: t.count > 0, Seg: uint64(i), Bitmap: uint64(t.bitmap), Count: bits.OnesCount32(t.bitmap),
		Since: t.since, Trace: t.trace}
	if k := s.jobs.Holding(i); k != nil {
		view.Job = k.ID
	}
	view.Lanes = s.buffer(i, v)
	return view
}

// buffer is the lanes of a set, as many as it has in use; nil of a switch that stores none.
func (s *Switch) buffer(i, v int) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[(2*i+v)*n:][:min(n, int(s.sets[i][v].lanes))]
}
