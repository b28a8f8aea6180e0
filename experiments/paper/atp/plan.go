package atp

import (
	"context"
	"encoding/json"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// LabName is what the cluster is called.
const LabName = "atp-lab"

// Plan is everything that decides jobs that share a switch. It is written as JSON, and what is read back gives the same again.
type Plan struct {
	Grid  *Grid    `json:"grid"`
	Seeds []uint64 `json:"seeds"`
	// Systems are those that there are to choose from.
	Systems system.Set `json:"-"`
}

// Report is what they did, with the plan that gives it again.
type Report struct {
	bench.Report
	plan  *Plan
	cells []Cell
}

// Run carries the plan out. done is called after each run; nil for nobody.
func (p *Plan) Run(ctx context.Context, done func()) (*Report, error) {
	table, err := p.Grid.Table(ctx, p.Systems, LabName, "jobs that share a switch", p.Seeds, done)
	if err != nil {
		return nil, err
	}
	cells, err := p.Grid.Cells(p.Systems)
	if err != nil {
		return nil, err
	}
	return &Report{table, p, cells}, nil
}

// Runs is how many single runs there are.
func (p *Plan) Runs() int { return p.Grid.Runs(len(p.Seeds)) }

// Made is the plan.
func (r *Report) Made() any { return r.plan }

// Rows are the outcomes as rows of results.
func (r *Report) Rows() (rows []results.Row) {
	for _, o := range r.plan.Grid.Outcomes() {
		rows = append(rows, o.Row())
	}
	return rows
}

// RunsFile is what such jobs are kept with: their single runs, as job.NamedRuns reads them. The document has statistics of them.
const RunsFile = "by_seed.json"

// Files implements bench.Attaching.
func (r *Report) Files() (map[string][]byte, error) {
	var all []job.Named
	for i, o := range r.plan.Grid.Outcomes() {
		all = append(all, o.Named(r.cells[i].Name(), r.plan.Seeds))
	}
	text, err := json.Marshal(all)
	return map[string][]byte{RunsFile: append(text, '\n')}, err
}
