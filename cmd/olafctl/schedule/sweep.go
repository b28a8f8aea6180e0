package schedule

import (
	"encoding/json"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	grammar "github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/sheets"
)

// sweepFlags are the flags of schedule sweep.
type sweepFlags struct {
	workload sched.Workload
	jobs     []int
	vary     string
	seeds    int
	to       cli.Exports
	quiet    bool
	out      cli.Format
}

func newScheduleSweepCmd(env *cli.Env) *cobra.Command {
	f := &sweepFlags{workload: sched.PaperWorkload(0, 1), jobs: []int{40, 60, 100}, seeds: 10}
	s := &f.workload
	s.Units, s.Ports = 8, 4
	cmd := &cobra.Command{
		Use:    "sweep",
		Hidden: true, // olafctl sweep also varies schedules
		Short:  "Compare both policies over numbers of jobs and seeds",
		Long: `Plan generated jobs in the paper's four scenarios (fcfs or tw, with and without aggregation) for several numbers of jobs or
values of --sweep, and seeds. All scenarios of a seed have the same jobs. See docs/guide/scheduling.md.`,
		Example: `  olafctl schedule sweep --jobs 40,60,100 --units 8 --ports 4 --seeds 10 --xlsx out.xlsx --report out.html
  olafctl schedule sweep --jobs 200 --sweep inc=0,1..16:x2 --svg figures`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, env) },
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&f.jobs, "jobs", f.jobs, "numbers of jobs; one with --sweep")
	flags.StringVar(&f.vary, "sweep", "", "another parameter to vary: NAME=VALUES, such as units=8..32:x2")
	cli.AlsoCalled(flags, "sweep", "vary")
	flags.IntVar(&f.seeds, "seeds", f.seeds, "number of seeds, starting at --seed")
	flags.Uint64Var(&s.Seed, "seed", s.Seed, "first seed")
	addWorkload(flags, s)
	flags.BoolVar(&s.Joined, "joined", false, "connect all units evenly before the first slot")
	f.to.Add(flags, "xlsx", "write a workbook with charts")
	f.to.Add(flags, "report", "write a self-contained HTML report")
	f.to.Add(flags, "svg", "write the figures to this folder as SVG")
	cli.AddForce(flags, &f.to.Force, "existing files")
	cli.AddQuiet(flags, &f.quiet)
	cli.AddFormatFlag(cmd, &f.out)
	return cmd
}

func (f *sweepFlags) run(cmd *cobra.Command, env *cli.Env) error {
	if f.seeds < 1 {
		return cli.UsageError("--seeds: %d is not a positive number", f.seeds)
	}
	axis, values, err := f.parseAxis()
	if err != nil {
		return err
	}
	specs, err := axis.Specs(f.workload, values)
	if err != nil {
		return err
	}
	if err := f.to.CheckNames(); err != nil {
		return err
	}
	if err := cli.RefuseAnyExisting(f.to.Force, f.to.Path("xlsx"), f.to.Path("report")); err != nil {
		return err
	}
	started := env.Now()
	var done, total atomic.Int64
	bar := cli.StartProgress(env, f.quiet, func() (int, int) { return int(done.Load()), int(total.Load()) })
	cells, err := policy.Cells(cmd.Context(), specs, f.seeds,
		func(d, t int) { done.Store(int64(d)); total.Store(int64(t)) })
	bar.Stop()
	if err != nil {
		return err
	}
	r := f.result(axis, values, cells)
	by := cli.NewProvenance(env, started)
	if !f.to.IsEmpty() {
		config, err := json.Marshal(r.Config)
		if err != nil {
			return err
		}
		book := &sheets.Result{DocumentOnly: true, Own: r.Sheets(), Bench: &results.Bench{
			Schema: results.BenchSchema, Experiment: r.Experiment, Provenance: by, Config: config,
			Statements: r.Statements}}
		if err := f.to.WriteFiles(env, book); err != nil {
			return err
		}
	}
	return cli.PrintReport(env, r, f.out, false)
}

// result builds the result document. It has a panel for each metric, and remarks on how often a schedule with time
// windows ends later than FCFS.
func (f *sweepFlags) result(axis policy.Axis, values []float64, cells []policy.Cell) *result.Result {
	r := result.New("schedule sweep", "Schedules", struct {
		Workload sched.Workload `json:"workload"`
		Varied   string         `json:"varied"`
		Seeds    int            `json:"seeds"`
	}{f.workload, axis.Name, f.seeds})
	r.Panels = axis.Panels(values, cells, policy.Metrics(), "")
	r.Say("means over %d seeds with their 95 %% intervals; all scenarios of a seed have the same jobs, and every "+
		"plan was checked", f.seeds)
	for i := range cells {
		for k, s := range policy.Scenarios() {
			if n := cells[i].Worse(k); n > 0 {
				r.Say("%s at %s %g ends later than FCFS with the same switches under %s", s.Name, axis.Name, values[i],
					olaf.Plural(n, "seed"))
			}
		}
	}
	return r
}

// parseAxis returns the varied parameter and its values. Without --sweep, it is the number of jobs.
func (f *sweepFlags) parseAxis() (axis policy.Axis, values []float64, err error) {
	if f.vary == "" {
		for _, n := range f.jobs {
			values = append(values, float64(n))
		}
		axis, err = policy.FindAxis("jobs")
		return axis, values, err
	}
	name, list, err := grammar.SplitAxis(f.vary)
	if err != nil {
		return axis, nil, err
	}
	if axis, err = policy.FindAxis(name); err != nil {
		return axis, nil, cli.UsageError("--sweep: %v", err)
	}
	if values, err = axis.Values(list); err != nil || name == "jobs" {
		return axis, values, err
	}
	if len(f.jobs) != 1 {
		return axis, nil, cli.UsageError("--sweep %s: use a single number of --jobs, such as --jobs 60", name)
	}
	f.workload.Jobs = f.jobs[0]
	return axis, values, nil
}
