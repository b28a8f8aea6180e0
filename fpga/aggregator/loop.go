package aggregator

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Admission is what a card's tables know of the jobs of switch programs; without it everybody is admitted.
type Admission interface {
	// Admits says whether a worker may contribute to a job of a program, which its cluster is.
	Admits(d *program.Description, cluster olaf.ClusterID, worker olaf.WorkerID) bool
	// Jobs are those that the tables of a program say, by id; has is false where there are none of its tables.
	Jobs(d *program.Description) (jobs []program.Job, has bool)
}

// Loop is a card's program as hosts have it that wait for what it sends: they begin and end its jobs, as far as the tables have them.
type Loop struct {
	program.Program
	Of *program.Description
	// Tables are those of the moment; nil where nobody keeps any.
	Tables func() Admission
	jobs   []olaf.ClusterID
}

// Configure admits a job as the program's tables have it, where there are any.
func (l *Loop) Configure(j program.Job) error {
	if tables := l.Tables(); tables != nil {
		if err := told(tables, l.Of, &j); err != nil {
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
func told(tables Admission, d *program.Description, j *program.Job) error {
	jobs, has := tables.Jobs(d)
	if !has {
		return nil
	}
	entries, err := d.Entries(*j)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(jobs, func(k program.Job) bool { return k.ID == j.ID }); i >= 0 && jobs[i].Parent &&
		!j.Parent {
		return fmt.Errorf("%w: the tables of %s have a switch above job %d, and none would answer its hosts; remove it", fpga.ErrRefused, d.Name, j.ID)
	}
	for _, want := range d.Jobs(entries, func(olaf.ClusterID) []program.Member { return j.Members }) {
		if !slices.ContainsFunc(jobs, func(k program.Job) bool {
			return k.ID == want.ID && k.Base == want.Base && k.Slots == want.Slots &&
				len(k.Members) == len(want.Members)
		}) {
			return fmt.Errorf("%w: the tables of %s have no job %d of %s that begins at slot %d", fpga.ErrRefused,
				d.Name, j.ID, olaf.Plural(len(j.Members), "worker"), want.Base)
		}
	}
	return nil
}

// Remove ends a job.
func (l *Loop) Remove(id olaf.ClusterID) {
	l.Program.Remove(id)
	l.jobs = slices.DeleteFunc(l.jobs, func(other olaf.ClusterID) bool { return other == id })
}

// Clear ends every job.
func (l *Loop) Clear() {
	for len(l.jobs) > 0 {
		l.Remove(l.jobs[0])
	}
}

// Partial is the slot at a place among those that are held; false beyond the last.
func (l *Loop) Partial(index int) (p Partial, ok bool) {
	for i := range l.Slots() {
		s := l.Slot(i)
		switch {
		case !s.Held:
		case index == 0:
			return Partial{Place: i, Slot: s}, true
		default:
			index--
		}
	}
	return p, false
}

// Counters are what a program has counted, as registers have it.
func Counters(p program.Program) (c regmap.AggregatorCounters) {
	for i, n := range p.Counts() {
		*c.At(regmap.AggregatorCount0 + uint32(8*i)) = n
	}
	return c
}

// Cleared is what must be added to a program's counters so that they begin anew: levels stay, and what they stand at is carried over.
func Cleared(p program.Program, l *olaf.Ledger) (c regmap.AggregatorCounters) {
	for i, n := range p.Counts() {
		if l.Counters[i].Gauge {
			c.CarriedVectors += n
		} else {
			*c.At(regmap.AggregatorCount0 + uint32(8*i)) = -n
		}
	}
	return c
}
