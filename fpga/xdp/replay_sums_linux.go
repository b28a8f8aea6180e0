package xdp

import (
	"fmt"

	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// SumReplayer repeats the decisions of an aggregator's kernel program with the server of package xagg. For each
// fragment, the decisions are numbered from 0, under the fragment's lock. They may be added in any order and are
// replayed in the order of their numbers.
type SumReplayer struct {
	server   *xagg.Server
	describe program.Description
	job      Parent
	turns    []sequence // decisions by fragment
	early    int        // number of decisions that wait for earlier ones
	found    dataplane.Comparison
}

// sequence puts the decisions on one fragment in order.
type sequence struct {
	next  uint64
	early map[uint64]dataplane.Decision
}

// decided contains, for each class of the kernel program, the corresponding class of package xagg. It has the order of
// bpf/xagg.c.
var decided = [...]program.Class{xagg.Consumed, xagg.Completed, xagg.Duplicate, xagg.Late, xagg.Mismatched,
	xagg.OutOfRange}

// NewSumReplayer returns a replayer for an aggregator with the given build and parent, in its initial state. The error
// matches program.ErrConfig.
func NewSumReplayer(build AggregatorBuild, p Parent) (*SumReplayer, error) {
	profile := xagg.Saturating
	if build.Wrapping {
		profile = xagg.Wrapping
	}
	s, err := xagg.New(program.Config{Slots: build.Fragments, Profile: profile})
	if err != nil {
		return nil, err
	}
	job := program.Job{ID: p.Job, Parent: true}
	for i := range p.Children {
		job.Members = append(job.Members, program.Member{Port: program.Port(i)})
	}
	if err := s.Configure(job); err != nil {
		return nil, err
	}
	return &SumReplayer{server: s, describe: xagg.Describe(), job: p, turns: make([]sequence, build.Fragments)}, nil
}

// Add adds a decision. Decisions on a fragment are replayed as soon as all decisions on it with lower numbers have been
// added.
func (r *SumReplayer) Add(d *dataplane.Decision) {
	fragment := int(d.Update.Seq)
	if fragment >= len(r.turns) || int(d.Update.Worker) >= r.job.Children { // the decision has no number within a fragment
		r.replay(d)
		return
	}
	t := &r.turns[fragment]
	if d.Number != t.next {
		if t.early == nil {
			t.early = map[uint64]dataplane.Decision{}
		}
		t.early[d.Number] = *d
		r.early++
		return
	}
	for next, ok := *d, true; ok; next, ok = t.early[t.next] {
		if next.Number != d.Number {
			delete(t.early, t.next)
			r.early--
		}
		t.next++
		r.replay(&next)
	}
}

// discard is a program.Out that drops the server's packets, because only its decisions are compared.
type discard struct{}

func (discard) Emit(program.Dest, *program.Packet, []uint32) {}

func (r *SumReplayer) replay(d *dataplane.Decision) {
	r.found.Checked++
	want := xagg.OutOfRange
	if u := &d.Update; int(u.Worker) < r.job.Children {
		p := program.Packet{
			Kind: program.Data, Job: r.job.Job, Worker: u.Worker, Seg: uint64(u.Seq), Round: uint16(u.Reward),
			Count: u.Count, Lanes: u.Lanes,
		}
		want = r.server.Receive(0, program.Port(u.Worker), &p, nil, discard{})
	}
	if int(d.Class) < len(decided) && decided[d.Class] == want {
		r.found.Equal++
	} else if r.found.First == "" {
		r.found.First = fmt.Sprintf("decision %d about fragment %d: class %d, but the program's reference has %s",
			d.Number,
			d.Update.Seq, d.Class, r.describe.ClassName(want))
	}
}

// Compare returns the result of the comparison so far. total is the number of decisions that the kernel counted.
func (r *SumReplayer) Compare(total uint64) dataplane.Comparison {
	c := r.found
	if came := uint64(c.Checked + r.early); came != total || r.early > 0 {
		c.Void = fmt.Sprintf("the log lacks %d of %d decisions", int64(total)-int64(c.Checked), total)
	}
	return c
}
