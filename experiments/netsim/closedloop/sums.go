package closedloop

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
)

// Sum identifies a sum by its job and the combined marks of its gradients.
type Sum struct {
	Job    int
	Inside uint64
}

// Sums maps each sum that switches made to the marks of its gradients, until an update with the sum is applied.
type Sums map[Sum][]uint64

// noted wraps a program in a simulation and records the gradients in its sums. Timestamps are not enough to identify
// them, because a gradient made between two others may be in another sum. Only the first packet of each vector matters
// for updates, see endpoint.Aggregate.
type noted struct {
	program.Program
	sums Sums
	came map[int][]uint64 // by job, the marks that arrived since the last sum
	out  program.Out
}

// WrapPrograms wraps the programs of switches that add gradients, so that s records the contents of their sums.
func (s Sums) WrapPrograms(parts *system.Parts) {
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

// sumOfPacket returns the sum that a packet belongs to, and whether the packet can identify an update.
func sumOfPacket(p *program.Packet) (of Sum, is bool) {
	return Sum{int(p.Job - FirstJob), p.Inside}, p.Seg == 0 &&
		(p.Kind == program.Data || p.Kind == program.Result)
}

// Receive implements program.Program.
func (n *noted) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	if of, is := sumOfPacket(p); is && p.Kind == program.Data {
		marks, sum := n.sums[of]
		if !sum {
			marks = []uint64{of.Inside}
		}
		n.came[of.Job] = append(n.came[of.Job], marks...)
	}
	n.out = out
	return n.Program.Receive(now, from, p, lanes, n)
}

// Emit implements program.Out. It does not record a sum that does not match the arrivals, for example after a
// retransmission that the sum contains only once. The gradients in such a sum can only be estimated from timestamps.
func (n *noted) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if of, is := sumOfPacket(p); is && n.sums[of] == nil {
		var all uint64
		for _, m := range n.came[of.Job] {
			all += m
		}
		if all == of.Inside {
			n.sums[of] = slices.Clone(n.came[of.Job])
		}
		n.came[of.Job] = n.came[of.Job][:0]
	}
	n.out.Emit(to, p, lanes)
}
