// Package iswitch is the accelerator of iSwitch (Li et al., ISCA 2019, §3) as a switch program: data packets of equal Seg
// are added in order of arrival as float32, and the sum leaves when H of them are inside.
//
// docs/papers/iswitch.md tells apart what the paper says and what is decided here. Profile isw-1 is the paper's: its
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

// slot is one segment, of two cache lines. Its sum is made in the packet that it leaves in, so that nothing is copied when it does:
// contributors, round, length and trace come with the contributions, the rest when it leaves.
type slot struct {
	sum   program.Packet
	since olaf.Time
	count uint16 // inside; 0 is free, whatever an earlier sum left in the packet
	// Under isw-x a sum that left stays until the next round needs the place: done says that it left, and final that it is the
	// job's and not only a part for the parent. Its round is in progress, or over when done.
	done  bool
	final bool
	at    uint32 // in the table, where its lanes are
	_     [16]byte
}

type job struct {
	program.Job
	fan    int  // vectors that complete a segment
	fixed  bool // by SetH or Configure, not by the number of members
	joined []bool
	active int      // how many
	bits   []uint64 // by port, that of the member who hangs on it and has joined, 0 where nobody has
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
	out    program.Packet // what is emitted beside sums; here so that nothing escapes
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
	s := &Switch{
		cfg: cfg, exact: cfg.Profile == Exactly,
		slots: make([]slot, cfg.Slots), lanes: make([]uint32, cfg.Slots*cfg.LaneMemory),
	}
	s.Reset()
	return s, nil
}

// Configure admits a job. Its members count as joined until they leave. A table without partitions has one job.
func (s *Switch) Configure(j program.Job) error {
	if j.Slots == 0 {
		j.Slots = len(s.slots) - j.Base
	}
	switch {
	case j.Base < 0 || j.Slots < 1 || j.Base+j.Slots > len(s.slots):
		return fmt.Errorf("%w: job %d asks for segments %d to %d of %d", program.ErrConfig, j.ID, j.Base,
			j.Base+j.Slots-1, len(s.slots))
	case j.Fan < 0 || j.Fan > MaxH:
		return fmt.Errorf("%w: H is %d; it must be 1 to %d, or 0 for the number of members", program.ErrConfig, j.Fan,
			MaxH)
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
	port, bit := k.Members[place].Port, uint64(0)
	if in {
		k.active++
		bit = 1 << k.place(port)
	} else {
		k.active--
	}
	for int(port) >= len(k.bits) {
		k.bits = append(k.bits, 0)
	}
	if port >= 0 {
		k.bits[port] = bit
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
