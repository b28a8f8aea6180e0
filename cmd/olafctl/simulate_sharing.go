package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/experiments/system"
)

// sharedPreset is a cluster on which several jobs share a switch: ATP's.
const sharedPreset = "atp-lab"

// sharingFlags choose jobs on such a cluster.
type sharingFlags struct {
	sharing, jobs, aggregators string
	fraction                   float64
}

// sharingOnly are the flags that mean nothing to other networks.
var sharingOnly = []string{system.OptionSharing, "jobs", "aggregators", "fraction"}

// always are the flags that mean something to every job, sharingTakes those of other jobs that mean something here.
var always = []string{"preset", "system", "queue", "runs", "seed", "quiet", "output", "yes", "keep", "store"}

var sharingTakes = []string{"workers", "updates", "loss", system.OptionProfile, system.OptionRecovery, system.OptionTimeout, system.OptionPacket, system.OptionWindow, system.OptionCongestion}

func (f *sharingFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.sharing, system.OptionSharing, system.Static+","+system.Dynamic, sharedPreset+": how jobs share aggregators: static, dynamic, or both")
	flags.StringVar(&f.jobs, "jobs", "vgg16:3", sharedPreset+": whose gradients, and how many jobs at a time: "+strings.Join(atp.ModelNames(), "|"))
	flags.StringVar(&f.aggregators, "aggregators", "0.5pta,1pta,3pta", sharedPreset+": of the switch, a number or of what one job needs for its peak (pta)")
	flags.Float64Var(&f.fraction, "fraction", 0.05, sharedPreset+": part of each gradient that is simulated")
	cli.Complete(cmd, system.OptionSharing, func() []string { return []string{system.Static, system.Dynamic} })
}

// lossList is a list of shares, such as 0,0.01%,0.001; empty is 0. It is a pflag.Value.
type lossList []float64

// Set implements pflag.Value.
func (l *lossList) Set(text string) error {
	*l = nil
	for _, one := range strings.Split(text, ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(one), "%")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return fmt.Errorf("%q is no share, such as 0.001 or 0.1%%", one)
		}
		if percent {
			v /= 100
		}
		*l = append(*l, v)
	}
	return nil
}

// String implements pflag.Value.
func (l *lossList) String() string {
	var parts []string
	for _, v := range *l {
		parts = append(parts, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (l *lossList) Type() string { return "shares" }

func (l *lossList) first() float64 {
	if len(*l) == 0 {
		return 0
	}
	return (*l)[0]
}

// refuseSharing refuses flags that mean nothing to such a cluster.
func refuseSharing(cmd *cobra.Command) error {
	var wrong error
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if !slices.Contains(slices.Concat(always, sharingOnly, sharingTakes), given.Name) {
			wrong = cli.UsageError("--%s means nothing to --preset %s", given.Name, sharedPreset)
		}
	})
	return wrong
}

// grid is what was asked for.
func (f *simulateFlags) grid(cmd *cobra.Command) (*atp.Grid, error) {
	name, jobs, counted := strings.Cut(f.sharing.jobs, ":")
	model, err := atp.FindModel(name)
	if err != nil {
		return nil, err
	}
	g := &atp.Grid{Amounts: strings.Split(f.sharing.aggregators, ","), Sharings: strings.Split(f.sharing.sharing, ",")}
	g.System, g.Model, g.Jobs, g.Workers, g.Window = f.queue, model, 1, atp.LabWorkers, f.job.options.Window
	if g.System == "" {
		g.System = "atp"
	}
	if counted {
		if g.Jobs, err = strconv.Atoi(jobs); err != nil || g.Jobs < 1 {
			return nil, cli.UsageError("--jobs %s: say a model and a number of jobs, such as vgg16:3", f.sharing.jobs)
		}
	}
	if !(f.sharing.fraction > 0 && f.sharing.fraction <= 1) {
		return nil, cli.UsageError("--fraction is %g; it must be above 0, and 1 at most", f.sharing.fraction)
	}
	g.Fraction, g.Updates = f.sharing.fraction, 1
	if cmd.Flags().Changed("workers") {
		g.Workers = f.job.workers
	}
	if cmd.Flags().Changed("updates") {
		g.Updates = uint32(max(f.job.updates, 0))
	}
	if g.Losses = f.job.losses; len(g.Losses) == 0 {
		g.Losses = []float64{0}
	}
	g.Options = f.job.options
	s, err := system.All().Waiting().Find(g.System)
	if err != nil {
		return nil, err
	}
	mode, err := s.Mode("sync")
	if err != nil {
		return nil, err
	}
	given := givenOptions(cmd)
	if cmd.Flags().Changed(system.OptionSharing) {
		given = append(given, system.OptionSharing)
	} else if err := mode.Refuse(s, []string{system.OptionSharing}); err != nil {
		g.Sharings = []string{system.Static} // there is no other way
	}
	return g, mode.Refuse(s, given)
}

// runSharing simulates jobs that share a switch, once for every way to share, number of aggregators, loss and seed.
func (f *simulateFlags) runSharing(cmd *cobra.Command, env *cli.Env) error {
	if err := refuseSharing(cmd); err != nil {
		return err
	}
	if f.runs < 1 || f.runs > 100_000 {
		return cli.UsageError("--runs is %d; it must be 1 to 100000", f.runs)
	}
	if f.format == cli.YAML {
		return cli.UsageError("--preset %s prints %s, %s, %s or %s", sharedPreset, cli.Table, cli.JSON, cli.JSONL, cli.CSV)
	}
	g, err := f.grid(cmd)
	if err != nil {
		return err
	}
	if err := f.Check(env); err != nil {
		return err
	}
	started := env.Now()
	kept := f.Documents(env, simulateName, started)
	plan := sharedPlan{Grid: g}
	for i := range f.runs {
		plan.Seeds = append(plan.Seeds, f.seed+uint64(i))
	}
	report, err := plan.play(cmd.Context(), env, f.quiet)
	if err != nil {
		return errors.Join(err, kept.Abort())
	}
	err = kept.Finish(env, report, cli.MadeBy(env, started), false, f.quiet)
	if err = errors.Join(err, cli.PrintReport(env, report, f.format, f.explain)); err != nil {
		return err
	}
	return report.Err()
}

// sharedPlan is everything that decides jobs that share a switch.
type sharedPlan struct {
	Grid  *atp.Grid `json:"grid"`
	Seeds []uint64  `json:"seeds"`
}

// sharedReport is what they did, with the plan that gives it again.
type sharedReport struct {
	bench.Report
	plan sharedPlan
}

// Made implements bench.Planned.
func (r *sharedReport) Made() any { return &r.plan }

// play carries the plan out beside a progress bar.
func (p *sharedPlan) play(ctx context.Context, env *cli.Env, quiet bool) (*sharedReport, error) {
	var done atomic.Int64
	bar := cli.StartProgress(env, quiet, func() (int, int) { return int(done.Load()), p.Grid.Runs(len(p.Seeds)) })
	table, err := p.Grid.Table(ctx, system.All(), sharedPreset, "jobs that share a switch", p.Seeds, func() { done.Add(1) })
	bar.Stop()
	if errors.Is(err, context.Canceled) {
		err = cli.Interrupted(err)
	}
	if err != nil {
		return nil, err
	}
	return &sharedReport{table, *p}, nil
}
