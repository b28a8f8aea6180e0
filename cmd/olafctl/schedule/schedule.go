// Package schedule implements 'olafctl schedule', which plans, checks, shows and plays schedules of jobs on switches
// and optical links.
package schedule

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Schedule jobs: switch memory, start times and optical links",
		Long: `Schedule jobs on racks with programmable switches behind an optical cross-connect: which switch aggregates for which job,
when each job sends, and which racks are connected when (P4INC-AOI; docs/guide/scheduling.md).`,
	}
	cmd.AddCommand(newScheduleJobsCmd(env), newSchedulePlanCmd(env), newScheduleCheckCmd(env), newScheduleShowCmd(env),
		newScheduleApplyCmd(env), newScheduleSweepCmd(env))
	return cmd
}

func readJobs(path string) (*sched.Problem, error) { return parseFile(path, sched.ParseProblem) }

// ReadPlan reads a plan. It checks the plan's form but not the scheduling rules.
func ReadPlan(path string) (*sched.Plan, error) { return parseFile(path, sched.ParsePlan) }

func parseFile[T any](path string, parse func(name string, text []byte) (*T, error)) (*T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.UsageError("%v", err)
	}
	return parse(path, text)
}

// rulesError returns the error for a plan that breaks rules, or nil if it breaks none.
func rulesError(v *sched.Verdict) error {
	if v.OK() {
		return nil
	}
	return &cli.Exit{Kind: olaf.Missed, Err: errors.New("the plan breaks rules: " + v.Summary())}
}
