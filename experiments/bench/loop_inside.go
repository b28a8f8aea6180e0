package bench

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
)

// sumOf identifies a sum by its marks.
type sumOf struct {
	job    int
	inside uint64
}

// sums contains the marks of the gradients in sums that switches made and that are in no update yet.
type sums map[sumOf][]uint64

// noted is a program in virtual time whose sums' contents are recorded. Stamps are not enough: a gradient made between
// two others may be in another sum. Only first packets of vectors matter for updates, see endpoint.Aggregate.
type noted struct {
	program.Program
	sums sums
	came map[int][]uint64 // by job, the marks that arrived since the last sum
	out  program.Out
}

// wrapPrograms wraps the programs of switches that add, so that s records their sums.
func (s sums) wrapPrograms(parts *system.Parts) {
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

// sumOfPacket reports whether a packet can identify an update, and its sum.
func sumOfPacket(p *program.Packet) (of sumOf, is bool) {
	return sumOf{int(p.Job - closedloop.FirstJob), p.Inside}, p.Seg == 0 &&
		(p.Kind == program.Data || p.Kind == program.Result)
}

// Receive implements program.Program.
func (n *noted) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if of, is := sumOfPacket(p); is && p.Kind == program.Data {
		marks, sum := n.sums[of]
		if !sum {
			marks = []uint64{of.inside}
		}
		n.came[of.job] = append(n.came[of.job], marks...)
	}
	n.out = out
	return n.Program.Receive(now, from, p, lanes, n)
}

// Emit implements program.Out. It ignores a sum that does not match the arrivals, for example after retransmissions
// that it contains once; stamps must then do.
func (n *noted) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if of, is := sumOfPacket(p); is && n.sums[of] == nil {
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
