package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// Scheduled is the specification of a cell that plans a workload in one scenario.
type Scheduled struct {
	Workload sched.Workload `json:"workload"`
	Scenario string         `json:"scenario"`
}

var planned = makeMetrics(row{"ct_bti_s", "Completion time", "s"}, row{"mean_jct_s", "Mean job completion time", "s"},
	row{"reconfigurations", "Reconfigurations", ""})

// PlanMetrics returns the metrics of a Scheduled.
func PlanMetrics() []*metric.Metric { return planned }

// Plan plans the jobs for the runs from to from+n of a Scheduled. It checks every plan.
func Plan(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	s, err := readSpec[Scheduled](spec)
	if err != nil {
		return nil, err
	}
	all := policy.Scenarios()
	at := slices.IndexFunc(all, func(one policy.Scenario) bool { return one.Name == s.Scenario })
	if at < 0 {
		return nil, fmt.Errorf("there is no scenario %q", s.Scenario)
	}
	lot := newLot(planned)
	first := s.Workload.Seed
	for i := range n {
		s.Workload.Seed = first + uint64(from+i)
		problem, err := sched.GenerateProblem(s.Workload)
		if err != nil {
			return nil, err
		}
		if !all[at].INC {
			problem = problem.WithINC(0)
		}
		plan, err := policy.Plan(ctx, problem, all[at].Policy, policy.Options{Repairs: sched.AllRepairs})
		if err != nil {
			return nil, err
		}
		run := sweep.Run{Seed: s.Workload.Seed}
		if v := sched.CheckPlan(plan); !v.OK() {
			run.Invalid = v.Violations[0].What
		}
		run.Values = floats(plan.Outcome.CTBTI.Seconds(), plan.Outcome.MeanJCT(s.Workload.Jobs).Seconds(),
			float64(plan.Outcome.Reconfigurations))
		lot.Runs = append(lot.Runs, run)
	}
	return lot, nil
}
