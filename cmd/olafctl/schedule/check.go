package schedule

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched"
)

func newScheduleCheckCmd(env *cli.Env) *cobra.Command {
	var (
		jobs string
		out  cli.Format
	)
	cmd := &cobra.Command{
		Use:   "check PLAN.json",
		Short: "Check any plan against every rule",
		Long: `Check a plan against every rule of its network and jobs. The checker shares no code with the planners. Exit code 0: every
rule is kept; 4: some are broken.`,
		Example: `  olafctl schedule check plan.json
  olafctl schedule check plan.json --for jobs.yaml      # and refuse a plan for another network`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			plan, err := ReadPlan(args[0])
			if err != nil {
				return err
			}
			if jobs != "" {
				if err := checkPlanFor(plan, args[0], jobs); err != nil {
					return err
				}
			}
			v := sched.CheckPlan(plan)
			if out == cli.JSON {
				err = cli.WriteJSON(env.Stdout, struct {
					cli.Head
					OK bool `json:"ok"`
					*sched.Verdict
				}{cli.Check("schedule"), v.OK(), v})
			} else {
				_, err = fmt.Fprint(env.Stdout, describeVerdict(v))
			}
			if err != nil {
				return err
			}
			return rulesError(v)
		},
	}
	cmd.Flags().StringVar(&jobs, "for", "", "jobs file to check the plan against")
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	return cmd
}

// checkPlanFor rejects a plan if its network or its jobs differ from those in a file.
func checkPlanFor(plan *sched.Plan, name, jobs string) error {
	p, err := readJobs(jobs)
	if err != nil {
		return err
	}
	if differ := sched.Differences(p, plan.Problem); len(differ) > 0 {
		return cli.UsageError("%s is a plan for another network than %s; %s", name, jobs, strings.Join(differ, "; "))
	}
	return nil
}
