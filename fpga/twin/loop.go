package twin

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/pass"
)

// loop is the program that hosts beside the twin wait for. Its clock is the device's, from when the loop was opened.
type loop struct {
	aggregator.Loop
	twin *Twin
	zero int64 // device cycle at which the hosts' clock was 0
}

var _ fpga.Looper = (*Twin)(nil)

// OpenLoop makes the chosen program anew, with a table as long as its hosts ask for, and counts of its own behind those that
// there are. It may be the one that only passes on.
func (t *Twin) OpenLoop(build program.Config) (program.Program, error) {
	b := &t.front
	if !t.queue.enabled || t.queue.frozen {
		return nil, fmt.Errorf("%w: the data path is stopped; enable the queue", fpga.ErrRefused)
	}
	of := b.program
	if of == nil {
		passing := pass.Describe()
		of = &passing
	}
	p, err := of.New(build)
	if err != nil {
		return nil, err
	}
	t.endSums()
	if b.running() != nil {
		b.own.Add(t.frontCounts())
	}
	b.Aggregator, b.peak = nil, 0
	b.loop = &loop{Loop: aggregator.Loop{Program: p, Of: of, Tables: t.admission}, twin: t, zero: t.now}
	b.config.h = -1 // as no register says, so that whoever configures the queue next has the block built anew
	t.queue.config.front = b.config
	return b.loop, nil
}

// admission is what the tables know of jobs now; nil where they know nothing.
func (t *Twin) admission() aggregator.Admission {
	t.tables.refresh()
	a, _ := t.tables.lookup.(aggregator.Admission)
	return a
}

// Receive lets the device's time pass up to the first cycle in which the packet is there, and presents it.
func (l *loop) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	cycle := cycleBy(now)
	l.twin.reach(l.zero + cycle)
	l.twin.presents()
	class := l.Program.Receive(cycleTime(cycle), from, p, lanes, out)
	l.twin.front.peak = max(l.twin.front.peak, l.Program.Occupied())
	return class
}

// reach lets device time pass up to a cycle; nothing there can fail, and nobody waits for it.
func (t *Twin) reach(cycle int64) {
	if cycle > t.now && cycle <= maxCycle {
		_ = t.run(context.Background(), cycle)
	}
}
