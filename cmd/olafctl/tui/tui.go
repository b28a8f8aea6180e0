// Package tui implements 'olafctl tui', which shows a run on the dashboard.
package tui

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	benchcmd "github.com/olafctl/olaf/cmd/olafctl/bench"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	runscmd "github.com/olafctl/olaf/cmd/olafctl/runs"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/tui/queues"
)

// tuiFlags are the flags of tui.
type tuiFlags struct {
	bench   benchcmd.Flags
	view    cli.ViewFlags
	demo    bool
	record  string
	force   bool
	run     string
	against string
	index   int
	watch   cli.MetricsFlag
}

func New(env *cli.Env) *cobra.Command {
	f := &tuiFlags{bench: benchcmd.Flags{Spec: bench.DefaultSpec(env.Systems)}}
	f.bench.Spec.Experiment = "olaf/table1"
	cmd := &cobra.Command{
		Use:   "tui",
		Short: "Watch a run live: queue, AoM, losses, tables, registers",
		Long: `Watch one run live or in slow motion: queue slots in departure order, merges, drops, AoM per cluster, loss, tables and
registers. Pause, step, go back in time, or press enter on an update for its history; '?' lists the keys. Without a terminal,
or with --plain, the run is printed as text. See docs/reference/dashboard.md.`,
		Example: `  olafctl tui --demo                       # the story in a minute
  olafctl tui --speed 1us                  # a microsecond a second
  olafctl tui --run last                   # a kept run again, with time travel
  olafctl tui --out-rate 5G --slots 16 --versus none`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.execute(cmd, env) },
	}
	f.bench.OutRates = []string{"20G"}
	f.bench.AddSpec(cmd)
	f.bench.Store.Add(cmd)
	f.view.Add(cmd)
	cli.InGroup(cmd, cli.RunFlags, func() { f.addRun(cmd, env) })
	f.watch.Add(cmd)
	f.bench.Card.Add(cmd)
	cli.AddDeviceFlag(cmd, env, &f.bench.Device)
	return cmd
}

// addRun adds the flags that select the run and its speed.
func (f *tuiFlags) addRun(cmd *cobra.Command, env *cli.Env) {
	flags := cmd.Flags()
	flags.BoolVar(&f.view.Plain, "plain", false, "print lines of text instead of a dashboard")
	flags.BoolVar(&f.demo, "demo", false, "a guided tour of one minute")
	flags.StringVar(&f.record, "record", "", "with --demo: write the tour to this animated SVG file instead")
	flags.BoolVar(&f.force, "force", false, "with --record: overwrite an existing file")
	flags.StringVar(&f.run, "run", "", "replay a stored run: its id or 'last'")
	flags.StringVar(&f.against, "against", "", "with --run: stored run to compare with on the Results page")
	flags.IntVar(&f.index, "index", 0, "number of the run to show, from 0")
	for _, name := range []string{"run", "against"} {
		if err := cmd.RegisterFlagCompletionFunc(name, f.bench.Store.CompleteRuns(env, 1)); err != nil {
			panic(err) // the flag was not declared: a mistake in this package
		}
	}
}

func (f *tuiFlags) execute(cmd *cobra.Command, env *cli.Env) error {
	if err := f.bench.ResolveSpec(cmd, env); err != nil {
		return err
	}
	spec := f.bench.Spec
	watch.PaceLoop(cmd, &f.view, &spec)
	access, err := f.bench.Card.AccessCard(cmd, env, f.bench.Device)
	if err != nil {
		return err
	}
	d := &watch.Dashboard{Env: env, View: f.view, Device: f.bench.Device, Access: access, Index: f.index,
		Watch: f.watch}
	if f.run != "" {
		if spec, d.Bench, err = f.loadKept(env); err != nil {
			return err
		}
	} else if f.against != "" {
		return cli.UsageError("--against compares with a kept run; add --run")
	}
	if f.demo && spec.Loop != nil {
		return cli.UsageError("--demo shows a queue; leave out --demo or --system %s", spec.Queue)
	}
	if f.demo {
		spec.OutRates = []olaf.Rate{20 * olaf.Gbps}
		d.Demo = true
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		return err
	}
	switch {
	case f.record != "":
		return f.recordTour(cmd.Context(), d, plan)
	case spec.Loop != nil:
		return f.watchLoop(cmd.Context(), env, plan)
	}
	return d.ShowPlan(cmd.Context(), plan)
}

// recordTour records the guided tour in a file.
func (f *tuiFlags) recordTour(ctx context.Context, d *watch.Dashboard, plan *bench.Plan) error {
	if !f.demo {
		return cli.UsageError("--record writes the tour; add --demo")
	}
	if err := cli.CheckEnding(f.record, "tours", ".svg"); err != nil {
		return err
	}
	if err := cli.RefuseExisting(f.record, f.force); err != nil {
		return err
	}
	return d.RecordTour(ctx, plan, f.record)
}

// watchLoop shows a run whose hosts wait for answers.
func (f *tuiFlags) watchLoop(ctx context.Context, env *cli.Env, plan *bench.Plan) error {
	if err := env.Devices.Check(f.bench.Device, testbed.ClosesLoop|testbed.VirtualTime); err != nil {
		return err
	}
	loop, err := watch.NewLoop(env, f.view, plan, f.index, nil)
	if err != nil {
		return err
	}
	return cli.MarkGeneratorInterrupted(loop.ShowRun(ctx))
}

// loadKept returns the specification of a stored run and its report for the Results page.
func (f *tuiFlags) loadKept(env *cli.Env) (spec bench.Spec, shown func() *queues.Bench, err error) {
	err = f.bench.Store.WithRun(env, f.run, func(s *store.Store, folder *store.Folder) error {
		if archive.HasDocument(folder) { // a simulation or a training
			return cli.UsageError("%s has no single queue to show; 'olafctl runs show %s' prints it, and 'olafctl "+
				"simulate --tui' shows a network", folder.ID(), folder.ID())
		}
		if spec, err = bench.RepeatableSpec(env.Systems, folder); err != nil {
			return err
		}
		r, err := archive.Load(folder, env.Declared)
		if err != nil {
			return err
		}
		against, err := f.compareRuns(env, s)
		if err != nil {
			return err
		}
		state := &queues.Bench{Done: len(r.Runs), Total: len(r.Runs), Finished: true,
			Report: watch.NewReport(func(w io.Writer, v text.View) error {
				fmt.Fprintf(w, "%s, %s, started %s\n\n", folder.ID(), folder.Manifest.Experiment,
					folder.Manifest.Provenance.Started)
				if against != nil {
					if err := against.WriteText(w, v, false); err != nil {
						return err
					}
				}
				return text.Bench(w, v, r.Bench)
			})}
		shown = func() *queues.Bench { return state }
		return nil
	})
	return spec, shown, err
}

// compareRuns compares the run with the run given by --against. It returns nil without the flag.
func (f *tuiFlags) compareRuns(env *cli.Env, s *store.Store) (*compare.Document, error) {
	if f.against == "" {
		return nil, nil
	}
	earlier, err := runscmd.LoadSide(env, s, f.against)
	if err != nil {
		return nil, err
	}
	this, err := runscmd.LoadSide(env, s, f.run)
	if err != nil {
		return nil, err
	}
	return compare.CompareResults(earlier, this)
}
