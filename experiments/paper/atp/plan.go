package atp

import (
	"context"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// LabName is what the cluster is called.
const LabName = "atp-lab"

// Plan is everything that decides jobs that share a switch. It is written as JSON, and what is read back gives the same again.
type Plan struct {
	Grid  *Grid    `json:"grid"`
	Seeds []uint64 `json:"seeds"`
	// Cells is how many cells of the grid were whole, the first ones, and Of how many runs there were to be, of a plan that was left before its
	// end. They are 0 of a whole one.
	Cells int `json:"cells,omitempty"`
	Of    int `json:"of,omitempty"`
	// Systems are those that there are to choose from.
	Systems system.Set `json:"-"`
}

// Report is what they did, with the plan that gives it again.
type Report struct {
	bench.Report
	plan *Plan
}

// Run carries the plan out. done is called after each run; nil for nobody. Whoever ends it is told of what was whole by then, as of a plan of
// that alone, which gives it again.
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

// Runs is how many single runs there are.
func (p *Plan) Runs() int {
	if p.Cells > 0 {
		return p.Cells * len(p.Seeds)
	}
	return p.Grid.Runs(len(p.Seeds))
}

// ReplayPlan is the plan.
func (r *Report) ReplayPlan() any { return r.plan }

// Configurations returns the outcomes in the form that expectations judge.
func (r *Report) Configurations() (rows []results.Row) {
	for _, o := range r.plan.Grid.Outcomes() {
		rows = append(rows, o.Row())
	}
	return rows
}

// RunsFile holds the single runs of documents that earlier versions kept, as job.NamedRuns reads them.
const RunsFile = "by_seed.json"
