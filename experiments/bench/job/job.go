// Package job runs a closed-loop job over seeds, for one system or for several in comparison, and reports the results.
package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ErrHung reports that a job did not finish.
var ErrHung = olaf.NewError(olaf.Failed, "the job hung")

// Spec describes a closed-loop job for one system. The system determines the number of values per packet.
type Spec struct {
	System  *system.System
	Mode    *system.Mode
	Options system.Options
	Network closedloop.Network
	Job     closedloop.Job
}

// Name returns the job's name for tables.
func (s *Spec) Name() string { return s.System.Name + " " + s.Mode.Name }

// parts returns the building blocks for the job's hosts and switches, which depend on the user's options and the
// network.
func (s *Spec) parts() (system.Parts, error) {
	o := s.Options
	o.Jobs, o.PerRack = max(s.Network.Jobs, 1), s.Network.PerRack
	return s.Mode.Parts(&o)
}

// Check checks, without running anything, that the job's hosts and switches can be built.
func (s *Spec) Check() error {
	parts, err := s.parts()
	if err != nil {
		return err
	}
	if err := parts.CheckLoss(s.System.Name, s.Network.Link.Loss); err != nil {
		return err
	}
	j := s.Job
	j.PerPacket = parts.PerPacket
	if _, err = closedloop.PlanJobs(s.Network, j, parts, s.Mode.Sync); err != nil {
		return fmt.Errorf("%s: %w", s.Name(), err)
	}
	return nil
}

// Outcome contains a job's results over its seeds.
type Outcome struct {
	Spec    *Spec                // with the values per packet
	Runs    []*closedloop.Result // in the order of the seeds, including hung ones
	Numbers []results.Statistic
	Hung    int
	// Ceiling is the upper limit that the links set on a worker's goodput, in bit/s.
	Ceiling int64
	// Endpoints and Program are summed over the runs.
	Endpoints, Program olaf.Counts
}

// Run runs a job for every seed. It calls done, if not nil, after each run.
func Run(ctx context.Context, s *Spec, seeds []uint64, done func()) (*Outcome, error) {
	o, _, err := RunUntil(ctx, s, seeds, done)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// RunUntil runs a job like Run. After an error it also returns an outcome of the finished runs, with their seeds, or
// nil if no run finished.
func RunUntil(ctx context.Context, s *Spec, seeds []uint64, done func()) (o *Outcome, whole []uint64, err error) {
	parts, err := s.parts()
	if err != nil {
		return nil, nil, err
	}
	played := *s
	played.Job.PerPacket = parts.PerPacket
	runs, err := closedloop.RunSeeds(ctx, s.Network, played.Job, parts, s.Mode.Sync, seeds, done)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Name(), err)
	}
	o = &Outcome{Spec: &played, Ceiling: closedloop.GoodputCeiling(&played.Network, &parts)}
	for i, r := range runs {
		if r != nil {
			o.Runs, whole = append(o.Runs, r), append(whole, seeds[i])
		}
	}
	if len(whole) == 0 {
		return nil, nil, err
	}
	o.describe()
	return o, whole, err
}

// Play runs a job once; follow may be nil. Frames are not tapped.
func Play(ctx context.Context, s *Spec, seed uint64, follow closedloop.Follow) (*closedloop.Result, error) {
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	j := s.Job
	j.PerPacket, j.Follow, j.Tap = parts.PerPacket, follow, nil
	return closedloop.Run(ctx, s.Network, j, parts, s.Mode.Sync, seed)
}

// describe computes statistics over the finished runs, counts the hung ones, and adds up the counters.
func (o *Outcome) describe() {
	rows := closedloop.ListRows()
	values := make([][]metric.Float, len(rows))
	for _, r := range o.Runs {
		o.Endpoints, o.Program = sum(o.Endpoints, r.Endpoints), sum(o.Program, r.Program)
		if r.Hung {
			o.Hung++
			continue
		}
		for i := range rows {
			values[i] = append(values[i], rows[i].Of(r))
		}
	}
	for i := range rows {
		why := rows[i].Reason
		if o.Hung == len(o.Runs) {
			why = "no run finished"
		}
		o.Numbers = append(o.Numbers, results.Describe(values[i], why))
	}
}

func sum(total, one olaf.Counts) olaf.Counts {
	if one.Ledger() == nil {
		return total
	}
	if total.Ledger() == nil {
		return one.Clone()
	}
	for i := range one.Ledger().Counters {
		total.SetAt(i, total.At(i)+one.At(i))
	}
	return total
}

// Number returns the statistic with the given name from closedloop.ListRows. It is missing if there is no such row.
func (o *Outcome) Number(name string) results.Statistic {
	for i, row := range closedloop.ListRows() {
		if row.Name == name {
			return o.Numbers[i]
		}
	}
	return results.Describe(nil, "no number has that name")
}

// Err returns nil if every run finished. The error matches ErrHung.
func (o *Outcome) Err() error {
	if o.Hung == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s: %d of %d runs", ErrHung, o.Spec.Name(), o.Hung, len(o.Runs))
	if limit := o.Spec.Job.Limit; limit > 0 {
		err = fmt.Errorf("%w, each given %s of virtual time", err, limit)
	}
	return err
}

// Errs joins the errors of several outcomes.
func Errs(outcomes []*Outcome) error {
	return errors.Join(olaf.Map(outcomes, (*Outcome).Err)...)
}
