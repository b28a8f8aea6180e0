// Package atp is ATP's table of aggregators as a switch program (Lao et al., NSDI 2021), in the profile p4ml by the rules of
// its released P4 program and in the profile paper with two levels of switches. The sender chooses the aggregator; whoever
// finds it taken goes on to the parameter server as it is, and an aggregator is held until the server's acknowledgement.
//
// docs/papers/atp.md tells apart what the code does, what the published description says and what is decided here.
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

// DefaultSlots is how many aggregators the released program has: two registers of 20,000 cells for each of 31 words.
const DefaultSlots = 20_000

// Lanes is how many values a packet carries, MaxSlots what an index of 16 bits reaches, and MaxMembers the bits of a bitmap.
const (
	Lanes      = 62
	MaxSlots   = 1 << 16
	MaxMembers = 32
	MaxFan     = 31 // of the paper's five bits a level
)

// What becomes of an arriving packet.
const (
	Forwarded  program.Class = iota // passed on as it is
	Consumed                        // added, the aggregator waits for more
	Completed                       // added, and all are inside: the sum went to the server
	Collided                        // the aggregator is another's: on to the server with the mark
	Duplicate                       // inside an aggregator that waits
	Answered                        // inside one that is complete: the sum went to the server again
	Flushed                         // sent again: what was inside went to the server and the aggregator is free
	Bypassed                        // floats, which no aggregator adds
	Freed                           // an acknowledgement that freed its aggregator
	Mismatched                      // of another length than what the aggregator holds
	OutOfRange                      // of an aggregator that is not there
	Stranger                        // from a port that is no member's
	classes
)

// aggregator is one place of the table.
type aggregator struct {
	key    uint64 // 1 + job and sequence; 0 is free
	bitmap uint32
	time   uint16 // contributions, the released program's agtr_time
	lanes  uint16
	ecn    bool
	left   bool // the sum went to the server
	since  olaf.Time
	trace  program.Trace
}

// Switch is one switch's table. It implements program.Program.
type Switch struct {
	cfg    program.Config
	levels bool          // the profile has two
	jobs   []program.Job // as configured
	slots  []aggregator
	lanes  []uint32
	counts [counters]uint64
	used   int
	out    program.Packet
	result []uint32
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "ATP", Profiles: []string{Released, Paper},
	Slots: MaxSlots, Reach: "an index of 16 bits reaches", Default: DefaultSlots, Places: "aggregators",
	Unwrapped: "ATP's workers choose aggregators themselves",
}

// New builds a table. Slots 0 is DefaultSlots. The error matches program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.Fill(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{
		cfg: cfg, levels: cfg.Profile == Paper, slots: make([]aggregator, cfg.Slots),
		lanes:  make([]uint32, cfg.Slots*cfg.LaneMemory),
		result: make([]uint32, cfg.LaneMemory),
	}, nil
}

// Configure says who a job's workers are. Jobs share the table, but for those that are given a part of it, which the rest is
// trusted to leave alone; a job that nobody configured is taken to be like the first.
func (s *Switch) Configure(j program.Job) error {
	most := MaxMembers
	if s.levels {
		most = MaxFan
	}
	switch {
	case len(j.Members) > most:
		return fmt.Errorf("%w: %d workers; profile %s takes %d", program.ErrConfig, len(j.Members), s.profile(), most)
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
		if err := j.Beside(&s.jobs[i], "aggregators"); err != nil {
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

func (s *Switch) profile() string {
	if s.levels {
		return Paper
	}
	return Released
}

// Remove ends a job and frees what it held.
func (s *Switch) Remove(id olaf.ClusterID) {
	for i := range s.slots {
		if t := &s.slots[i]; t.key != 0 && olaf.ClusterID((t.key-1)>>48) == id {
			s.free(t)
		}
	}
	for i := range s.jobs {
		if s.jobs[i].ID == id {
			s.jobs = append(s.jobs[:i], s.jobs[i+1:]...)
			return
		}
	}
}

func (s *Switch) job(id olaf.ClusterID) *program.Job {
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

// keyOf is never 0. The released program's key is job and sequence, without the tensor.
func keyOf(p *program.Packet) uint64 { return 1 + (uint64(p.Job)<<48 | p.Seg&(1<<48-1)) }

// free empties an aggregator that is held; what had not left is cleared.
func (s *Switch) free(t *aggregator) {
	if !t.left {
		s.counts[vectorsCleared] += uint64(t.trace.Vectors)
		s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
	}
	s.used--
	*t = aggregator{}
}

// Reset empties the table and the counts and keeps jobs and memory.
func (s *Switch) Reset() {
	clear(s.slots)
	s.counts, s.used = [counters]uint64{}, 0
}

// Slots is the length of the table.
func (s *Switch) Slots() int { return len(s.slots) }

// Occupied is how many aggregators are held, complete ones that wait for their acknowledgement too.
func (s *Switch) Occupied() int { return s.used }

// Counts are the values of the ledger that Describe declares.
func (s *Switch) Counts() []uint64 { return s.counts[:] }

// Memory is, of each aggregator, the values, a bitmap, a count, a mark and job and sequence, 4 bytes each.
func (s *Switch) Memory() olaf.Size {
	return olaf.Size(len(s.slots) * (olaf.LaneBytes*Lanes + 4*4))
}

// Slot views aggregator i.
func (s *Switch) Slot(i int) program.Slot {
	t := &s.slots[i]
	if t.key == 0 {
		return program.Slot{}
	}
	return program.Slot{
		Held: true, Job: olaf.ClusterID((t.key - 1) >> 48), Seg: (t.key - 1) & (1<<48 - 1), Bitmap: uint64(t.bitmap),
		Count: bits.OnesCount32(t.bitmap), Since: t.since, Trace: t.trace, Lanes: s.buffer(i),
	}
}

// buffer is the lanes of an aggregator, as many as it has in use; nil of a switch that stores none.
func (s *Switch) buffer(i int) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return s.lanes[i*n:][:min(n, int(s.slots[i].lanes))]
}
