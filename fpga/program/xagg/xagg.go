// Package xagg implements an aggregation server of XAgg (Zhang et al., IEEE/ACM ToN 2023) as a switch program. It
// stores a complete model, adds its children's fragments, and sends a sum when every child has contributed (Algorithm
// 1). This data path also exists as a kernel program (fpga/xdp). In addition the package has the server's agents, one
// of which finds missing fragments (§IV-D) while the other divides the rates (§IV-C). BuildTree puts servers above
// workers (§V). docs/papers/xagg.md lists which rules are from the paper and which are ours.
package xagg

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Profiles of Config.Profile: how a lane behaves at its limits.
const (
	Saturating = "saturating" // stays at the limit, which is counted
	Wrapping   = "wrapping"   // as in the paper
)

// MaxMembers is the number of bits in a bitmap. Lanes is the published size of a fragment. Group is the published
// number of a child's fragments between two checks; it is a power of two.
const (
	MaxMembers = 64
	Lanes      = 256
	Group      = 1024
)

// defaultSlots is for a model of 16 MiB in fragments of Lanes. maxSlots limits a model to 17 GB.
const (
	defaultSlots = 1 << 14
	maxSlots     = 1 << 24
)

// Actions of control packets; the codes are ours. A Lost or Ask packet can list 64 fragments: Seg is the number of the
// first, and Bitmap selects the fragments.
const (
	Ready    uint8 = 1 + iota // from a child: it can send at up to Value bit/s; 0 withdraws an earlier Ready
	Rate                      // to a child: it may send at Value bit/s
	Finished                  // from a child: it has sent fragments 0 to Seg − 1
	Lost                      // to a child: the selected fragments are missing from it
	Checked                   // to a child: none of its fragments is missing
	// Ask is the action of a packet from a worker that lacks results. Round is the worker's epoch, and Value is the
	// first epoch that it used for the vector.
	Ask
	Renew // to a worker, from the management: Value is the number of changes of the tree so far
	// Begin is the action of a packet from a worker that asks for the first epoch of a job with Value vectors. Seg
	// numbers the request.
	Begin
	First // to a worker: Value is the first epoch; Seg is the number of the request
	// Still is the action of a packet from a worker that has its first epoch but receives nothing. It asks whether
	// Round is still the first epoch, and is answered only if it changed.
	Still
	// Leave is the action of a packet from a worker that has its first epoch but abandons the job. Value is 0 if
	// another job replaced this job.
	Leave
	Refuse // to a worker: its request Begin was refused for the reason Value; Seg is the number of the request
	// Awaits is the action of a packet that answers an Ask for a fragment whose sum is still incomplete. Bitmap
	// contains the children whose fragments are missing.
	Awaits
)

// NameSpan is the number of fragments that a Lost or Ask packet can list.
const NameSpan = 64

// Classes of arriving packets.
const (
	Forwarded  program.Class = iota // not an XAgg packet
	Consumed                        // added; the fragment is still incomplete
	Completed                       // added; the sum has left
	Relayed                         // a result from the parent, passed on to the members
	Controlled                      // a control packet of a known job
	Duplicate                       // the child has already contributed
	Late                            // from a past epoch
	Mismatched                      // length differs from the fragment's
	OutOfRange                      // beyond the model
	Stranger                        // from a job or a port that is not a member
	classes
)

// slot is one fragment of the model. The first packet in a newer epoch replaces its contents, so the model does not
// have to be cleared between epochs.
type slot struct {
	bitmap   uint64
	since    olaf.Time
	count    uint32 // number of updates
	epoch    uint16
	lanes    uint16 // 0 before the first packet
	inside   uint8  // number of children
	complete bool   // all children have contributed
	trace    program.Trace
}

// result is the last final sum of a fragment. It is stored for workers that missed it, while others are already an
// epoch ahead.
type result struct {
	epoch  uint16
	lanes  uint16
	stored bool
	count  uint32
	trace  program.Trace
}

// Server is an aggregation server. It implements program.Program.
type Server struct {
	program.Tally
	cfg         program.Config
	wrap        bool
	jobs        program.Tenants
	rates       []*rates // by job
	slots       []slot
	results     []result // results, kept by a root switch
	lanes       []uint32 // LaneMemory per slot
	resultLanes []uint32 // lanes of results
	group       int      // number of a child's packets between two checks
	model       Model    // model of an agent; nil in other switches
	epochs      Epochs
	out         program.Packet
}

var _ program.Program = (*Server)(nil)

var limits = program.Limits{
	Name: "XAgg", Profiles: []string{Saturating, Wrapping},
	Slots: maxSlots, Default: defaultSlots, Places: "fragments",
	Unwrapped: "XAgg holds the whole model",
}

// New returns a server without jobs. cfg.Slots is the number of fragments in its model; 0 means defaultSlots. The error
// matches program.ErrConfig.
func New(cfg program.Config) (*Server, error) {
	cfg, err := limits.FillConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Server{Tally: program.NewTally(classes, counters-saturated), cfg: cfg, group: Group,
		wrap: cfg.Profile == Wrapping, slots: make([]slot, cfg.Slots), lanes: make([]uint32, cfg.Slots*cfg.LaneMemory)}, nil
}

// SetGroup sets the number of a child's packets that are acknowledged together. It must be a power of two; 0 means
// Group. The error matches program.ErrConfig.
func (s *Server) SetGroup(group int) error {
	if group < 0 || bits.OnesCount(uint(group)) > 1 {
		return fmt.Errorf("%w: groups of %d packets; use a power of two", program.ErrConfig, group)
	}
	s.group = cmp.Or(group, Group)
	return nil
}

// Configure adds or changes a job, whose members are numbered by their index. Partial sums are discarded, because the
// bits in their bitmaps change their meaning. Therefore a new epoch must begin after a change of the tree.
func (s *Server) Configure(j program.Job) error {
	if j.In < 0 || j.Out < 0 {
		return fmt.Errorf("%w: a link of %s in and %s out", program.ErrConfig, j.In, j.Out)
	}
	rule := program.Division{Slots: len(s.slots), Members: MaxMembers, Places: "fragments", Children: "children",
		Sum: "a sum"}
	k, err := rule.AdmitJob(j, s.jobs)
	if err != nil {
		return err
	}
	s.clearFragments(j.ID)
	s.jobs.Put(k)
	for len(s.rates) < len(s.jobs) {
		s.rates = append(s.rates, nil)
	}
	s.rates[j.ID] = newRates(len(j.Members), j.In, j.Out)
	if !j.Parent && s.results == nil {
		s.results, s.resultLanes = make([]result, len(s.slots)), make([]uint32, len(s.lanes))
	}
	return nil
}

// Remove removes a job and clears its slots and results.
func (s *Server) Remove(id olaf.ClusterID) {
	k := s.jobs.Find(id)
	if k == nil {
		return
	}
	s.clearFragments(id)
	if s.results != nil {
		clear(s.results[k.Base:][:k.Slots])
	}
	s.jobs[id] = nil
}

// clearFragments discards a job's partial sums but keeps its results.
func (s *Server) clearFragments(id olaf.ClusterID) {
	k := s.jobs.Find(id)
	if k == nil {
		return
	}
	for i := k.Base; i < k.Base+k.Slots; i++ {
		s.discardSum(&s.slots[i])
		s.slots[i] = slot{}
	}
}

// discardSum counts the contributions in an incomplete sum as cleared.
func (s *Server) discardSum(t *slot) {
	if t.inside == 0 || t.complete || s.model != nil {
		return
	}
	s.CountCleared(t.trace.Vectors)
	s.Used--
}

// Reset empties the model and sets the counts to 0. Jobs and allocated memory are kept.
func (s *Server) Reset() {
	clear(s.slots)
	clear(s.results)
	s.ResetCounts()
}

// Epochs returns the first epoch for a child's job with the given number of vectors, or the reason why there is none. A
// request that is repeated with the same ticket gets the same answer, or the epoch of the job that replaced a job
// without sums. action is Begin for a new request, or Still or Leave for a child that was answered before. Leave with 0
// vectors means that another job replaced the child's job.
type Epochs func(child int, action uint8, vectors uint64, ticket uint32) (first uint16, answer Answer)

// Answer is the result of a request for an epoch. TooLong and all later codes are sent to the worker in a Refuse
// packet.
type Answer uint8

// Answers. Unanswered applies to a child that is no longer a worker of the job.
const (
	Answered         Answer = iota
	Unanswered              // no packet leaves
	TooLong                 // the job has no vectors, or more vectors than there are distinct epochs
	EpochsSpent             // too many epochs were given to jobs that never began
	WorkerLeft              // a worker of the job gave up or ended, so that no more sums will come
	TooManyFragments        // the vector has more fragments than the model
)

// String returns the reason for a refusal and advice on what to do about it.
func (a Answer) String() string {
	switch a {
	case TooLong:
		return "the aggregator counts epochs for 1 to 16384 vectors in a job; use fewer with --vectors"
	case EpochsSpent:
		return "the aggregator gave all epochs to jobs that did not begin; take the testbed down and up"
	case WorkerLeft:
		return "a worker left the job, and no more sums come without it"
	case TooManyFragments:
		return "the vector has more fragments than the aggregator has room for; raise job.fragments in the testbed's " +
			"file, or use fewer --values"
	}
	return fmt.Sprintf("the aggregator refuses for reason %d", uint8(a))
}

// SetEpochs sets the function that answers the children's requests for epochs. Without it, the requests are not
// answered.
func (s *Server) SetEpochs(e Epochs) { s.epochs = e }

// Slots returns the number of fragments in the model.
func (s *Server) Slots() int { return len(s.slots) }

// Memory returns the size of the model. Each fragment has a bitmap, a counter and the lanes for which it is built
// (paper, Fig. 4), and in the root also its last result.
func (s *Server) Memory() olaf.Size {
	lanes := cmp.Or(s.cfg.Lanes, Lanes)
	return olaf.Size(len(s.slots)*(4+4+olaf.LaneBytes*lanes) + len(s.results)*olaf.LaneBytes*lanes)
}

// Slot returns the contents of fragment i.
func (s *Server) Slot(i int) program.Slot {
	t := &s.slots[i]
	view := program.Slot{Occupied: t.inside > 0, Seg: uint64(i), Bitmap: t.bitmap, Count: int(t.inside), Since: t.since,
		Trace: t.trace, Lanes: s.buffer(i)}
	if k := s.jobs.OwnerOf(i); k != nil {
		view.Job, view.Seg = k.ID, uint64(i-k.Base)
	}
	return view
}

// buffer returns the lanes that fragment i uses, or nil if the server does not store lanes.
func (s *Server) buffer(i int) []uint32 { return s.part(s.lanes, i, s.slots[i].lanes) }

func (s *Server) part(of []uint32, i int, lanes uint16) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return of[i*n:][:min(n, int(lanes))]
}

// clampCount returns n limited to the range of the count in a frame.
func clampCount(n uint32) uint16 { return uint16(min(n, math.MaxUint16)) }
