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

// loop runs the switch program of closed-loop hosts. The hosts' clock has the rate of the device clock and starts when
// the loop is opened.
type loop struct {
	aggregator.Loop
	twin *Twin
	zero int64 // device cycle at which the hosts' clock was 0
}

var _ fpga.Looper = (*Twin)(nil)

// OpenLoop creates the selected program with a table of the size that its hosts request. The program's counts are added
// to the counts of the block. The pass-through program can be selected as well.
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
	if b.activeProgram() != nil {
		b.own.Add(t.frontCounts())
	}
	b.Aggregator, b.peak = nil, 0
	b.loop = &loop{Loop: aggregator.Loop{Program: p, Of: of, Tables: t.jobTables}, twin: t, zero: t.now}
	b.config.h = -1 // an impossible value, so that the next configuration of the queue rebuilds the block
	t.queue.config.front = b.config
	return b.loop, nil
}

// jobTables returns the current tables of jobs, or nil if there are no tables.
func (t *Twin) jobTables() aggregator.Admission {
	t.tables.refresh()
	a, _ := t.tables.lookup.(aggregator.Admission)
	return a
}

// Receive advances device time to the first cycle in which the packet has arrived completely, and passes the packet to
// the program.
func (l *loop) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	cycle := cycleBy(now)
	l.twin.runUntil(l.zero + cycle)
	l.twin.countHeld()
	class := l.Program.Receive(cycleTime(cycle), from, p, lanes, out)
	l.twin.front.peak = max(l.twin.front.peak, l.Program.CountOccupied())
	return class
}

// runUntil advances device time to a cycle. It cannot fail, because its context is never canceled.
func (t *Twin) runUntil(cycle int64) {
	if cycle > t.now && cycle <= maxCycle {
		_ = t.handleEvents(context.Background(), cycle)
	}
}
