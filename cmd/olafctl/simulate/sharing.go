package simulate

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/expect"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/experiments/system"
)

// sharedPreset is the name of the cluster on which several jobs share a switch, as in ATP.
const sharedPreset = atp.LabName

// sharingFlags are the flags for jobs on the shared cluster.
type sharingFlags struct {
	sharing, jobs, aggregators string
	fraction                   float64
}

// sharingOnly lists flags that apply only to jobs that share a switch.
var sharingOnly = []string{system.OptionSharing, "jobs", "aggregators", "fraction"}

// sharedCluster returns the shared cluster as a preset, with the flags that do not apply to it.
func sharedCluster() *jobPreset {
	return &jobPreset{name: sharedPreset, about: "ATP's testbed: several jobs share the aggregators of a switch",
		system: "atp", takes: sharingOnly, headline: []string{"jct_ns", "goodput_bps"}, refuse: map[string]string{
			"clusters": "use --jobs, such as vgg16:3", "workers-per-cluster": "its jobs have --workers",
			"model": "use --jobs, such as vgg16:3", "mode": "its jobs are synchronous", "slots": "use --aggregators",
			"versus":    "it compares ways to share; --sweep system=atp,switchml compares systems",
			"wire-only": "only its hosts' cards cost time",
			"spread":    "its workers communicate all the time",
		}}
}

func (f *sharingFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.sharing, system.OptionSharing, system.Static+","+system.Dynamic,
		sharedPreset+": how jobs share aggregators: static, dynamic, or both")
	flags.StringVar(&f.jobs, "jobs", "vgg16:3",
		sharedPreset+": models and number of concurrent jobs: "+strings.Join(atp.ModelNames(), "|"))
	flags.StringVar(&f.aggregators, "aggregators", "0.5pta,1pta,3pta",
		sharedPreset+": switch slots, a number or multiples of one job's peak need (pta)")
	flags.Float64Var(&f.fraction, "fraction", 0.05, sharedPreset+": fraction of each gradient to simulate")
	cli.Complete(cmd, system.OptionSharing, func() []string { return []string{system.Static, system.Dynamic} })
}

// parseGrid returns the requested combinations of options for a system.
func (f *sharingFlags) parseGrid(cmd *cobra.Command, of string, rest *jobFlags) (*atp.Grid, error) {
	name, jobs, counted := strings.Cut(f.jobs, ":")
	model, err := atp.FindModel(name)
	if err != nil {
		return nil, err
	}
	g := &atp.Grid{Amounts: strings.Split(f.aggregators, ","), Sharings: strings.Split(f.sharing, ",")}
	g.System, g.Model, g.Jobs, g.Workers = cmp.Or(of, sharedCluster().system), model, 1, atp.LabWorkers
	g.Window = rest.options.Window
	if counted {
		if g.Jobs, err = strconv.Atoi(jobs); err != nil || g.Jobs < 1 {
			return nil, cli.UsageError("--jobs %s: use a model and a number of jobs, such as vgg16:3", f.jobs)
		}
	}
	if !(f.fraction > 0 && f.fraction <= 1) {
		return nil, cli.UsageError("--fraction is %g; it must be above 0 and at most 1", f.fraction)
	}
	g.Fraction, g.Updates = f.fraction, 1
	if cmd.Flags().Changed("workers") {
		g.Workers = rest.workers
	}
	if cmd.Flags().Changed("updates") {
		if g.Updates, err = closedloop.CheckRounds(rest.updates); err != nil {
			return nil, err
		}
	}
	if g.Losses = rest.losses; len(g.Losses) == 0 {
		g.Losses = []float64{0}
	}
	g.Options = rest.options
	s, mode, err := rest.set.ClosedLoop().FindMode(g.System, "sync")
	if err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(system.OptionSharing) && mode.CheckOptions(s, []string{system.OptionSharing}) != nil {
		g.Sharings = []string{system.Static} // the only sharing that the system supports
	}
	return g, mode.CheckOptions(s, sharingOptions(cmd))
}

// sharingOptions returns the system options on the command line, including the way of sharing.
func sharingOptions(cmd *cobra.Command) []string {
	given := cli.GivenOptions(cmd)
	if cmd.Flags().Changed(system.OptionSharing) {
		given = append(given, system.OptionSharing)
	}
	return given
}

// sharedWork returns the requested jobs that share a switch, for every combination of sharing, number of aggregators,
// loss rate and seed.
func (f *simulateFlags) sharedWork(cmd *cobra.Command, env *cli.Env) (*jobWork, error) {
	g, err := f.sharing.parseGrid(cmd, f.queue, &f.job)
	if err != nil {
		return nil, err
	}
	cells, err := g.Cells(env.Systems)
	if err != nil {
		return nil, err
	}
	plan := &atp.Plan{Grid: g, Seeds: experiments.SeedsFrom(f.seed, f.runs), Systems: env.Systems}
	work := &jobWork{preset: sharedPreset, about: sharedPreset + ", " + cells[0].Name(), seeds: plan.Seeds,
		names: slices.Concat([]string{"system", "workers", "updates", "loss"}, sharingOnly, sharingOptions(cmd))}
	var at []expect.Configuration
	for i := range cells {
		work.specs = append(work.specs, cells[i].Spec)
		at = append(at, expect.Configuration{System: cells[i].Sharing, At: cells[i].Row})
	}
	if err := f.tryJobs(work.specs); err != nil {
		return nil, err
	}
	work.tapped = func() { g.Tap = cells[0].Spec.Job.Tap }
	work.play = func(ctx context.Context, done func()) (jobReport, error) {
		report, err := plan.Run(ctx, done)
		if report == nil {
			return nil, err // not a non-nil report with a nil pointer
		}
		return report, err
	}
	f.queue, f.job.workers, f.job.updates = g.System, g.Workers, int(g.Updates) // the names used in files
	return work, f.job.locate(f.expect.ResolveRules(f.job.expectations(), job.DeclareRuns(), at))
}
