// Package sweep compares the policies with and without switches that aggregate (the paper's four scenarios, §VII-A) over
// numbers of jobs and seeds.
package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/check"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/experiments/sched/workload"
	"github.com/olafctl/olaf/results"
)

// Scenario is a policy with or without places in the switches.
type Scenario struct {
	Name   string
	Policy policy.Name
	INC    bool
}

// Scenarios are the paper's four, in its order.
func Scenarios() []Scenario {
	return []Scenario{{"noINC-FCFS", policy.FCFS, false}, {"noINC-TW", policy.TW, false}, {"INC-FCFS", policy.FCFS, true}, {"INC-TW", policy.TW, true}}
}

// Row is one scenario at one number of jobs, over the seeds.
type Row struct {
	Jobs             int               `json:"jobs"`
	Scenario         string            `json:"scenario"`
	CTBTI            results.Statistic `json:"ct_bti_s"`
	MeanJCT          results.Statistic `json:"mean_jct_s"`
	Reconfigurations results.Statistic `json:"reconfigurations"`
	// Worse counts the seeds in which TW takes longer than FCFS does with the same switches; 0 of a row of FCFS.
	Worse int `json:"seeds_worse_than_fcfs"`
}

// Run plans every scenario at every number of jobs under so many seeds, from the spec's on. All scenarios of a seed have
// the same jobs. Every plan is checked; one that breaks a rule is an error, and so are jobs that a policy can't finish.
func Run(ctx context.Context, base workload.Spec, jobs []int, seeds int) ([]Row, error) {
	var rows []Row
	for _, n := range jobs {
		outcomes := make([][]sched.Outcome, len(Scenarios()))
		for k := range seeds {
			spec := base
			spec.Jobs, spec.Seed = n, base.Seed+uint64(k)
			if err := plans(ctx, spec, outcomes); err != nil {
				return nil, fmt.Errorf("%d jobs, seed %d: %w", n, spec.Seed, err)
			}
		}
		rows = append(rows, rowsOf(n, outcomes)...)
	}
	return rows, nil
}

// plans appends the outcome of every scenario of one workload.
func plans(ctx context.Context, spec workload.Spec, outcomes [][]sched.Outcome) error {
	p, err := workload.Generate(spec)
	if err != nil {
		return err
	}
	for i, s := range Scenarios() {
		of := p
		if !s.INC {
			of = p.WithINC(0)
		}
		plan, err := policy.Plan(ctx, of, s.Policy, policy.Options{Repairs: sched.AllRepairs})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if v := check.Check(plan); !v.OK() {
			return fmt.Errorf("%s: %w", s.Name, errors.New(v.Violations[0].What))
		}
		outcomes[i] = append(outcomes[i], plan.Outcome)
	}
	return nil
}

// rowsOf describes the outcomes of every scenario. The one before TW's is FCFS with the same switches.
func rowsOf(jobs int, outcomes [][]sched.Outcome) []Row {
	var rows []Row
	for i, s := range Scenarios() {
		over := func(of func(*sched.Outcome) float64) results.Statistic {
			var values []results.Float
			for k := range outcomes[i] {
				values = append(values, results.Float(of(&outcomes[i][k])))
			}
			return results.Describe(values, "no seed")
		}
		row := Row{
			Jobs: jobs, Scenario: s.Name,
			CTBTI:            over(func(o *sched.Outcome) float64 { return o.CTBTI.Seconds() }),
			MeanJCT:          over(func(o *sched.Outcome) float64 { return o.MeanJCT(jobs).Seconds() }),
			Reconfigurations: over(func(o *sched.Outcome) float64 { return float64(o.Reconfigurations) }),
		}
		for k := range outcomes[i] {
			if s.Policy == policy.TW && outcomes[i][k].CTBTI > outcomes[i-1][k].CTBTI {
				row.Worse++
			}
		}
		rows = append(rows, row)
	}
	return rows
}
