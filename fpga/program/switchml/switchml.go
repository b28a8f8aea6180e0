// Package switchml implements SwitchML's pool of slots as a switch program, following the released P4 program (Sapio et
// al., NSDI 2021). A worker chooses the slot and the set of each packet. The first packet of a set overwrites the set,
// and the last one sends the sum to all workers. If a packet for a complete set is repeated, the sum is sent again, but
// only to its sender. Two sets per slot are enough as long as no packet is delayed until its set is used again.
// docs/papers/switchml.md lists which rules are from the released code and which are ours.
package switchml

import (
	"cmp"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// maxMembers is the number of bits in a bitmap, defaultSlots the table size in the released build, and maxSlots the
// number of values of its 14-bit index.
const (
	maxMembers   = 32
	defaultSlots = 8192
	maxSlots     = 1 << 14
)

// Numbers of lanes in the two packet sizes of the released builds.
const (
	Lanes256  = 64
	Lanes1024 = 256
)

// Classes of arriving packets.
const (
	forwarded  program.Class = iota // not a SwitchML packet
	consumed                        // added, or the first packet of its set
	completed                       // the last packet of its set: the sum has left
	relayed                         // a result from the parent, passed on to the members
	answered                        // already in a complete set: the result was sent to the sender
	duplicate                       // already in an incomplete set
	mismatched                      // length differs from the set's
	outOfRange                      // for a slot that the job does not have
	stranger                        // from a job or a port that is not a member
	classes
)

// set is one of the two sets in a slot. Each set contains a sum.
type set struct {
	bitmap uint32 // contributors, kept after completion
	count  uint8  // number of missing packets; 0 before the first and after the last
	lanes  uint16
	final  bool // the sum is the job's, not a partial sum sent to the parent
	since  olaf.Time
	value  uint64 // exponents; each is the maximum of those received
	trace  program.Trace
}

// Switch is the pool of slots in one switch. It implements program.Program.
type Switch struct {
	program.Tally
	cfg   program.Config
	jobs  program.Tenants
	sets  [][2]set // by slot
	lanes []uint32 // LaneMemory per set
	out   program.Packet
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "SwitchML", Profiles: []string{profile},
	Slots: maxSlots, Default: defaultSlots, Places: "slots",
	Unwrapped: "SwitchML's workers choose slots themselves",
}

// New returns a pool without jobs. If cfg.Slots is 0, it has defaultSlots slots. The error matches program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.FillConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{Tally: program.NewTally(classes, 0), cfg: cfg, sets: make([][2]set, cfg.Slots),
		lanes: make([]uint32, 2*cfg.Slots*cfg.LaneMemory)}, nil
}

// Configure adds a job, whose members are numbered by their index. Its slots are not shared with other jobs. The
// indexes in packets are relative to the whole pool, not to the job.
func (s *Switch) Configure(j program.Job) error {
	rule := program.Division{Slots: len(s.sets), Members: maxMembers, Places: "slots", Children: "workers",
		Sum: "a set"}
	k, err := rule.AdmitJob(j, s.jobs)
	if err != nil {
		return err
	}
	s.Remove(j.ID)
	s.jobs.Put(k)
	return nil
}

// Remove removes a job and clears its slots.
func (s *Switch) Remove(id olaf.ClusterID) {
	k := s.jobs.Find(id)
	if k == nil {
		return
	}
	for i := k.Base; i < k.Base+k.Slots; i++ {
		for v := range s.sets[i] {
			s.discardSet(&s.sets[i][v])
			s.sets[i][v] = set{}
		}
	}
	s.jobs[id] = nil
}

// discardSet counts the contributions in an incomplete set as cleared.
func (s *Switch) discardSet(t *set) {
	if t.count > 0 {
		s.CountCleared(t.trace.Vectors)
		s.Used--
	}
}

// Reset empties the pool and sets the counts to 0. Jobs and allocated memory are kept.
func (s *Switch) Reset() {
	clear(s.sets)
	s.ResetCounts()
}

// Slots returns the number of slots in the pool. Each slot has two sets.
func (s *Switch) Slots() int { return len(s.sets) }

// Memory returns the size of the pool. Each slot has two sets, with a bitmap, a counter, two exponents and the lanes
// for which the slot is built.
func (s *Switch) Memory() olaf.Size {
	lanes := cmp.Or(s.cfg.Lanes, Lanes256)
	return olaf.Size(len(s.sets) * 2 * (4 + 1 + 2 + olaf.LaneBytes*lanes))
}

// Slot returns the contents of slot i, from its incomplete set if there is one and otherwise from the first set.
func (s *Switch) Slot(i int) program.Slot {
	v := 0
	if s.sets[i][0].count == 0 && s.sets[i][1].count > 0 {
		v = 1
	}
	t := &s.sets[i][v]
	view := program.Slot{Occupied: t.count > 0, Seg: uint64(i), Bitmap: uint64(t.bitmap), Count: bits.OnesCount32(t.bitmap),
		Since: t.since, Trace: t.trace}
	if k := s.jobs.OwnerOf(i); k != nil {
		view.Job = k.ID
	}
	view.Lanes = s.buffer(i, v)
	return view
}

// buffer returns the lanes that a set uses, or nil if the switch does not store lanes.
func (s *Switch) buffer(i, v int) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[(2*i+v)*n:][:min(n, int(s.sets[i][v].lanes))]
}
