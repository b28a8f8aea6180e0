package schedule

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/cells"
)

// SweepCommand returns the command that sweeps schedules of generated jobs.
func SweepCommand() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "schedule", Subject: "scenario", Headline: []string{"ct_bti_s", "mean_jct_s"},
		Runs: 10, Metrics: cells.PlanMetrics(), Run: cells.Plan}
	c.Options, c.Fields = sweepcmd.OptionsOf(newScheduleCells().Cmd.Flags(), nil, []string{"seed"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newScheduleCells().Begin("schedule", file, options)
	}
	return c
}

func newScheduleCells() *sweepcmd.Cells[cells.Scheduled] {
	all := policy.Scenarios()
	s := &cells.Scheduled{Workload: sched.PaperWorkload(0, 1), Scenario: all[len(all)-1].Name}
	s.Workload.Jobs, s.Workload.Units, s.Workload.Ports = 40, 8, 4
	cells := &sweepcmd.Cells[cells.Scheduled]{Cmd: &cobra.Command{Use: "schedule"}, Flags: s,
		Spec: func(s *cells.Scheduled) (any, error) {
			_, err := sched.GenerateProblem(s.Workload)
			return s, err
		}}
	flags, w := cells.Cmd.Flags(), &s.Workload
	flags.IntVar(&w.Jobs, "jobs", w.Jobs, "number of jobs")
	addWorkload(flags, w)
	flags.Uint64Var(&w.Seed, "seed", w.Seed, "first seed")
	names := olaf.Map(all, func(one policy.Scenario) string { return one.Name })
	cli.Choose(cells.Cmd, &s.Scenario, "scenario", "policy, with or without aggregating switches", names...)
	return cells
}
