package bench

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
)

// sumOf names a sum by its marks.
type sumOf struct {
	job    int
	inside uint64
}

// sums is what sums hold that switches made and that are in no update yet: the marks of gradients.
type sums map[sumOf][]uint64

// noted is a program in virtual time of which it is noted what its sums hold. Stamps alone do not tell: a gradient that was made between two
// others may be in another sum. What an update is told by are first packets of vectors, see endpoint.Aggregate.
type noted struct {
	program.Program
	sums sums
	came map[int][]uint64 // by job, the marks that were presented since the last sum
	out  program.Out
}

// note has what switches add up noted in s, where they do.
func (s sums) note(parts *system.Parts) {
	if parts.Program == nil || parts.Passes {
		return
	}
	notes := func(build func(program.Config) (program.Program, error)) func(program.Config) (program.Program, error) {
		return func(cfg program.Config) (program.Program, error) {
			p, err := build(cfg)
			if err != nil {
				return nil, err
			}
			return &noted{Program: p, sums: s, came: map[int][]uint64{}}, nil
		}
	}
	d := *parts.Program
	d.New = notes(d.New)
	parts.Program = &d
	if parts.Root != nil {
		parts.Root = notes(parts.Root)
	}
}

// told says whether an update is told by a packet, and of which sum that would be.
func told(p *program.Packet) (of sumOf, is bool) {
	return sumOf{int(p.Job - closedloop.FirstJob), p.Inside}, p.Seg == 0 && (p.Kind == program.Data || p.Kind == program.Result)
}

// Receive implements program.Program.
func (n *noted) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	if of, is := told(p); is && p.Kind == program.Data {
		marks, sum := n.sums[of]
		if !sum {
			marks = []uint64{of.inside}
		}
		n.came[of.job] = append(n.came[of.job], marks...)
	}
	n.out = out
	return n.Program.Receive(now, from, p, lanes, n)
}

// Emit implements program.Out. A sum that is not of what came, such as one that packets which were sent again are in once, is left to stamps.
func (n *noted) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if of, is := told(p); is && n.sums[of] == nil {
		var all uint64
		for _, m := range n.came[of.job] {
			all += m
		}
		if all == of.inside {
			n.sums[of] = slices.Clone(n.came[of.job])
		}
		n.came[of.job] = n.came[of.job][:0]
	}
	n.out.Emit(to, p, lanes)
}
