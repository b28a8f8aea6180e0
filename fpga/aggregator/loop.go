package aggregator

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Admission looks up workers and jobs in a card's tables. Without an Admission, all workers are admitted.
type Admission interface {
	// Admits reports whether a worker may contribute to a job of a program; the job's id is the cluster.
	Admits(d *program.Description, cluster olaf.ClusterID, worker olaf.WorkerID) bool
	// Jobs returns the jobs in a program's tables, sorted by id. has is false if the program has no tables.
	Jobs(d *program.Description) (jobs []program.Job, has bool)
}

// Loop is a card's switch program for closed-loop hosts. Hosts start and end jobs; if the card has tables, only jobs in
// the tables can be started.
type Loop struct {
	program.Program
	Of *program.Description
	// Tables returns the current tables; nil means none.
	Tables func() Admission
	jobs   []olaf.ClusterID
}

// Configure starts a job, after checking it against the program's tables if there are any.
func (l *Loop) Configure(j program.Job) error {
	if tables := l.Tables(); tables != nil {
		if err := checkTables(tables, l.Of, &j); err != nil {
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

// checkTables returns an error if the job is not in the tables, or if its number of members or its slots differ.
func checkTables(tables Admission, d *program.Description, j *program.Job) error {
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
		return fmt.Errorf("%w: the tables of %s have a switch above job %d, and none would answer its hosts; "+
			"remove it", fpga.ErrRefused, d.Name, j.ID)
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

// Partial returns the contents of the occupied slot with the given index, counting only occupied slots. ok is false if
// there are fewer occupied slots.
func (l *Loop) Partial(index int) (p Partial, ok bool) {
	for i := range l.Slots() {
		s := l.Slot(i)
		switch {
		case !s.Occupied:
		case index == 0:
			return Partial{Place: i, Slot: s}, true
		default:
			index--
		}
	}
	return p, false
}

// ReadCounters returns a program's counts as the values of the aggregator's counter registers.
func ReadCounters(p program.Program) (c regmap.AggregatorCounters) {
	for i, n := range p.Counts() {
		*c.At(regmap.AggregatorCount0 + uint32(8*i)) = n
	}
	return c
}

// ClearOffsets returns the values that must be added to a program's counters so that they restart at 0. Gauges are not
// cleared; their sum is returned as CarriedVectors.
func ClearOffsets(p program.Program, l *olaf.Ledger) (c regmap.AggregatorCounters) {
	for i, n := range p.Counts() {
		if l.Counters[i].Gauge {
			c.CarriedVectors += n
		} else {
			*c.At(regmap.AggregatorCount0 + uint32(8*i)) = -n
		}
	}
	return c
}
