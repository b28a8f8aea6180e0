package lab

import (
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// runsInKernel reports whether the adder's program runs in the kernel and not in this process.
func (a *Adder) runsInKernel() bool { return a.Aggregator != nil }

// addInUserSpace runs the aggregating program of a node in this process, on the node's socket. It assigns no epochs, so
// each job must choose its first epoch.
func (l *Lab) addInUserSpace(p *PlannedAdder) error {
	a := &Adder{Planned: p, latched: map[string]uint64{}}
	l.Adders = append(l.Adders, a)
	parent, err := l.parent(p.Node)
	if err != nil {
		return err
	}
	return l.serve(a, parent.Child)
}

// kernelNames maps the names of the program's counters to their names in the kernel.
var kernelNames = map[string]string{
	xagg.Describe().Ledger.Counters[xagg.Duplicate].Name:  "duplicate",
	xagg.Describe().Ledger.Counters[xagg.Mismatched].Name: "mismatched",
}

// Latch returns the increase of the counters since the last call, by their names in the kernel.
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

// Decisions calls visit for each decision that the kernel made since the last call. A program in this process logs no
// decisions.
func (a *Adder) Decisions(visit func(*dataplane.Decision)) error {
	if a.runsInKernel() {
		return a.Aggregator.Decisions(visit)
	}
	return nil
}

// Close removes the adder's program from the kernel. It does nothing for a program in this process.
func (a *Adder) Close() error {
	if a.runsInKernel() {
		return a.Aggregator.Close()
	}
	return nil
}
