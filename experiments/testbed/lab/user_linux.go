package lab

import (
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/fpga/xdp"
)

// runsInKernel reports whether the adder's program is the kernel's rather than one of this process.
func (a *Adder) runsInKernel() bool { return a.Aggregator != nil }

// addInUserSpace runs the aggregating program of a node in this process, on the node's socket. It gives no epochs to
// jobs: these must begin with one of their own.
func (l *Lab) addInUserSpace(p *PlannedAdder) error {
	a := &Adder{Planned: p, latched: map[string]uint64{}}
	l.Adders = append(l.Adders, a)
	parent, err := l.parent(p.Node)
	if err != nil {
		return err
	}
	return l.serve(a, parent.Child)
}

// kernelNames maps the program's counters to the names in the kernel.
var kernelNames = map[string]string{
	xagg.Describe().Ledger.Counters[xagg.Duplicate].Name:  "duplicate",
	xagg.Describe().Ledger.Counters[xagg.Mismatched].Name: "mismatched",
}

// Latch returns the counters since its last call, by their names in the kernel.
func (a *Adder) Latch() (map[string]uint64, error) {
	if a.runsInKernel() {
		return a.Aggregator.Latch()
	}
	since := map[string]uint64{}
	for name, n := range a.AgentCounts() {
		if inKernel, renamed := kernelNames[name]; renamed {
			name = inKernel
		}
		since[name], a.latched[name] = n-a.latched[name], n
	}
	return since, nil
}

// Decisions visits the kernel's decisions since its last call; a program in this process logs none.
func (a *Adder) Decisions(visit func(*xdp.Decision)) error {
	if a.runsInKernel() {
		return a.Aggregator.Decisions(visit)
	}
	return nil
}

// Close removes the kernel's program.
func (a *Adder) Close() error {
	if a.runsInKernel() {
		return a.Aggregator.Close()
	}
	return nil
}
