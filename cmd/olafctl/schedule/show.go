package schedule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/schedule"
)

// Size of a drawing without --all, about a screen.
const (
	ganttColumns = 80
	ganttJobs    = 40
)

// svgFormat is the output format for a drawing of the jobs over time.
const svgFormat cli.Format = "svg"

// ganttFlags are the flags of schedule show.
type ganttFlags struct {
	all, watch bool
	to         cli.Exports
	view       cli.ViewFlags
	out        cli.Format
}

func newScheduleShowCmd(env *cli.Env) *cobra.Command {
	f := new(ganttFlags)
	cmd := &cobra.Command{
		Use:   "show PLAN.json",
		Short: "Draw a plan: jobs over time, switch slots, ports, reconfigurations",
		Example: `  olafctl schedule show plan.json
  olafctl schedule show plan.json --tui
  olafctl schedule show plan.json -o svg > gantt.svg
  olafctl schedule show plan.json --all --report plan.html --svg figures`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.showPlan(cmd, env, args[0]) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "print every job and slot")
	f.to.Add(flags, "report", "write a self-contained HTML report")
	f.to.Add(flags, "svg", "write the figures to this folder as SVG")
	cli.AddForce(flags, &f.to.Force, "existing files")
	cli.InGroup(cmd, cli.DashboardFlags, func() {
		flags.BoolVar(&f.watch, "tui", false, "show the plan slot by slot; without a terminal, print it")
	})
	f.view.AddLooks(cmd)
	cli.AddFormatFlag(cmd, &f.out, cli.Table, cli.JSON, svgFormat)
	return cmd
}

// showPlan draws a plan in the requested formats.
func (f *ganttFlags) showPlan(cmd *cobra.Command, env *cli.Env, file string) error {
	plan, err := ReadPlan(file)
	if err != nil {
		return err
	}
	if err := f.to.CheckNames(); err != nil {
		return err
	}
	v := sched.CheckPlan(plan)
	if !v.OK() && v.Violations[0].Rule == sched.BadForm {
		return rulesError(v) // there is nothing to draw
	}
	columns, jobs := ganttColumns, ganttJobs
	if f.all {
		columns, jobs = plan.Slots, 0
	}
	if !f.to.IsEmpty() {
		if err := exportPlan(env, plan, v, jobs, &f.to); err != nil {
			return err
		}
	}
	if !f.watch {
		if err := cli.RefuseViewFlags(cmd); err != nil {
			return err
		}
	} else if !f.view.IsPlain(env) && f.out == cli.Table {
		return watchPlan(cmd.Context(), env, &f.view, plan, v)
	}
	switch f.out {
	case cli.JSON:
		return cli.WriteJSON(env.Stdout, plan)
	case svgFormat:
		return figure.Write(env.Stdout, string(svgFormat), &plan.Sheets(jobs)[0])
	}
	if err := writePlan(env.Stdout, plan, v); err != nil {
		return err
	}
	return plan.Gantt(env.Stdout, columns, jobs)
}

// watchPlan shows a plan on the dashboard until the user leaves.
func watchPlan(ctx context.Context, env *cli.Env, view *cli.ViewFlags, plan *sched.Plan, v *sched.Verdict) error {
	options, err := view.DashboardOptions(env)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := writePlan(&text, plan, v); err != nil {
		return err
	}
	pages := schedule.New(plan, strings.Split(strings.TrimSpace(text.String()), "\n"), !v.OK())
	_, err = view.NewProgram(ctx, tui.New(pages, options), tea.WithInput(env.Stdin), tea.WithOutput(env.Screen())).Run()
	if errors.Is(err, tea.ErrProgramKilled) {
		return ctx.Err()
	}
	return err
}

// exportPlan writes figures and a report for a plan.
func exportPlan(env *cli.Env, plan *sched.Plan, v *sched.Verdict, jobs int, to *cli.Exports) error {
	config, err := json.Marshal(plan.Policy)
	if err != nil {
		return err
	}
	r := &sheets.Result{DocumentOnly: true, Own: plan.Sheets(jobs), Bench: &results.Bench{
		Schema: results.BenchSchema, Experiment: "schedule", Provenance: cli.NewProvenance(env, env.Now()),
		Config: config, Statements: []string{
			fmt.Sprintf("%d jobs, %d slots of %v; CT-BTI %v, mean JCT %.3f s, %d connections set up", len(plan.Jobs),
				plan.Slots, plan.Problem.Slot, plan.Outcome.CTBTI,
				plan.Outcome.MeanJCT(len(plan.Jobs)).Seconds(), plan.Outcome.Reconfigurations),
			describeVerdict(v),
		},
	}}
	if !v.OK() {
		r.Invalid = []string{"the plan breaks rules: " + v.Summary()}
	}
	return to.WriteFiles(env, r)
}
