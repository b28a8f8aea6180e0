package schedule

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched/sweep"
	"github.com/olafctl/olaf/experiments/sched/workload"
	grammar "github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/sheets"
)

// sweepFlags are what is planned and where it goes.
type sweepFlags struct {
	workload workload.Spec
	jobs     []int
	vary     string
	seeds    int
	to       cli.Exports
	quiet    bool
	out      cli.Format
}

// scheduleSweep is the document of schedule sweep.
type scheduleSweep struct {
	cli.Head
	Workload workload.Spec `json:"workload"`
	Varied   string        `json:"varied"`
	Seeds    int           `json:"seeds"`
	Rows     []sweep.Row   `json:"rows"`
}

func newScheduleSweepCmd(env *cli.Env) *cobra.Command {
	f := &sweepFlags{workload: workload.Paper(0, 1), jobs: []int{40, 60, 100}, seeds: 10}
	s := &f.workload
	s.Units, s.Ports = 8, 4
	cmd := &cobra.Command{
		Use:    "sweep",
		Hidden: true, // olafctl sweep varies schedules as well
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
	flags.IntVar(&s.Units, "units", s.Units, "racks or pods")
	flags.IntVar(&s.Ports, "ports", s.Ports, "optical ports per unit")
	flags.IntVar(&s.INC, "inc", s.INC, "jobs each switch can aggregate at a time")
	flags.Float64Var(&s.PerSecond, "arrivals", s.PerSecond, "job arrivals per second; 0 for all at once")
	flags.Float64Var(&s.Local, "local", s.Local, "share of jobs with all workers in one unit")
	flags.Var(&s.Slot, "slot", "length of a slot")
	flags.BoolVar(&s.Joined, "joined", false, "connect all units evenly before the first slot")
	flags.StringVar(&f.to.Xlsx, "xlsx", "", "write a workbook with charts")
	flags.StringVar(&f.to.Report, "report", "", "write a self-contained HTML report")
	flags.StringVar(&f.to.Svg, "svg", "", "write the figures to this folder as SVG")
	flags.BoolVar(&f.to.Force, "force", false, "overwrite existing files")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on stderr")
	cli.AddFormatFlag(cmd, &f.out)
	return cmd
}

func (f *sweepFlags) run(cmd *cobra.Command, env *cli.Env) error {
	if f.seeds < 1 {
		return cli.UsageError("--seeds: %d is not a positive number", f.seeds)
	}
	axis, values, err := f.axis()
	if err != nil {
		return err
	}
	if err := f.to.Check(); err != nil {
		return err
	}
	if err := cli.RefuseAnyExisting(f.to.Force, f.to.Xlsx, f.to.Report); err != nil {
		return err
	}
	started := env.Now()
	var done, total atomic.Int64
	bar := cli.StartProgress(env, f.quiet, func() (int, int) { return int(done.Load()), int(total.Load()) })
	rows, err := sweep.Run(cmd.Context(), f.workload, axis, values, f.seeds, func(d, t int) { done.Store(int64(d)); total.Store(int64(t)) })
	bar.Stop()
	if err != nil {
		return err
	}
	document := scheduleSweep{cli.Head{Schema: "olafctl.schedule-sweep/v1"}, f.workload, axis.Name, f.seeds, rows}
	if f.to != (cli.Exports{Force: f.to.Force}) {
		config, err := json.Marshal(document.Workload)
		if err != nil {
			return err
		}
		drawn := &result.Result{Experiment: "schedule sweep", Artefact: "Schedules", Panels: schedulePanels(axis, rows)}
		r := &sheets.Result{DocumentOnly: true, Own: drawn.Sheets(), Bench: &results.Bench{
			Schema: results.BenchSchema, Experiment: drawn.Experiment, Provenance: cli.MadeBy(env, started), Config: config,
			Statements: []string{fmt.Sprintf("means over %d seeds with their 95 %% intervals; all scenarios of a seed have the same jobs, and every plan was checked", f.seeds)},
		}}
		if err := f.to.Write(env, r); err != nil {
			return err
		}
	}
	if f.out == cli.JSON {
		return cli.WriteJSON(env.Stdout, document)
	}
	return sweepGrid(axis, rows).Write(env, f.out)
}

// axis is what is varied, and its values: the numbers of jobs unless --sweep says otherwise.
func (f *sweepFlags) axis() (axis sweep.Axis, values []float64, err error) {
	if f.vary == "" {
		for _, n := range f.jobs {
			values = append(values, float64(n))
		}
		axis, err = sweep.FindAxis("jobs")
		return axis, values, err
	}
	name, list, err := grammar.Split(f.vary)
	if err != nil {
		return axis, nil, err
	}
	if axis, err = sweep.FindAxis(name); err != nil {
		return axis, nil, cli.UsageError("--sweep: %v", err)
	}
	if values, err = axis.Values(list); err != nil || name == "jobs" {
		return axis, values, err
	}
	if len(f.jobs) != 1 {
		return axis, nil, cli.UsageError("--sweep %s: give one number of --jobs, such as --jobs 60", name)
	}
	f.workload.Jobs = f.jobs[0]
	return axis, values, nil
}

// schedulePanels draw a metric each.
func schedulePanels(axis sweep.Axis, rows []sweep.Row) (panels []result.Panel) {
	statistic := []func(*sweep.Row) results.Statistic{
		func(r *sweep.Row) results.Statistic { return r.CTBTI },
		func(r *sweep.Row) results.Statistic { return r.MeanJCT },
		func(r *sweep.Row) results.Statistic { return r.Reconfigurations },
	}
	for i, m := range sweep.Metrics() {
		p := result.Panel{Name: m.Title, XLabel: axis.Label, YLabel: m.Label}
		for _, s := range sweep.Scenarios() {
			one := result.Series{Name: s.Name}
			for k := range rows {
				if r := &rows[k]; r.Scenario == s.Name {
					one.X, one.Y = append(one.X, r.Value), append(one.Y, statistic[i](r))
				}
			}
			p.Series = append(p.Series, one)
		}
		panels = append(panels, p)
	}
	return panels
}

// sweepGrid lists means with the half-widths of their 95 % intervals.
func sweepGrid(axis sweep.Axis, rows []sweep.Row) *cli.Grid {
	list := &cli.Grid{Header: []string{strings.ToUpper(axis.Name), "SCENARIO", "CT_BTI_S", "CT_BTI_CI95", "MEAN_JCT_S", "MEAN_JCT_CI95", "RECONFIGURATIONS", "RECONFIGURATIONS_CI95", "SEEDS_WORSE_THAN_FCFS"}}
	cell := func(v results.Float) string {
		if !v.Known() {
			return "–"
		}
		return fmt.Sprintf("%.3f", float64(v))
	}
	for i := range rows {
		r := &rows[i]
		list.Add(strconv.FormatFloat(r.Value, 'g', -1, 64), r.Scenario, cell(r.CTBTI.Mean), cell(r.CTBTI.CI95), cell(r.MeanJCT.Mean), cell(r.MeanJCT.CI95),
			cell(r.Reconfigurations.Mean), cell(r.Reconfigurations.CI95), strconv.Itoa(r.Worse))
	}
	return list
}
