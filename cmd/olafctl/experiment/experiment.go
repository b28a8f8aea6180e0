// Package experiment implements 'olafctl experiment' and 'reproduce', which print published tables and figures next to
// our measurements, with verdicts.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/monitor"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results/result"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "List and run the papers' tables and figures, one at a time",
		Long: `List and run the papers' tables and figures, one at a time, each with its own traffic and seeds. An experiment prints our
numbers beside the published ones. 'olafctl reproduce' runs all of them.`,
		Example: `  olafctl experiment list
  olafctl experiment run olaf/table1`,
	}
	cmd.AddCommand(newExperimentListCmd(env), newExperimentRunCmd(env))
	return cmd
}

func newExperimentListCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the experiments",
		Example: "  olafctl experiment list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			type entry struct {
				Name     string `json:"name"`
				Artefact string `json:"artefact"`
				About    string `json:"about"`
				Needs    string `json:"needs"`
			}
			var entries []entry
			list := cli.Grid{Header: []string{"NAME", "ARTEFACT", "TAKES", "ABOUT"}}
			for _, e := range env.Published {
				entries = append(entries, entry{e.Name, e.Artefact, e.About, e.Needs})
				list.Add(e.Name, e.Artefact, e.Needs, e.About)
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					Experiments []entry `json:"experiments"`
				}{cli.List("experiments"), entries})
			}
			return list.Write(env, out)
		},
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

func newExperimentRunCmd(env *cli.Env) *cobra.Command {
	f := new(experimentFlags)
	cmd := &cobra.Command{
		Use:   "run NAME…",
		Short: "Run experiments and print our numbers beside the paper's",
		Long: `Run experiments and print our numbers beside the paper's. An experiment is named PAPER/ARTEFACT; for the OLAF paper the
artefact is enough, such as table1. A full-length result below its claim's expectation exits with code 4.`,
		Example: `  olafctl experiment run olaf/table1
  olafctl experiment run olaf/fig6 --runs 100 -o json
  olafctl experiment run olaf/fig7 --plots pictures
  olafctl experiment run fig2 fig3 fig8 --trainings finished   # an hour; goes on where it was interrupted`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cli.CompleteArgs(env.Published.Names),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.runAll(cmd, env, args) },
	}
	addOptions(cmd, env, &f.options)
	cli.InGroup(cmd, cli.OutputFlags, func() {
		cmd.Flags().StringVar(&f.plots, "plots", "", "write the figures to this folder as SVG, PDF and PNG")
		cli.AddForce(cmd.Flags(), &f.force, "existing figures")
		cli.AddQuiet(cmd.Flags(), &f.quiet)
	})
	cli.InGroup(cmd, cli.DashboardFlags, func() {
		cmd.Flags().BoolVar(&f.tui, "tui", false, "show the dashboard with one run in slow motion")
	})
	f.view.Add(cmd)
	f.keep.Add(cmd)
	f.watch.Add(cmd)
	cli.AddFormatFlag(cmd, &f.out, cli.Table, cli.JSON, cli.CSV, cli.JSONL)
	cli.AddExplainFlag(cmd, &f.explain)
	return cmd
}

// addOptions adds the flags that every experiment accepts.
func addOptions(cmd *cobra.Command, env *cli.Env, o *experiments.Options) {
	cli.InGroup(cmd, cli.RunFlags, func() {
		cli.AddCount(cmd.Flags(), &o.Runs, "runs", "runs or seeds per experiment; default the experiment's own number")
		cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "first seed; 0 for the experiment's default")
		cmd.Flags().BoolVar(&o.Quick, "quick", false, "fewer or shorter runs, for a quick look")
		cmd.Flags().StringVar(&o.Trainings, "trainings", "",
			"`folder` to store and reuse finished training runs of fig2, fig3, fig8 and filter")
	})
	cli.AddDeviceFlag(cmd, env, &o.Device)
}

// experimentFlags are the flags of experiment run.
type experimentFlags struct {
	options experiments.Options
	out     cli.Format
	explain bool
	plots   string
	force   bool
	quiet   bool
	watch   cli.MetricsFlag
	monitor *monitor.Monitor // nil without --metrics
	keep    cli.KeepFlags
	tui     bool
	view    cli.ViewFlags
}

// runAll checks all experiments and then runs them one after another.
func (f *experimentFlags) runAll(cmd *cobra.Command, env *cli.Env, names []string) error {
	if err := watch.OneScreen(env, f.tui, f.out); err != nil {
		return err
	}
	if !f.tui {
		if err := cli.RefuseViewFlags(cmd); err != nil {
			return err
		}
	}
	var chosen experiments.Set
	for _, name := range names {
		e, err := env.Published.Find(name)
		if err != nil {
			return cli.UsageError("%v", err)
		}
		if err := watch.RefusePlots(f.plots, e.Name, f.force); err != nil {
			return err
		}
		chosen = append(chosen, e)
	}
	if len(chosen) > 1 && f.out != cli.Table {
		return cli.UsageError("-o %s prints a single document; run one experiment at a time", f.out)
	}
	var unwatch func()
	var err error
	if f.monitor, unwatch, err = f.watch.StartMonitor(cmd.Context(), env); err != nil {
		return err
	}
	defer unwatch()
	for _, e := range chosen {
		if err := f.run(cmd.Context(), env, e); err != nil {
			return err
		}
	}
	return nil
}

// run runs an experiment and prints and stores its result, even if the result is partial. It returns the error that
// determines the exit code.
func (f *experimentFlags) run(ctx context.Context, env *cli.Env, e experiments.Experiment) error {
	o, started := f.options, env.Now()
	if err := errors.Join(e.CheckDevice(env.Devices, o.Device), f.keep.CheckStore(env)); err != nil {
		return err
	}
	var err error
	if o.Access, err = env.Access(); err != nil {
		return err
	}
	kept := f.keep.KeepExperiment(env, &e, started)
	report, err := f.carryOut(ctx, env, e, o, append(cli.EventSinks(env, f.out), kept.Sinks()...))
	if report == nil {
		if errors.Is(err, context.Canceled) {
			err = &cli.Exit{Kind: olaf.Interrupted,
				Err: fmt.Errorf("interrupted before the first run of %s was complete; there is nothing to show",
					e.Name)}
		}
		return errors.Join(err, kept.Abort())
	}
	if err == nil {
		f.monitor.AddVerdicts(e.Name, report.Paper())
	}
	cli.StampProvenance(env, started, report)
	stopped := cli.MarkInterrupted
	if e.Spec != nil {
		stopped = cli.MarkGeneratorInterrupted
	}
	err = errors.Join(stopped(err), kept.Finish(env, report, cli.NewProvenance(env, started), err != nil, f.quiet),
		watch.DrawFigures(env, f.plots, f.force, e.Name, report), cli.PrintReport(env, report, f.out, f.explain))
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	return experiments.CheckExpected(report.Paper())
}

// carryOut runs an experiment and shows a dashboard or a progress bar.
func (f *experimentFlags) carryOut(ctx context.Context, env *cli.Env, e experiments.Experiment, o experiments.Options,
	sinks []bench.Sink) (result.Report, error) {
	look := trackProgress(&o, append(sinks, f.monitor.Sinks()...)...)
	f.monitor.AddWork(e.Name, look)
	if f.tui && env.Terminal {
		if e.Spec == nil {
			return nil, cli.UsageError("%s has no single queue to show; --tui works with %s", e.Name,
				strings.Join(env.Published.WithBench().Names(), " and "))
		}
		return watch.RunBeside(ctx, env, &watch.Dashboard{View: f.view, Device: o.Device}, e.Spec(), &watch.Background{
			Run:  func(ctx context.Context) (result.Report, error) { return e.Run(ctx, o) },
			Look: look,
		})
	}
	bar := cli.StartProgress(env, f.quiet, look)
	defer bar.Stop()
	return e.Run(ctx, o)
}
