package xdp

import (
	"fmt"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// SumReplayer decides again what an aggregator's program decided, by the server of package xagg. Decisions about a fragment are
// numbered from 0 under its lock; they may come in any order and are replayed in that of their numbers.
type SumReplayer struct {
	server   *xagg.Server
	describe program.Description
	job      Parent
	turns    []sequence // by fragment
	early    int        // decisions that wait for others
	found    Comparison
}

// sequence is the decisions about one fragment.
type sequence struct {
	next  uint64
	early map[uint64]Decision
}

// decided are the classes of the kernel's program, in the order of bpf/xagg.c.
var decided = [...]program.Class{xagg.Consumed, xagg.Completed, xagg.Duplicate, xagg.Late, xagg.Mismatched,
	xagg.OutOfRange}

// NewSumReplayer makes a replayer for an aggregator that was loaded and configured like this, and had decided nothing. The error
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

// Add takes a decision and replays it with all that waited for it.
func (r *SumReplayer) Add(d *Decision) {
	fragment := int(d.Update.Seq)
	if fragment >= len(r.turns) || int(d.Update.Worker) >= r.job.Children { // of no fragment's numbers
		r.replay(d)
		return
	}
	t := &r.turns[fragment]
	if d.Number != t.next {
		if t.early == nil {
			t.early = map[uint64]Decision{}
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

// silent hears nothing: what a server says beside its sums is its agents' matter.
type silent struct{}

func (silent) Emit(program.Dest, *program.Packet, []uint32) {}

func (r *SumReplayer) replay(d *Decision) {
	r.found.Checked++
	want := xagg.OutOfRange
	if u := &d.Update; int(u.Worker) < r.job.Children {
		p := program.Packet{
			Kind: program.Data, Job: r.job.Job, Worker: u.Worker, Seg: uint64(u.Seq), Round: uint16(u.Reward),
			Count: u.Count, Lanes: u.Lanes,
		}
		want = r.server.Receive(0, program.Port(u.Worker), &p, nil, silent{})
	}
	if int(d.Class) < len(decided) && decided[d.Class] == want {
		r.found.Equal++
	} else if r.found.First == "" {
		r.found.First = fmt.Sprintf("decision %d about fragment %d: class %d, the program's is %s", d.Number,
			d.Update.Seq, d.Class, r.describe.ClassName(want))
	}
}

// Compare says how the decisions compare up to now. The kernel has counted so many in all.
func (r *SumReplayer) Compare(total uint64) Comparison {
	c := r.found
	if came := uint64(c.Checked + r.early); came != total || r.early > 0 {
		c.Void = fmt.Sprintf("the log lacks %d of %d decisions", int64(total)-int64(c.Checked), total)
	}
	return c
}
