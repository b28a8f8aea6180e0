// Package job runs a job of hosts that wait for answers over seeds, of one system or of several side by side, and reports
// what they did.
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

// ErrHung says that a job did not come to its end.
var ErrHung = olaf.NewError(olaf.Failed, "the job hung")

// Spec is a job of one system, which says itself how many values a packet has.
type Spec struct {
	System  *system.System
	Mode    *system.Mode
	Options system.Options
	Network closedloop.Network
	Job     closedloop.Job
}

// Name is how tables tell it apart.
func (s *Spec) Name() string { return s.System.Name + " " + s.Mode.Name }

// parts are what the job's hosts and switches are built from: what the user chose, and what the network says.
func (s *Spec) parts() (system.Parts, error) {
	o := s.Options
	o.Jobs, o.PerRack = max(s.Network.Jobs, 1), s.Network.PerRack
	return s.Mode.Parts(&o)
}

// Check says why hosts and switches can't be built, before anything plays.
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

// Outcome is a job over its seeds.
type Outcome struct {
	Spec    *Spec                // with what a packet has
	Runs    []*closedloop.Result // in the order of the seeds, hung ones too
	Numbers []results.Statistic
	Hung    int
	// Ceiling is the most goodput that the links let a worker have, in bit/s.
	Ceiling int64
	// Endpoints and Program are summed over the runs.
	Endpoints, Program olaf.Counts
}

// Run plays a job for every seed. done is called after each run; nil for nobody.
func Run(ctx context.Context, s *Spec, seeds []uint64, done func()) (*Outcome, error) {
	o, _, err := RunUntil(ctx, s, seeds, done)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// RunUntil is Run, and gives what was whole before an error as well, with its seeds; nil where nothing was.
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

// Play plays a job once, and lets it be followed; nobody follows nil. Frames are not heard.
func Play(ctx context.Context, s *Spec, seed uint64, follow closedloop.Follow) (*closedloop.Result, error) {
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	j := s.Job
	j.PerPacket, j.Follow, j.Tap = parts.PerPacket, follow, nil
	return closedloop.Run(ctx, s.Network, j, parts, s.Mode.Sync, seed)
}

// describe makes the statistics over the runs that came to their end; those that hung are counted.
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
		why := rows[i].Why
		if o.Hung == len(o.Runs) {
			why = "no run came to its end"
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

// Number is the statistic of a row of closedloop.ListRows by its name; missing where there is none.
func (o *Outcome) Number(name string) results.Statistic {
	for i, row := range closedloop.ListRows() {
		if row.Name == name {
			return o.Numbers[i]
		}
	}
	return results.Describe(nil, "no number of that name")
}

// Err is nil when every run came to its end. The error matches ErrHung.
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
	var errs []error
	for _, o := range outcomes {
		errs = append(errs, o.Err())
	}
	return errors.Join(errs...)
}
