package xagg

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Fragment is the state of a model fragment. The zero Fragment has received no packet.
type Fragment struct {
	Epoch    uint16
	Lanes    uint16
	Bitmap   uint64 // contributing children
	NewestNS uint64
	Inside   int // number of children
	Count    int // number of vectors in the sum
}

// Model is an external data path, such as the one in the kernel. Agents read the state of its fragments.
type Model interface {
	// Fragment returns the state of fragment i of the job, and copies as much of its sum as fits into lanes.
	Fragment(i int, lanes []uint32) Fragment
	// Fragments returns the states of the job's first n fragments. It is faster than reading them one by one. The
	// result is valid until the next call.
	Fragments(n int) []Fragment
}

// NewAgent returns the two agents of a server whose data path is external (§IV-C, §IV-D). One agent finds missing
// fragments, the other divides the rates. They handle control packets from the children and packets from the parent;
// the model handles data. There is one job, whose first fragment is the model's first. The error matches
// program.ErrConfig.
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

// CheckGroup finds the fragments that are missing from a child in the group that ends with fragment last, and reports
// them to the child. The model calls it for a packet of the given epoch.
func (s *Server) CheckGroup(id olaf.ClusterID, child int, epoch uint16, last int, out program.Out) {
	k := s.jobs.Find(id)
	if k == nil || child < 0 || child >= len(k.Members) || last < 0 || last >= k.Slots {
		return
	}
	s.reportMissing(k, child, k.Members[child].Port, epoch, last&^(s.group-1), last+1, out)
}

// refreshSlot returns fragment i of the table, after updating it from the external model if there is one.
func (s *Server) refreshSlot(k *program.Tenant, i int) *slot {
	t := &s.slots[i]
	if s.model != nil {
		t.setFragment(s.model.Fragment(i-k.Base, nil), len(k.Members))
	}
	return t
}

// refreshSlots updates the job's first n fragments from the external model if there is one.
func (s *Server) refreshSlots(k *program.Tenant, n int) {
	if s.model == nil {
		return
	}
	for i, f := range s.model.Fragments(n) {
		s.slots[k.Base+i].setFragment(f, len(k.Members))
	}
}

// readSum reads the sum of a fragment from the external model and updates the fragment's state.
func (s *Server) readSum(k *program.Tenant, i int) []uint32 {
	f := s.model.Fragment(i-k.Base, s.lanes)
	s.slots[i].setFragment(f, len(k.Members))
	return s.lanes[:min(len(s.lanes), int(f.Lanes))]
}

// setFragment copies the state of a fragment in the external model to t.
func (t *slot) setFragment(f Fragment, children int) {
	*t = slot{
		bitmap: f.Bitmap, count: uint32(f.Count), epoch: f.Epoch, lanes: f.Lanes, inside: uint8(f.Inside),
		complete: f.Lanes > 0 && f.Inside == children,
		trace:    program.Trace{NewestNS: f.NewestNS, OldestNS: f.NewestNS, Vectors: uint32(f.Count)},
	}
}
