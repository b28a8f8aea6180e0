package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// Scenario is a policy with or without places in the switches.
type Scenario struct {
	Name   string
	Policy Name
	INC    bool
}

// Scenarios returns the paper's four scenarios in the order of the paper. Each TW scenario follows the FCFS scenario
// with the same switches.
func Scenarios() []Scenario {
	return []Scenario{{"noINC-FCFS", FCFS, false}, {"noINC-TW", TW, false}, {"INC-FCFS", FCFS, true}, {"INC-TW", TW, true}}
}

// Axis is a parameter of a workload that a comparison varies.
type Axis struct {
	Name, Label string // on the command line, and in a figure with its unit
	set         func(s *sched.Workload, v float64)
	integer     bool
	time        bool // the values are in seconds
}

// Axes returns all axes.
func Axes() []Axis {
	return []Axis{
		{"jobs", "jobs", func(s *sched.Workload, v float64) { s.Jobs = int(v) }, true, false},
		{"units", "units", func(s *sched.Workload, v float64) { s.Units = int(v) }, true, false},
		{"ports", "ports of a unit", func(s *sched.Workload, v float64) { s.Ports = int(v) }, true, false},
		{"inc", "jobs that a switch aggregates for", func(s *sched.Workload, v float64) { s.INC = int(v) }, true, false},
		{"arrivals", "jobs that arrive a second", func(s *sched.Workload, v float64) { s.PerSecond = v }, false, false},
		{"local", "share of jobs in one unit", func(s *sched.Workload, v float64) { s.Local = v }, false, false},
		{"slot", "length of a slot, s", func(s *sched.Workload, v float64) {
			s.Slot = olaf.Duration(math.Round(v * float64(olaf.Second)))
		}, false, true},
	}
}

// FindAxis returns the axis with the given name. The error matches sched.ErrProblem and lists all axes.
func FindAxis(name string) (Axis, error) {
	var names []string
	for _, a := range Axes() {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Axis{}, &sched.Error{What: fmt.Sprintf("nothing called %q can be varied; there are %s", name, strings.Join(names, ", "))}
}

// Values parses the values of an axis in the grammar that all sweeps share (package axis), such as 8..64:x2. Times
// without a unit are in seconds. The error matches grid.ErrSweep.
func (a *Axis) Values(text string) (values []float64, err error) {
	of, unit := grid.Real, 1.0
	switch {
	case a.integer:
		of = grid.Integer
	case a.time && strings.Trim(text, "0123456789.,:x/ ") != "":
		of, unit = grid.Duration, 1e9
	}
	listed, err := grid.ParseAxis(a.Name, of, text)
	if err != nil {
		return nil, err
	}
	for _, value := range listed.Values {
		v, _ := of.Number(value) // the value was just parsed
		if v /= unit; !(v >= 0 && v <= 1e9) {
			return nil, fmt.Errorf("%w %s=%s: %s is not from 0 on", grid.ErrSweep, a.Name, text, value)
		}
		values = append(values, v)
	}
	return values, nil
}

// Specs returns a copy of base for each value of the axis. The error matches sched.ErrProblem.
func (a *Axis) Specs(base sched.Workload, values []float64) ([]sched.Workload, error) {
	specs := make([]sched.Workload, len(values))
	for i, v := range values {
		if a.integer && v != math.Trunc(v) {
			return nil, &sched.Error{What: fmt.Sprintf("%s: %v is no whole number", a.Name, v)}
		}
		specs[i] = base
		a.set(&specs[i], v)
	}
	return specs, nil
}

// Cell contains the results of all scenarios for one workload.
type Cell struct {
	Spec     sched.Workload
	Outcomes [][]sched.Outcome // by scenario and seed
}

// Cells plans all scenarios for all workloads, in parallel. Each workload is planned with the given number of seeds,
// which begin at the workload's own seed. All scenarios have the same jobs for a seed. Every plan is checked. A broken
// rule or an unfinished job is an error. If onProgress is not nil, it is called after each plan, from any goroutine.
func Cells(ctx context.Context, specs []sched.Workload, seeds int, onProgress func(done, total int)) ([]Cell, error) {
	cells := make([]Cell, len(specs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for i := range specs {
		cells[i] = Cell{Spec: specs[i], Outcomes: make([][]sched.Outcome, len(Scenarios()))}
		for k := range cells[i].Outcomes {
			cells[i].Outcomes[k] = make([]sched.Outcome, seeds)
		}
		for k := range seeds {
			group.Go(func() error {
				spec := specs[i]
				spec.Seed += uint64(k)
				if err := plans(ctx, spec, k, cells[i].Outcomes); err != nil {
					return fmt.Errorf("%d jobs, seed %d: %w", spec.Jobs, spec.Seed, err)
				}
				if n := done.Add(1); onProgress != nil {
					onProgress(int(n), len(specs)*seeds)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return cells, nil
}

// plans plans one workload and sets outcome k of every scenario.
func plans(ctx context.Context, spec sched.Workload, k int, outcomes [][]sched.Outcome) error {
	p, err := sched.GenerateProblem(spec)
	if err != nil {
		return err
	}
	for i, s := range Scenarios() {
		of := p
		if !s.INC {
			of = p.WithINC(0)
		}
		plan, err := PlanChecked(ctx, of, s.Policy)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		outcomes[i][k] = plan.Outcome
	}
	return nil
}

// PlanChecked plans like Plan, with all repairs. It returns an error if the checker finds a broken rule.
func PlanChecked(ctx context.Context, p *sched.Problem, name Name) (*sched.Plan, error) {
	plan, err := Plan(ctx, p, name, Options{Repairs: sched.AllRepairs})
	if err != nil {
		return nil, err
	}
	if v := sched.CheckPlan(plan); !v.OK() {
		return nil, errors.New(v.Violations[0].What)
	}
	return plan, nil
}

// Metric is a number that is computed from the outcome of a plan.
type Metric struct {
	Title, Label string // a figure's title, and its axis label with the unit
	Of           func(o *sched.Outcome, jobs int) float64
}

// The metrics.
var (
	CTBTI            = Metric{"CT-BTI", "s", func(o *sched.Outcome, _ int) float64 { return o.CTBTI.Seconds() }}
	MeanJCT          = Metric{"Mean JCT", "s", func(o *sched.Outcome, jobs int) float64 { return o.MeanJCT(jobs).Seconds() }}
	Reconfigurations = Metric{"Reconfigurations", "connections set up",
		func(o *sched.Outcome, _ int) float64 { return float64(o.Reconfigurations) }}
)

// Values returns the values of a metric in one scenario, by seed.
func (c *Cell) Values(scenario int, m Metric) []results.Float {
	values := make([]results.Float, len(c.Outcomes[scenario]))
	for k := range values {
		values[k] = results.Float(m.Of(&c.Outcomes[scenario][k], c.Spec.Jobs))
	}
	return values
}

// Worse returns the number of seeds for which a TW scenario takes longer than the FCFS scenario with the same switches.
// It is 0 for FCFS scenarios.
func (c *Cell) Worse(scenario int) (n int) {
	if Scenarios()[scenario].Policy != TW {
		return 0
	}
	for k := range c.Outcomes[scenario] {
		if c.Outcomes[scenario][k].CTBTI > c.Outcomes[scenario-1][k].CTBTI {
			n++
		}
	}
	return n
}

// Metrics returns all metrics of a plan.
func Metrics() []Metric { return []Metric{CTBTI, MeanJCT, Reconfigurations} }

// Panels returns panels that show the metrics over the values of an axis, with a series for each scenario. suffix is
// appended to the name of each panel.
func (a *Axis) Panels(values []float64, cells []Cell, metrics []Metric, suffix string) (panels []result.Panel) {
	for _, m := range metrics {
		p := result.Panel{Name: m.Title + suffix, XLabel: a.Label, YLabel: m.Label}
		for k, s := range Scenarios() {
			one := result.Series{Name: s.Name}
			for i := range cells {
				one.X, one.Y = append(one.X, values[i]), append(one.Y, results.Describe(cells[i].Values(k, m), "no seed"))
			}
			p.Series = append(p.Series, one)
		}
		panels = append(panels, p)
	}
	return panels
}
