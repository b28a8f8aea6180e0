package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
)

// planFlags are the flags of schedule plan.
type planFlags struct {
	policy, solver, gap, lp, file string
	repairs                       sched.Repairs
	inc, horizon                  int
	partial, fixed, fewest        bool
	force, quiet                  bool
	limit                         time.Duration
	format                        cli.Format
}

func newSchedulePlanCmd(env *cli.Env) *cobra.Command {
	f := &planFlags{repairs: sched.AllRepairs}
	cmd := &cobra.Command{
		Use:   "plan JOBS.yaml",
		Short: "Plan the jobs in a file",
		Long: `Plan the jobs in a file by time windows (tw), in order of arrival (fcfs), or with a solver for the smallest CT-BTI (milp).
Every plan is checked by independent code. Exit code 0: the plan keeps every rule; 4: it does not (with --repair), or there is
none within the horizon.`,
		Example: `  olafctl schedule plan jobs.yaml --policy tw -w plan.json
  olafctl schedule plan jobs.yaml --policy milp --solver cbc --limit 30s --gap 1% --lp model.lp
  olafctl schedule plan jobs.yaml --policy tw --repair none      # the printed text, and what is wrong with it`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, env, args[0]) },
	}
	flags := cmd.Flags()
	f.policy = "tw"
	cli.Choose(cmd, &f.policy, "policy", "", "tw", "fcfs", "milp")
	flags.IntVar(&f.inc, "inc", 0, "jobs per switch, overriding the file")
	flags.IntVar(&f.horizon, "horizon", 0, "horizon in slots; 0 for no limit")
	flags.BoolVar(&f.partial, "partial", false,
		"let a switch aggregate some of a job's workers (Fig. 1; ruled out in §VI-A)")
	flags.BoolVar(&f.fixed, "no-reconfigure", false, "connect all units evenly and never reconfigure")
	flags.Var(&f.repairs, "repair", "corrections to the paper's model: all, none, or names (-name excludes)")
	cli.Choose(cmd, &f.solver, "solver", "highs|cbc|glpsol; default the first installed", "highs", "cbc", "glpsol")
	flags.StringVar(&f.gap, "gap", "0%", "stop the solver at this relative gap")
	flags.DurationVar(&f.limit, "limit", time.Minute, "stop the solver after this long")
	flags.StringVar(&f.lp, "lp", "", "write the model to this LP file")
	flags.BoolVar(&f.fewest, "fewest", false, "then minimise reconfigurations at the same CT-BTI")
	cli.AddWrite(flags, &f.file, "write the plan to this JSON file")
	cli.AddForce(flags, &f.force, "existing output files")
	cli.AddQuiet(flags, &f.quiet)
	cli.AddFormatFlag(cmd, &f.format, cli.Table, cli.JSON)
	cli.Complete(cmd, "repair", func() []string { return append(sched.AllRepairs.Names(), "all", "none") })
	return cmd
}

func (f *planFlags) run(cmd *cobra.Command, env *cli.Env, file string) error {
	if err := cli.RefuseAnyExisting(f.force, f.file, f.lp); err != nil {
		return err
	}
	if err := cli.CheckDistinct(f.file, f.lp); err != nil {
		return err
	}
	p, err := f.readProblem(cmd, file)
	if err != nil {
		return err
	}
	plan, err := f.makePlan(cmd, env, p)
	unfinished := errors.Is(err, policy.ErrHorizon)
	if err != nil && !unfinished {
		return err
	}
	if unfinished {
		err = fmt.Errorf("%w%s", err, f.suggestHorizon(cmd, p))
	}
	verdict := sched.CheckPlan(plan)
	if f.file != "" {
		text, err := json.MarshalIndent(plan, "", "  ")
		if err != nil {
			return err
		}
		if err := cli.WriteWhole(env, f.file, append(text, '\n')); err != nil {
			return err
		}
	}
	if f.format == cli.JSON {
		if err := cli.WriteJSON(env.Stdout, plan); err != nil {
			return err
		}
	} else if err := writePlan(env.Stdout, plan, verdict); err != nil {
		return err
	}
	if unfinished {
		return err
	}
	return rulesError(verdict)
}

// readProblem reads the jobs and modifies their network according to the flags.
func (f *planFlags) readProblem(cmd *cobra.Command, file string) (*sched.Problem, error) {
	p, err := readJobs(file)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("inc") {
		p = p.WithINC(f.inc)
	}
	if f.fixed {
		p = p.WithMesh()
	}
	p.PartialINC = p.PartialINC || f.partial
	if f.horizon < 0 {
		return nil, cli.UsageError("--horizon: %d is negative; use 0 for as many slots as needed", f.horizon)
	}
	return p, p.Check()
}

func (f *planFlags) makePlan(cmd *cobra.Command, env *cli.Env, p *sched.Problem) (*sched.Plan, error) {
	switch f.policy {
	case "tw", "fcfs":
		for _, flag := range []string{"solver", "gap", "limit", "lp", "fewest"} {
			if cmd.Flags().Changed(flag) {
				return nil, cli.UsageError("--%s: only --policy milp uses a solver", flag)
			}
		}
		return policy.Plan(cmd.Context(), p, policy.Name(f.policy),
			policy.Options{Repairs: f.repairs, Horizon: f.horizon})
	case "milp":
		return f.solvePlan(cmd, env, p)
	}
	return nil, cli.UsageError("--policy: %q is not one of tw, fcfs, milp", f.policy)
}

func (f *planFlags) solvePlan(cmd *cobra.Command, env *cli.Env, p *sched.Problem) (*sched.Plan, error) {
	gap, err := ParsePercent(f.gap)
	if err != nil {
		return nil, cli.UsageError("--gap: %v", err)
	}
	if f.limit <= 0 {
		return nil, cli.UsageError("--limit: %v is not a positive time", f.limit)
	}
	solver, err := policy.FindSolver(f.solver)
	if err != nil {
		if errors.Is(err, policy.ErrAbsent) {
			return nil, err
		}
		return nil, cli.UsageError("--solver: %v", err)
	}
	o := policy.ExactOptions{Solver: solver, Repairs: f.repairs, Limits: policy.Limits{Time: f.limit, Gap: gap},
		Horizon: f.horizon, Fewest: f.fewest}
	var model bytes.Buffer
	if f.lp != "" {
		o.Export = &model
	}
	if !f.quiet {
		o.Progress = func(line string) { fmt.Fprintln(env.Stderr, line) }
	}
	plan, err := policy.PlanExactly(cmd.Context(), p, o)
	if f.lp != "" && model.Len() > 0 {
		if err := cli.WriteWhole(env, f.lp, model.Bytes()); err != nil {
			return nil, err
		}
	}
	return plan, err
}

// ParsePercent parses a percentage; for example, it returns 0.01 for 1%.
func ParsePercent(s string) (float64, error) {
	number, ok := strings.CutSuffix(s, "%")
	v, err := olaf.ParseNumber(number)
	if !ok || err != nil || !(v >= 0 && v < 100) {
		return 0, fmt.Errorf("%q is not a share, such as 1%%", s)
	}
	return v / 100, nil
}

// suggestHorizon returns a remedy with the number of slots that the policy needs, or "" if no number of slots is
// sufficient.
func (f *planFlags) suggestHorizon(cmd *cobra.Command, p *sched.Problem) string {
	if f.horizon == 0 {
		return ", and nothing more can be sent"
	}
	plan, err := policy.Plan(cmd.Context(), p, policy.Name(f.policy), policy.Options{Repairs: f.repairs})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; %s needs --horizon %d", f.policy, plan.Slots)
}

// writePlan prints the outcome of a plan and the checker's verdict.
func writePlan(w io.Writer, p *sched.Plan, v *sched.Verdict) error {
	jobs, offloaded, parts := len(p.Jobs), 0, 0
	for i := range p.Jobs {
		switch {
		case p.Jobs[i].INC == "":
		case len(p.Problem.Jobs[i].Workers) > 1:
			parts++
		default:
			offloaded++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d jobs done, CT-BTI %v, mean JCT %.3f s, %d reconfigurations\n", p.Policy.Name,
		jobs-len(p.Outcome.Unfinished), jobs, p.Outcome.CTBTI, p.Outcome.MeanJCT(jobs).Seconds(),
		p.Outcome.Reconfigurations)
	fmt.Fprintf(&b, "%d jobs are aggregated by a switch, %d by their server", offloaded, jobs-offloaded-parts)
	if parts > 0 {
		fmt.Fprintf(&b, ", %d by both", parts)
	}
	fmt.Fprintf(&b, "; %d slots of %v\n", p.Slots, p.Problem.Slot)
	if p.Policy.Repairs != sched.AllRepairs {
		fmt.Fprintf(&b, "with repairs %v: these are the claims of the printed text\n", p.Policy.Repairs)
	}
	if proof := p.Proof; proof != nil {
		fmt.Fprintf(&b, "%s: %s; no schedule is below %v, gap %.1f %%\n", proof.Solver, proof.Status, proof.Bound,
			proof.GapPct)
		if proof.From != "" {
			fmt.Fprintf(&b, "the solver found no better plan: this is the plan of %s\n", proof.From)
		}
	}
	b.WriteString(describeVerdict(v))
	_, err := io.WriteString(w, b.String())
	return err
}

// shownViolations is the maximum number of violations that are printed. With -o json, all are printed.
const shownViolations = 10

// describeVerdict returns the checker's verdict in words.
func describeVerdict(v *sched.Verdict) string {
	if v.OK() {
		return "checked: no rule is broken\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "checked: broken: %s\n", v.Summary())
	for i, one := range v.Violations {
		if i == shownViolations {
			fmt.Fprintf(&b, "  and %d more\n", len(v.Violations)-i)
			break
		}
		fmt.Fprintf(&b, "  %s: %s\n", one.Rule, one.What)
	}
	if real := v.Outcome; real.CTBTI > olaf.Duration(0) {
		fmt.Fprintf(&b, "the CT-BTI of the jobs that finish is %v; %d do not finish\n", real.CTBTI,
			len(real.Unfinished))
	}
	return b.String()
}
