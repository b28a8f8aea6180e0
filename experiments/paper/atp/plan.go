package atp

import (
	"context"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// LabName is the name of the modelled cluster.
const LabName = "atp-lab"

// Plan describes a grid of jobs that share a switch, and the seeds. Its JSON form is enough to repeat the runs.
type Plan struct {
	Grid  *Grid    `json:"grid"`
	Seeds []uint64 `json:"seeds"`
	// Cells is the number of complete cells in an interrupted plan, counted from the first one. Of is the planned
	// number of runs. Both are 0 for a complete plan.
	Cells int `json:"cells,omitempty"`
	Of    int `json:"of,omitempty"`
	// Systems are the available systems.
	Systems system.Set `json:"-"`
}

// Report contains the results of a plan.
type Report struct {
	result.Report
	plan *Plan
}

// Run runs the plan. It calls done, if not nil, after each run. If ctx ends early, Run also returns a report on the
// finished part, with a plan that reproduces that part.
func (p *Plan) Run(ctx context.Context, done func()) (*Report, error) {
	cells, err := p.Grid.Cells(p.Systems)
	if err != nil {
		return nil, err
	}
	if p.Cells > 0 {
		cells = cells[:min(p.Cells, len(cells))]
	}
	whole, err := p.Grid.play(ctx, cells, p.Seeds, done)
	if err == nil {
		return p.report(cells), nil
	}
	n := len(p.Grid.found)
	if n == 0 || ctx.Err() == nil {
		return nil, err
	}
	left := *p
	left.Cells, left.Of, left.Seeds = n, p.Runs(), whole
	return left.report(cells[:n]), err
}

func (p *Plan) report(cells []Cell) *Report {
	t := p.Grid.table(cells, p.Seeds)
	if p.Of > 0 {
		t.Partial = true
		t.Say("%s", job.DescribePart(p.Runs(), p.Of))
	}
	t.Metrics, t.Seeds = job.Metrics(), p.Seeds
	for i, o := range p.Grid.Outcomes() {
		t.Rows = append(t.Rows, o.NamedRow(cells[i].Name(), p.Seeds))
	}
	return &Report{t, p}
}

// Runs returns the number of single runs in the plan.
func (p *Plan) Runs() int {
	if p.Cells > 0 {
		return p.Cells * len(p.Seeds)
	}
	return p.Grid.Runs(len(p.Seeds))
}

// ReplayPlan returns the plan that reproduces the report when it is run again.
func (r *Report) ReplayPlan() any { return r.plan }

// Configurations returns the outcomes as rows against which expectations are checked.
func (r *Report) Configurations() []results.Row {
	return olaf.Map(r.plan.Grid.Outcomes(), (*job.Outcome).Row)
}

// RunsFile is the name of the file with the single runs in documents of earlier versions. job.NamedRuns reads it.
const RunsFile = "by_seed.json"
