// Package xagg is an aggregation server of XAgg (Zhang et al., IEEE/ACM ToN 2023) as a switch program: it holds a whole model,
// adds what its children send fragment by fragment, and passes a sum on when every child is inside (Algorithm 1). Beside the
// data path, which the kernel runs (fpga/xdp), it is the server's agents: who looks for what is missing (§IV-D) and who
// divides the rates (§IV-C).
//
// docs/papers/xagg.md tells apart what the paper says and what is decided here.
package xagg

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Profiles of Config.Profile: what a lane does at the end of its range.
const (
	Saturating = "saturating" // stays there, and is counted
	Wrapping   = "wrapping"   // as published
)

// MaxMembers is how many bits a bitmap has, Lanes the published fragment, and Group the published number of a child's
// fragments between two looks for what is missing, a power of two.
const (
	MaxMembers = 64
	Lanes      = 256
	Group      = 1024
)

// DefaultSlots is a model of 16 MiB in fragments of Lanes; MaxSlots bounds one to 17 GB.
const (
	DefaultSlots = 1 << 14
	MaxSlots     = 1 << 24
)

// Actions of control packets; their codes are ours. A packet of Lost or Ask names 64 fragments: Seg is the first, Bitmap says
// which of them.
const (
	Ready    uint8 = 1 + iota // of a child: it can send, at most at Value bit/s; 0 takes that back
	Rate                      // to a child: it may send at Value bit/s
	Finished                  // of a child: it has sent fragments 0 to Seg − 1
	Lost                      // to a child: these of its fragments are not here
	Checked                   // to a child: nothing of it is missing
	Ask                       // of a worker: these results did not come. Round is its epoch, Value the first it used for the vector
	Renew                     // to a worker, of the management: the tree was changed for the Value-th time
	Begin                     // of a worker: its job has Value vectors, and it wants to know the first one's epoch. Seg numbers the question
	First                     // to a worker: Value is that epoch. Seg is the question's
	Still                     // of a worker that was told, and to whom nothing comes: it asks once more whether Round is the first epoch, and is told where it is another one by now
	Leave                     // of a worker that was told, and that gives its job up before the end. Value is 0 where that was replaced by another
	Refuse                    // to a worker: its question Begin has no answer, for the reason Value. Seg is the question's
)

// NameSpan is how many fragments a packet of Lost or Ask can name.
const NameSpan = 64

// What becomes of an arriving packet.
const (
	Forwarded  program.Class = iota // no XAgg packet
	Consumed                        // added, the fragment waits for more
	Completed                       // added, and the sum left
	Relayed                         // a result from the parent, passed down
	Controlled                      // a control packet of a known job
	Duplicate                       // its child is inside already
	Late                            // of an epoch that is over
	Mismatched                      // of another length than what the fragment holds
	OutOfRange                      // beyond the model
	Stranger                        // of a job or a port that is no member
	classes
)

// slot is one fragment. The first packet of a newer epoch takes it over, so that nobody clears a model between epochs.
type slot struct {
	bitmap uint64
	since  olaf.Time
	count  uint32 // updates
	epoch  uint16
	lanes  uint16 // 0 before the first packet
	inside uint8  // children
	whole  bool   // all of them
	trace  program.Trace
}

// result is the last sum of a fragment that was the job's: who missed it may ask while others are an epoch ahead.
type result struct {
	epoch uint16
	lanes uint16
	held  bool
	count uint32
	trace program.Trace
}

// Server is one aggregation server. It implements program.Program.
type Server struct {
	cfg     program.Config
	wrap    bool
	jobs    program.Tenants
	rates   []*rates // by job
	slots   []slot
	results []result // of a root
	lanes   []uint32 // LaneMemory a slot
	kept    []uint32 // the same of results
	counts  [counters]uint64
	used    int
	group   int   // of a child's packets between two looks for what is missing
	model   Model // of an agent
	epochs  Epochs
	out     program.Packet
}

var _ program.Program = (*Server)(nil)

var limits = program.Limits{
	Name: "XAgg", Profiles: []string{Saturating, Wrapping},
	Slots: MaxSlots, Default: DefaultSlots, Places: "fragments",
	Unwrapped: "XAgg holds the whole model",
}

// New builds a server without jobs. Slots is how many fragments a model has, 0 DefaultSlots. The error matches
// program.ErrConfig.
func New(cfg program.Config) (*Server, error) {
	cfg, err := limits.Fill(cfg)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, group: Group, wrap: cfg.Profile == Wrapping, slots: make([]slot, cfg.Slots),
		lanes: make([]uint32, cfg.Slots*cfg.LaneMemory)}, nil
}

// Acknowledge sets how many packets of a child are acknowledged together, a power of two; 0 is Group. The error matches
// program.ErrConfig.
func (s *Server) Acknowledge(group int) error {
	if group < 0 || bits.OnesCount(uint(group)) > 1 {
		return fmt.Errorf("%w: groups of %d packets; use a power of two", program.ErrConfig, group)
	}
	s.group = cmp.Or(group, Group)
	return nil
}

// Configure admits a job or changes it: its members' bits are their places. Sums that are under way are discarded, as their
// bits mean others now; whoever changes the tree begins another epoch.
func (s *Server) Configure(j program.Job) error {
	if j.In < 0 || j.Out < 0 {
		return fmt.Errorf("%w: a link of %s in and %s out", program.ErrConfig, j.In, j.Out)
	}
	rule := program.Division{Slots: len(s.slots), Members: MaxMembers, Places: "fragments", Children: "children",
		Sum: "a sum"}
	k, err := rule.Admit(j, s.jobs)
	if err != nil {
		return err
	}
	s.empty(j.ID)
	s.jobs.Put(k)
	for len(s.rates) < len(s.jobs) {
		s.rates = append(s.rates, nil)
	}
	s.rates[j.ID] = newRates(len(j.Members), j.In, j.Out)
	if !j.Parent && s.results == nil {
		s.results, s.kept = make([]result, len(s.slots)), make([]uint32, len(s.lanes))
	}
	return nil
}

// Remove ends a job and forgets what it held.
func (s *Server) Remove(id olaf.ClusterID) {
	k := s.jobs.Of(id)
	if k == nil {
		return
	}
	s.empty(id)
	if s.results != nil {
		clear(s.results[k.Base:][:k.Slots])
	}
	s.jobs[id] = nil
}

// empty discards what a job's fragments hold; results stay.
func (s *Server) empty(id olaf.ClusterID) {
	k := s.jobs.Of(id)
	if k == nil {
		return
	}
	for i := k.Base; i < k.Base+k.Slots; i++ {
		s.abandon(&s.slots[i])
		s.slots[i] = slot{}
	}
}

// abandon takes a sum that will not be complete out of the account.
func (s *Server) abandon(t *slot) {
	if t.inside == 0 || t.whole || s.model != nil {
		return
	}
	s.counts[vectorsCleared] += uint64(t.trace.Vectors)
	s.counts[vectorsHeld] -= uint64(t.trace.Vectors)
	s.used--
}

// Reset empties the model and the counts and keeps jobs and memory.
func (s *Server) Reset() {
	clear(s.slots)
	clear(s.results)
	s.counts, s.used = [counters]uint64{}, 0
}

// Epochs says with which epoch a job of so many vectors begins that one of the children belongs to, or why there is no epoch. Asked once
// more, which ticket tells from a child's next job, it says the same, or the epoch of the job that took the place of one without a sum.
// The action is Begin, or Still or Leave of a child that was told before; who leaves with no vectors was told of a job in the place of its own.
type Epochs func(child int, action uint8, vectors uint64, ticket uint32) (first uint16, answer Answer)

// Answer is how a question for an epoch is answered. The codes from TooLong on travel in a packet of Refuse.
type Answer uint8

// Answers. Unanswered leaves the child in silence: its question is not one of the job's workers any more.
const (
	Answered         Answer = iota
	Unanswered              // no packet leaves
	TooLong                 // the job has more vectors than epochs can be kept apart for, or none
	EpochsSpent             // too many epochs went to jobs that never began
	WorkerLeft              // a worker of the job gave up or ended, so that no more sums come
	TooManyFragments        // the vector has more fragments than the model
)

// String returns the reason of a refusal and what to do about it.
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

// Give lets children ask for the epochs of their jobs; who asks a server that gives none gets no answer.
func (s *Server) Give(e Epochs) { s.epochs = e }

// Slots is how many fragments the model has.
func (s *Server) Slots() int { return len(s.slots) }

// Occupied is how many fragments wait for children.
func (s *Server) Occupied() int { return s.used }

// Counts are the values of the ledger that Describe declares.
func (s *Server) Counts() []uint64 { return s.counts[:] }

// Memory is, of each fragment, a bitmap, a counter and the lanes that it is built for (paper, Fig. 4), and at the root its
// last result.
func (s *Server) Memory() olaf.Size {
	lanes := s.cfg.Lanes
	if lanes == 0 {
		lanes = Lanes
	}
	return olaf.Size(len(s.slots)*(4+4+olaf.LaneBytes*lanes) + len(s.results)*olaf.LaneBytes*lanes)
}

// Slot views fragment i.
func (s *Server) Slot(i int) program.Slot {
	t := &s.slots[i]
	view := program.Slot{Held: t.inside > 0, Seg: uint64(i), Bitmap: t.bitmap, Count: int(t.inside), Since: t.since,
		Trace: t.trace, Lanes: s.buffer(i)}
	if k := s.jobs.Holding(i); k != nil {
		view.Job, view.Seg = k.ID, uint64(i-k.Base)
	}
	return view
}

// buffer is the lanes of fragment i, as many as it has in use; nil of a server that stores none.
func (s *Server) buffer(i int) []uint32 { return s.part(s.lanes, i, s.slots[i].lanes) }

func (s *Server) part(of []uint32, i int, lanes uint16) []uint32 {
	n := s.cfg.LaneMemory
	if n == 0 {
		return nil
	}
	return of[i*n:][:min(n, int(lanes))]
}

// updates is a count as a frame carries it.
func updates(n uint32) uint16 { return uint16(min(n, math.MaxUint16)) }
