package xagg

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Fragment is what a model holds of one of its fragments; the zero Fragment is one before its first packet.
type Fragment struct {
	Epoch    uint16
	Lanes    uint16
	Bitmap   uint64 // children inside
	NewestNS uint64
	Inside   int // children
	Count    int // vectors
}

// Model is a data path elsewhere, such as the kernel's, whose fragments agents look into.
type Model interface {
	// Fragment says what is inside of fragment i of the job, and fills lanes, as far as they are there, with its sum.
	Fragment(i int, lanes []uint32) Fragment
}

// NewAgent builds the agents of a server whose data path is elsewhere (§IV-C, §IV-D): who looks for what is missing, and who divides
// the rates. They take what children tell and what comes from the parent; what children send to be added is the model's. There is one
// job, whose fragments begin with the model's. The error matches program.ErrConfig.
func NewAgent(cfg program.Config, m Model) (*Server, error) {
	lanes := cfg.LaneMemory
	cfg.LaneMemory = 0
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	s.model, s.lanes = m, make([]uint32, lanes)
	return s, nil
}

// Look looks for what a child lacks of the group that ends with fragment last, as a packet of an epoch there asked the model's agents to.
func (s *Server) Look(id olaf.ClusterID, child int, epoch uint16, last int, out program.Out) {
	k := s.jobs.Of(id)
	if k == nil || child < 0 || child >= len(k.Members) || last < 0 || last >= k.Slots {
		return
	}
	s.check(k, child, k.Members[child].Port, epoch, last&^(s.group-1), last+1, out)
}

// look is fragment i of the table, as the model has it at the moment.
func (s *Server) look(k *program.Tenant, i int) *slot {
	t := &s.slots[i]
	if s.model != nil {
		t.take(s.model.Fragment(i-k.Base, nil), len(k.Members))
	}
	return t
}

// read is the sum of a model's fragment, with what is inside of it.
func (s *Server) read(k *program.Tenant, i int) []uint32 {
	f := s.model.Fragment(i-k.Base, s.lanes)
	s.slots[i].take(f, len(k.Members))
	return s.lanes[:min(len(s.lanes), int(f.Lanes))]
}

// take notes what a model says of a fragment.
func (t *slot) take(f Fragment, children int) {
	*t = slot{
		bitmap: f.Bitmap, count: uint32(f.Count), epoch: f.Epoch, lanes: f.Lanes, inside: uint8(f.Inside),
		whole: f.Lanes > 0 && f.Inside == children,
		trace: program.Trace{NewestNS: f.NewestNS, OldestNS: f.NewestNS, Vectors: uint32(f.Count)},
	}
}
