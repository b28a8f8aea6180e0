// Package iswitch implements the accelerator of iSwitch as a switch program (Li et al., ISCA 2019, §3). It adds data
// packets with equal Seg in order of arrival, as float32, and sends the sum after H contributions. Profile isw-1
// follows the paper. Its frames contain neither worker nor round, so a retransmission is added twice. Profile isw-x is
// our extension. It has the round and the contributors in the upper half of Seg, and drops duplicates and packets of
// past rounds. docs/papers/iswitch.md lists which rules are from the paper and which are ours.
package iswitch

import (
	"cmp"
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

// maxMembers is the maximum number of members in a job, one for each bit in a bitmap of isw-x.
const maxMembers = 64

// DefaultSlots is chosen for the paper's board. 2,048 segments of 366 float32 values use 3.0 MB, which is the 44.5 % of
// block RAM that the paper's accelerator uses there.
const DefaultSlots = 2048

// Lanes is the number of float32 values in an Ethernet frame of 1,514 bytes. Its IPv4 packet has 1,500 bytes, including
// the headers of IPv4 and UDP and Seg.
const Lanes = (1500 - 20 - 8 - 8) / 4

// DataToS is the type of service in data packets. The paper does not specify a value.
const DataToS = 0x0c

// maxSlots limits the table, maxH the threshold.
const (
	maxSlots = 1 << 24
	maxH     = math.MaxUint16
)

// allSegments is the value of Seg in a Reset that applies to all segments of the job.
const allSegments = math.MaxUint64

// Actions of control packets (paper, Table 2; the codes are ours).
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

// Parts of an Acknowledge's value: the acknowledged action in the high byte, and its status.
const (
	Done    = 0
	Refused = 1
)

// Classes of arriving packets.
const (
	forwarded  program.Class = iota // not an iSwitch packet
	consumed                        // added; the segment is still incomplete
	completed                       // added; the sum has left
	Relayed                         // a result from the parent, passed on to the members
	controlled                      // a control packet
	duplicate                       // already in the sum, or from a past round (isw-x)
	mismatched                      // length differs from the segment's
	outOfRange                      // beyond the table or the job's partition
	stranger                        // from a job or a worker that is not a member
	classes
)

// slot contains one segment in two cache lines. Its sum is built directly in the packet that is sent, which avoids a
// copy. Contributions set the packet's contributors, round, length and trace; the other fields are set before it is
// sent.
type slot struct {
	sum   program.Packet
	since olaf.Time
	count uint16 // contributions; 0 means that the slot is free, regardless of the packet
	// Under isw-x, a sum that has left is kept until the next round needs the slot. done is set when the sum has left,
	// and final if the sum is the job's instead of a part for the parent. The sum's round is over if done is set, and
	// in progress otherwise.
	done  bool
	final bool
	at    uint32 // index in the table, to find the lanes
	_     [16]byte
}

type job struct {
	program.Job
	fan    int  // vectors that complete a segment
	fixed  bool // fan was set by SetH or Configure instead of following the number of members
	joined []bool
	active int      // number of joined members
	bits   []uint64 // bit of the member at each port if it has joined, else 0
}

// Switch is the accelerator in one switch. It implements program.Program.
type Switch struct {
	program.Tally
	cfg   program.Config
	exact bool
	jobs  []*job // by id
	slots []slot
	lanes []uint32       // LaneMemory per slot
	out   program.Packet // used for packets other than sums; kept here to avoid an allocation
}

var _ program.Program = (*Switch)(nil)

var limits = program.Limits{
	Name: "iSwitch", Profiles: []string{Published, Exactly},
	Slots: maxSlots, Default: DefaultSlots, Places: "segments",
}

// New returns an accelerator without jobs. If cfg.Slots is 0, it has DefaultSlots segments. The error matches
// program.ErrConfig.
func New(cfg program.Config) (*Switch, error) {
	cfg, err := limits.FillConfig(cfg)
	if err != nil {
		return nil, err
	}
	s := &Switch{
		Tally: program.NewTally(classes, 0), cfg: cfg, exact: cfg.Profile == Exactly,
		slots: make([]slot, cfg.Slots), lanes: make([]uint32, cfg.Slots*cfg.LaneMemory),
	}
	s.Reset()
	return s, nil
}

// Configure adds a job. Its members count as joined until they leave. A table that is not partitioned has room for one
// job.
func (s *Switch) Configure(j program.Job) error {
	j.Slots = cmp.Or(j.Slots, len(s.slots)-j.Base)
	switch {
	case j.Base < 0 || j.Slots < 1 || j.Base+j.Slots > len(s.slots):
		return fmt.Errorf("%w: job %d asks for segments %d to %d of %d", program.ErrConfig, j.ID, j.Base,
			j.Base+j.Slots-1, len(s.slots))
	case j.Fan < 0 || j.Fan > maxH:
		return fmt.Errorf("%w: H is %d; it must be 1 to %d, or 0 for the number of members", program.ErrConfig, j.Fan,
			maxH)
	case s.exact && len(j.Members) > maxMembers:
		return fmt.Errorf("%w: %d members; %s has bits for %d", program.ErrConfig, len(j.Members), Exactly, maxMembers)
	}
	for _, other := range s.jobs {
		if other == nil {
			continue
		}
		if err := j.CheckOverlap(&other.Job, "segments"); err != nil {
			return err
		}
	}
	s.Remove(j.ID)
	for int(j.ID) >= len(s.jobs) {
		s.jobs = append(s.jobs, nil)
	}
	k := &job{Job: j, fixed: j.Fan > 0, fan: j.Fan, joined: make([]bool, len(j.Members))}
	for i := range k.joined {
		k.setJoined(i, true)
	}
	s.jobs[j.ID] = k
	return nil
}

func (k *job) setJoined(place int, in bool) {
	if k.joined[place] == in {
		return
	}
	k.joined[place] = in
	port, bit := k.Members[place].Port, uint64(0)
	if in {
		k.active++
		bit = 1 << k.memberAt(port)
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

// Remove removes a job and clears its segments.
func (s *Switch) Remove(id olaf.ClusterID) {
	if k := s.findJob(id); k != nil {
		s.clearSums(k, allSegments, nil)
		s.jobs[id] = nil
	}
}

func (s *Switch) findJob(id olaf.ClusterID) *job {
	if int(id) < len(s.jobs) {
		return s.jobs[id]
	}
	return nil
}
