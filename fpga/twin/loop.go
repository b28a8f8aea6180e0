package twin

import (
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/pass"
)

// loop is the program that hosts beside the twin wait for. Its clock is the device's, from when the loop was opened.
type loop struct {
	program.Program
	of   *program.Description
	twin *Twin
	zero int64 // device cycle at which the hosts' clock was 0
	jobs []olaf.ClusterID
}

var _ fpga.Looper = (*Twin)(nil)

// OpenLoop makes the chosen program anew, with a table as long as its hosts ask for, and counts of its own behind those that
// there are. It may be the one that only passes on.
func (t *Twin) OpenLoop(build program.Config) (program.Program, error) {
	b := &t.front
	if !t.queue.enabled || t.queue.frozen {
		return nil, fmt.Errorf("%w: the data path stands; enable the queue", fpga.ErrRefused)
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
	b.clear()
	if b.running() != nil {
		b.own.Add(t.frontCounts())
	}
	b.Aggregator, b.peak = nil, 0
	b.loop = &loop{Program: p, of: of, twin: t, zero: t.now}
	b.config.h = -1 // as no register says, so that whoever configures the queue next has the block built anew
	t.queue.config.front = b.config
	return b.loop, nil
}

// Configure admits a job as the program's tables have it, where there are any.
func (l *loop) Configure(j program.Job) error {
	l.twin.tables.refresh()
	if lookup, has := l.twin.tables.lookup.(Admission); has {
		if err := told(lookup, l.of, &j); err != nil {
			return err
		}
	}
	if err := l.Program.Configure(j); err != nil {
		return err
	}
	if !slices.Contains(l.jobs, j.ID) {
		l.jobs = append(l.jobs, j.ID)
	}
	return nil
}

// told says whether tables have a job: with as many members, and with the part of the table that it asks for, as far as they say.
func told(lookup Admission, d *program.Description, j *program.Job) error {
	jobs, has := lookup.Jobs(d)
	if !has {
		return nil
	}
	entries, err := d.Entries(*j)
	if err != nil {
		return err
	}
	for _, want := range d.Jobs(entries, func(olaf.ClusterID) []program.Member { return j.Members }) {
		if !slices.ContainsFunc(jobs, func(k program.Job) bool {
			return k.ID == want.ID && k.Base == want.Base && k.Slots == want.Slots && len(k.Members) == len(want.Members)
		}) {
			return fmt.Errorf("%w: the tables of %s have no job %d of %s that begins at slot %d", fpga.ErrRefused, d.Name, j.ID, olaf.Plural(len(j.Members), "worker"), want.Base)
		}
	}
	return nil
}

// Remove ends a job.
func (l *loop) Remove(id olaf.ClusterID) {
	l.Program.Remove(id)
	l.jobs = slices.DeleteFunc(l.jobs, func(other olaf.ClusterID) bool { return other == id })
}

// clear ends every job.
func (l *loop) clear() {
	for len(l.jobs) > 0 {
		l.Remove(l.jobs[0])
	}
}

// Receive lets the device's time pass up to the first cycle in which the packet is there, and presents it.
func (l *loop) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	cycle := (int64(now) + int64(olaf.Cycle) - 1) / int64(olaf.Cycle)
	l.twin.reach(l.zero + cycle)
	class := l.Program.Receive(cycleTime(cycle), from, p, lanes, out)
	l.twin.front.peak = max(l.twin.front.peak, l.Program.Occupied())
	return class
}

// partial is the slot at a place among those that are held.
func (l *loop) partial(index int) (p aggregator.Partial, ok bool) {
	for i := range l.Slots() {
		s := l.Slot(i)
		switch {
		case !s.Held:
		case index == 0:
			return aggregator.Partial{Place: i, Slot: s}, true
		default:
			index--
		}
	}
	return p, false
}

// reach lets device time pass up to a cycle; nothing there can fail, and nobody waits for it.
func (t *Twin) reach(cycle int64) {
	if cycle > t.now && cycle <= maxCycle {
		_ = t.run(context.Background(), cycle)
	}
}
