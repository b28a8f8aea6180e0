package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/monitor"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results/paper"
)

// reproduceFlags are the flags of reproduce.
type reproduceFlags struct {
	options experiments.Options
	out     cli.Format
	explain bool
	short   bool
	all     bool
	quiet   bool
	watch   cli.MetricsFlag
	monitor *monitor.Monitor // nil without --metrics
	workers farmFlags
}

func NewReproduce(env *cli.Env) *cobra.Command {
	f := new(reproduceFlags)
	cmd := &cobra.Command{
		Use:   "reproduce [NAME…]",
		Short: "Run every experiment and judge each published number",
		Long: `Run all experiments, or the named ones, and print every published number beside ours with difference, 95 % interval and
verdict. The last lines count verdicts, contradictions and results worse than recorded; only the latter exit with code 4. Everything
together takes more than an hour; --short leaves out training runs, and --quick shortens everything to minutes. --workers runs
experiments side by side, here or on other machines. See docs/notes/reproduction.md. On two idle cores:

` + listDurations(env.Published),
		Example: `  olafctl reproduce olaf/table1 olaf/fig6
  olafctl reproduce --quick -o csv > numbers.csv
  olafctl reproduce --trainings finished       # goes on where it was interrupted
  olafctl reproduce --workers 8                # side by side, and goes on as well
  olafctl reproduce --workers nats://lab:4222`,
		ValidArgsFunction: cli.CompleteArgs(env.Published.Names),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args) },
	}
	addOptions(cmd, env, &f.options)
	cmd.Flags().BoolVar(&f.short, "short", false, "skip experiments that train for many minutes")
	cmd.Flags().BoolVar(&f.all, "all", false, "also list published numbers that cannot be measured here")
	cli.AddQuiet(cmd.Flags(), &f.quiet)
	f.watch.Add(cmd)
	f.workers.add(cmd)
	cli.AddFormatFlag(cmd, &f.out)
	cli.AddExplainFlag(cmd, &f.explain)
	return cmd
}

// listDurations lists how long each experiment takes to run.
func listDurations(published experiments.Set) string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, e := range published {
		fmt.Fprintf(tw, "  %s\t%s\n", e.Name, e.Needs)
	}
	tw.Flush()
	return strings.TrimRight(b.String(), "\n")
}

// selectExperiments returns the named experiments. Without names it returns all experiments or, with --short, all short
// ones.
func (f *reproduceFlags) selectExperiments(published experiments.Set, names []string) (experiments.Set, error) {
	switch {
	case len(names) > 0 && f.short:
		return nil, cli.UsageError("--short selects among all experiments; leave out either --short or the names")
	case f.short:
		return published.ShortOnes(), nil
	case len(names) == 0:
		return published, nil
	}
	var chosen experiments.Set
	for _, name := range names {
		e, err := published.Find(name)
		if err != nil {
			return nil, err
		}
		twice := func(other experiments.Experiment) bool { return other.Name == e.Name }
		if !slices.ContainsFunc(chosen, twice) { // run an experiment only once
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}

func (f *reproduceFlags) run(ctx context.Context, env *cli.Env, names []string) error {
	chosen, err := f.selectExperiments(env.Published, names)
	if err != nil {
		return err
	}
	for i := range chosen {
		if err := chosen[i].CheckDevice(env.Devices, f.options.Device); err != nil {
			return err
		}
	}
	if err := f.workers.checkFlags(env, &f.options); err != nil {
		return err
	}
	var unwatch func()
	if f.monitor, unwatch, err = f.watch.StartMonitor(ctx, env); err != nil {
		return err
	}
	defer unwatch()
	started, done := env.Now(), 0
	one := func(ctx context.Context, e experiments.Experiment) (experiments.Judged, error) {
		done++
		return f.runOne(ctx, env, e, fmt.Sprintf("%d/%d %s", done, len(chosen), e.Name))
	}
	if f.workers.isSet() {
		if one, err = f.runElsewhere(ctx, env, chosen); err != nil {
			return err
		}
	}
	r, err := env.Published.Reproduce(ctx, chosen, one)
	r.Provenance, r.All = cli.NewProvenance(env, started), f.all
	if err := errors.Join(cli.MarkInterrupted(err), cli.PrintReport(env, r, f.out, f.explain)); err != nil {
		return err
	}
	return r.Err()
}

// runOne runs an experiment and prints how many of the published numbers it reproduces.
func (f *reproduceFlags) runOne(ctx context.Context, env *cli.Env, e experiments.Experiment,
	name string) (experiments.Judged, error) {
	o, started := f.options, env.Now()
	access, err := env.Access()
	if err != nil {
		return nil, err
	}
	o.Access = access
	if !f.quiet {
		fmt.Fprintf(env.Stderr, "%s: %s\n", name, f.describeDuration(&e))
	}
	look := trackProgress(&o, f.monitor.Sinks()...)
	f.monitor.AddWork(e.Name, look)
	bar := cli.StartProgress(env, f.quiet, look)
	report, err := e.Run(ctx, o)
	bar.Stop()
	if err == nil {
		f.monitor.AddVerdicts(e.Name, report.Paper())
	}
	if err == nil && !f.quiet {
		rows := report.Paper()
		fmt.Fprintf(env.Stderr, "%s: %d published numbers, %d worse than recorded, in %v\n", name, len(rows),
			len(paper.FindMisses(rows)), env.Now().Sub(started).Round(100*time.Millisecond))
	}
	if report == nil {
		return nil, err // not a non-nil Judged with a nil pointer
	}
	return report, err
}

// describeDuration returns a description of how long an experiment takes.
func (f *reproduceFlags) describeDuration(e *experiments.Experiment) string {
	if f.options.Quick {
		return "shortened"
	}
	return "about " + e.Needs + " on two idle cores"
}

// trackProgress makes an experiment report its progress and send its events to sinks. It returns a function that reads
// the progress.
func trackProgress(o *experiments.Options, sinks ...bench.Sink) func() (done, total int) {
	o.Stream = bench.NewStream(sinks...)
	var done, total atomic.Int64
	o.Progress = func(d, t int) { done.Store(int64(d)); total.Store(int64(t)) }
	stream := cli.ProgressOf(o.Stream)
	return func() (int, int) {
		if t := total.Load(); t > 0 {
			return int(done.Load()), int(t)
		}
		return stream()
	}
}
