// Package iswitch is the accelerator of iSwitch (Li et al., ISCA 2019, §3) as a switch program: data packets of equal Seg
// are added in order of arrival as float32, and the sum leaves when H of them are inside.
//
// docs/programs/iswitch.md tells apart what the paper says and what is decided here. Profile isw-1 is the paper's: its
// frame carries neither worker nor round, so that a retransmission is added twice. Profile isw-x is ours: round and
// contributors travel in the upper half of Seg, and a packet that is inside already, or of a round that is over, is dropped.
package iswitch

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Profiles of Config.Profile.
const (
	Published = "isw-1"
	Exactly   = "isw-x"
)

// MaxMembers is how many bits a bitmap of isw-x has.
const MaxMembers = 64

// DefaultSlots is what the paper's board can hold: 2,048 segments of 366 float32 take 3.0 MB, its 44.5 % of block RAM.
const DefaultSlots = 2048

// Lanes is how many float32 fit one Ethernet frame of 1,514 bytes: its IPv4 packet of 1,500 less IPv4, UDP and Seg.
const Lanes = (1500 - 20 - 8 - 8) / 4

// DataToS is the type of service by which data is told; the paper gives no value.
const DataToS = 0x0c

// MaxSlots and MaxH bound a table and a threshold.
const (
	MaxSlots = 1 << 24
	MaxH     = math.MaxUint16
)

// AllSegments as the Seg of a Reset names every one of the job.
const AllSegments = math.MaxUint64

// Actions of control packets (paper, Table 2; their codes are ours).
const (
	Join uint8 = 1 + iota
	Leave
	Reset
	SetH
	ForceBroadcast
	Help
	Halt
	Acknowledge
)

// Value of an Acknowledge: the action it answers in the high byte, and whether it was done.
const (
	Done    = 0
	Refused = 1
)

// What becomes of an arriving packet.
const (
	Forwarded  program.Class = iota // no iSwitch packet
	Consumed                        // added, the segment waits for more
	Completed                       // added, and the sum left
	Relayed                         // a result from the parent, passed down
	Controlled                      // a control packet
	Duplicate                       // inside already, or of a round that is over (isw-x)
	Mismatched                      // of another length than what the segment holds
	OutOfRange                      // beyond the table or the job's part of it
	Stranger                        // of a job or a worker that is not a member
	classes
)

// slot is one segment: 32 bytes beside the trace and the lanes.
type slot struct {
	bitmap uint64
	since  olaf.Time
	count  uint16
	round  uint16 // in progress, or over when done
	lanes  uint16
	// Under isw-x a sum that left stays where it was made until the next round needs the place: done says that it left, kept
	// is its count, and final says that it is the job's and not only a part for the parent.
	kept  uint16
	done  bool
	final bool
	trace program.Trace
}

type job struct {
	program.Job
	fan    int  // vectors that complete a segment
	fixed  bool // by SetH or Configure, not by the number of members
	joined []bool
	active int // how many
}

// Switch is one switch's accelerator. It implements program.Program.
type Switch struct {
	cfg    program.Config
	exact  bool
	jobs   []*job // by id
	slots  []slot
	lanes  []uint32 // LaneMemory a slot
	counts [counters]uint64
	used   int
	sum    program.Packet // what leaves of a slot: the same fields each time, the others stay 0
	out    program.Packet // what else is emitted; both are here so that nothing escapes
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "iSwitch", Profiles: []string{Published, Exactly},
	Slots: MaxSlots, Default: DefaultSlots, Places: "segments",
}

// New builds an accelerator without jobs. Slots 0 is DefaultSlots. The error matches program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.Fill(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{
		cfg: cfg, exact: cfg.Profile == Exactly,
		slots: make([]slot, cfg.Slots), lanes: make([]uint32, cfg.Slots*cfg.LaneMemory),
	}, nil
}

// Configure admits a job. Its members count as joined until they leave. A table without partitions has one job.
func (s *Switch) Configure(j program.Job) error {
	if j.Slots == 0 {
		j.Slots = len(s.slots) - j.Base
	}
	switch {
	case j.Base < 0 || j.Slots < 1 || j.Base+j.Slots > len(s.slots):
		return fmt.Errorf("%w: job %d asks for segments %d to %d of %d", program.ErrConfig, j.ID, j.Base, j.Base+j.Slots-1, len(s.slots))
	case j.Fan < 0 || j.Fan > MaxH:
		return fmt.Errorf("%w: H is %d; it must be 1 to %d, or 0 for the number of members", program.ErrConfig, j.Fan, MaxH)
	case s.exact && len(j.Members) > MaxMembers:
		return fmt.Errorf("%w: %d members; %s has bits for %d", program.ErrConfig, len(j.Members), Exactly, MaxMembers)
	}
	for _, other := range s.jobs {
		if other == nil {
			continue
		}
		if err := j.Beside(&other.Job, "segments"); err != nil {
			return err
		}
	}
	s.Remove(j.ID)
	for int(j.ID) >= len(s.jobs) {
		s.jobs = append(s.jobs, nil)
	}
	k := &job{Job: j, fixed: j.Fan > 0, fan: j.Fan, joined: make([]bool, len(j.Members))}
	for i := range k.joined {
		k.join(i, true)
	}
	s.jobs[j.ID] = k
	return nil
}

func (k *job) join(place int, in bool) {
	if k.joined[place] == in {
		return
	}
	k.joined[place] = in
	if in {
		k.active++
	} else {
		k.active--
	}
	if !k.fixed {
		k.fan = k.active
	}
}

// Remove ends a job and clears its segments.
func (s *Switch) Remove(id olaf.ClusterID) {
	if k := s.job(id); k != nil {
		s.clear(k, AllSegments, nil)
		s.jobs[id] = nil
	}
}

func (s *Switch) job(id olaf.ClusterID) *job {
	if int(id) < len(s.jobs) {
		return s.jobs[id]
	}
	return nil
}
