// Package atp implements ATP's table of aggregators as a switch program (Lao et al., NSDI 2021). Profile p4ml follows
// the released P4 program. Profile paper follows the paper and has two levels of switches. The sender chooses the
// aggregator of a packet. If another sum uses the aggregator, the packet is forwarded to the parameter server
// unchanged. An aggregator stays in use until the server acknowledges its sum. docs/papers/atp.md lists which rules are
// from the code, which are from the paper and which are ours.
package atp

import (
	"fmt"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Profiles of Config.Profile.
const (
	Released = "p4ml"
	Paper    = "paper"
)

// DefaultSlots is the number of aggregators in the released program, which has two registers of 20,000 cells for each
// of 31 words.
const DefaultSlots = 20_000

// Lanes is the number of values per packet, MaxSlots the number of values of a 16-bit index, and MaxMembers the number
// of bits in a bitmap.
const (
	Lanes      = 62
	MaxSlots   = 1 << 16
	MaxMembers = 32
	MaxFan     = 31 // range of the paper's five bits per level
)

// Classes of arriving packets.
const (
	forwarded  program.Class = iota // passed on unchanged
	consumed                        // added; the aggregator is still incomplete
	completed                       // added; the aggregator is complete and the sum went to the server
	Collided                        // the aggregator belongs to another sum: sent to the server with the collision mark
	duplicate                       // already in an incomplete aggregator
	answered                        // already in a complete aggregator: the sum went to the server again
	flushed                         // a retransmission: the aggregator's content went to the server, and the aggregator is free
	bypassed                        // floats, which aggregators cannot add
	freed                           // an acknowledgement that freed its aggregator
	mismatched                      // length differs from the aggregator's
	outOfRange                      // there is no such aggregator
	stranger                        // from a port without a member
	classes
)

// aggregator is one slot in the table.
type aggregator struct {
	key    uint64 // 1 + job and sequence; 0 means free
	bitmap uint32
	time   uint16 // number of contributions, the released program's agtr_time
	lanes  uint16
	ecn    bool
	left   bool // the sum has gone to the server
	since  olaf.Time
	trace  program.Trace
}

// Switch is the table of aggregators in one switch. It implements program.Program.
type Switch struct {
	program.Tally // Used includes complete sums that wait for their acknowledgement
	cfg           program.Config
	levels        bool          // the profile has two levels
	jobs          []program.Job // as configured
	slots         []aggregator
	lanes         []uint32
	out           program.Packet
	result        []uint32
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "ATP", Profiles: []string{Released, Paper},
	Slots: MaxSlots, Reach: "an index of 16 bits reaches", Default: DefaultSlots, Places: "aggregators",
	Unwrapped: "ATP's workers choose aggregators themselves",
}

// New returns a table without jobs. If cfg.Slots is 0, it has DefaultSlots aggregators. The error matches
// program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.FillConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{
		Tally: program.NewTally(classes, 0), cfg: cfg, levels: cfg.Profile == Paper, slots: make([]aggregator, cfg.Slots),
		lanes:  make([]uint32, cfg.Slots*cfg.LaneMemory),
		result: make([]uint32, cfg.LaneMemory),
	}, nil
}

// Configure sets the workers of a job. All jobs share the table. A job may have its own range of aggregators, but jobs
// without a range are not prevented from using it. Packets of an unconfigured job are treated as if they belonged to
// the first job.
func (s *Switch) Configure(j program.Job) error {
	most := MaxMembers
	if s.levels {
		most = MaxFan
	}
	switch {
	case len(j.Members) > most:
		return fmt.Errorf("%w: %d workers; profile %s takes %d", program.ErrConfig, len(j.Members), s.profileName(), most)
	case j.Fan < 0 || j.Fan > most:
		return fmt.Errorf("%w: a fan-in of %d; it must be 1 to %d, or 0 for the number of workers", program.ErrConfig,
			j.Fan, most)
	case j.Level > 0 && !s.levels:
		return fmt.Errorf("%w: profile %s knows one level of switches; take %s", program.ErrConfig, Released, Paper)
	case j.Base > 0 && j.Slots == 0:
		return fmt.Errorf("%w: job %d begins at aggregator %d without a number of them", program.ErrConfig, j.ID,
			j.Base)
	case j.Base < 0 || j.Slots < 0 || j.Base+j.Slots > len(s.slots):
		return fmt.Errorf("%w: job %d asks for aggregators %d to %d of %d", program.ErrConfig, j.ID, j.Base,
			j.Base+j.Slots-1, len(s.slots))
	}
	for i := range s.jobs {
		if err := j.CheckOverlap(&s.jobs[i], "aggregators"); err != nil {
			return err
		}
	}
	for i := range s.jobs {
		if s.jobs[i].ID == j.ID {
			s.jobs[i] = j
			return nil
		}
	}
	s.jobs = append(s.jobs, j)
	return nil
}

func (s *Switch) profileName() string {
	if s.levels {
		return Paper
	}
	return Released
}

// Remove removes a job and frees its aggregators.
func (s *Switch) Remove(id olaf.ClusterID) {
	for i := range s.slots {
		if t := &s.slots[i]; t.key != 0 && olaf.ClusterID((t.key-1)>>48) == id {
			s.freeSlot(t)
		}
	}
	for i := range s.jobs {
		if s.jobs[i].ID == id {
			s.jobs = append(s.jobs[:i], s.jobs[i+1:]...)
			return
		}
	}
}

func (s *Switch) findJob(id olaf.ClusterID) *program.Job {
	for i := range s.jobs {
		if s.jobs[i].ID == id {
			return &s.jobs[i]
		}
	}
	if len(s.jobs) > 0 {
		return &s.jobs[0]
	}
	return nil
}

// keyOf returns a packet's key in the table, which is never 0. As in the released program, it consists of the job and
// the sequence number, without the tensor.
func keyOf(p *program.Packet) uint64 { return 1 + (uint64(p.Job)<<48 | p.Seg&(1<<48-1)) }

// freeSlot empties an aggregator. If its sum was not sent, it counts as cleared.
func (s *Switch) freeSlot(t *aggregator) {
	if !t.left {
		s.CountCleared(t.trace.Vectors)
	}
	s.Used--
	*t = aggregator{}
}

// Reset empties the table and sets the counts to 0. Jobs and allocated memory are kept.
func (s *Switch) Reset() {
	clear(s.slots)
	s.ResetCounts()
}

// Slots returns the number of aggregators in the table.
func (s *Switch) Slots() int { return len(s.slots) }

// Memory returns the size of the table. Each aggregator has its values and a bitmap, a count, a mark, and the job and
// sequence number, of 4 bytes each.
func (s *Switch) Memory() olaf.Size {
	return olaf.Size(len(s.slots) * (olaf.LaneBytes*Lanes + 4*4))
}

// Slot returns the contents of aggregator i.
func (s *Switch) Slot(i int) program.Slot {
	t := &s.slots[i]
	if t.key == 0 {
		return program.Slot{}
	}
	return program.Slot{
		Occupied: true, Job: olaf.ClusterID((t.key - 1) >> 48), Seg: (t.key - 1) & (1<<48 - 1), Bitmap: uint64(t.bitmap),
		Count: bits.OnesCount32(t.bitmap), Since: t.since, Trace: t.trace, Lanes: s.buffer(i),
	}
}

// buffer returns the lanes that aggregator i uses, or nil if the switch does not store lanes.
func (s *Switch) buffer(i int) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[i*n:][:min(n, int(s.slots[i].lanes))]
}
