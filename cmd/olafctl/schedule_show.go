package main

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched/check"
)

// Without --all a plan is drawn on about a screen.
const (
	ganttColumns = 80
	ganttJobs    = 40
)

func newScheduleShowCmd(env *cli.Env) *cobra.Command {
	var (
		all bool
		out cli.Format
	)
	cmd := &cobra.Command{
		Use:     "show PLAN.json",
		Short:   "Draw a plan: jobs over time, places in switches, ports, reconfigurations",
		Example: "  olafctl schedule show plan.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			plan, err := readPlan(args[0])
			if err != nil {
				return err
			}
			v := check.Check(plan)
			if !v.OK() && v.Violations[0].Rule == check.Form {
				return violated(v) // there is nothing to draw
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, plan)
			}
			if err := writePlan(env.Stdout, plan, v); err != nil {
				return err
			}
			columns, jobs := ganttColumns, ganttJobs
			if all {
				columns, jobs = plan.Slots, 0
			}
			return plan.Gantt(env.Stdout, columns, jobs)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "draw every job and slot")
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	return cmd
}
