package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments"
)

func newExperimentCmd(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "List and run what the paper published",
	}
	cmd.AddCommand(newExperimentListCmd(env), newExperimentRunCmd(env))
	return cmd
}

func newExperimentListCmd(env *environment) *cobra.Command {
	var out format
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
			list := grid{header: []string{"NAME", "ARTEFACT", "TAKES", "ABOUT"}}
			for _, e := range experiments.All() {
				entries = append(entries, entry{e.Name, e.Artefact, e.About, e.Needs})
				list.add(e.Name, e.Artefact, e.Needs, e.About)
			}
			if out == formatJSON {
				return writeJSON(env.stdout, struct {
					schema
					Experiments []entry `json:"experiments"`
				}{schema{"olafctl.experiments/v1"}, entries})
			}
			return list.write(env.stdout, out)
		},
	}
	addFormatFlag(cmd, &out)
	return cmd
}

func experimentNames() []string {
	var names []string
	for _, e := range experiments.All() {
		names = append(names, e.Name)
	}
	return names
}

func newExperimentRunCmd(env *environment) *cobra.Command {
	var (
		out   format
		o     experiments.Options
		plots string
		quiet bool
	)
	cmd := &cobra.Command{
		Use:   "run NAME…",
		Short: "Run experiments and print ours beside the paper's",
		Example: `  olafctl experiment run table1
  olafctl experiment run fig6 --runs 100 -o json
  olafctl experiment run fig7 --plots pictures
  olafctl experiment run fig2 fig3 fig8 --keep trainings   # an hour; goes on where it was interrupted`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeArgs(experimentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			var chosen []experiments.Experiment
			for _, name := range args {
				e, err := experiments.Find(name)
				if err != nil {
					return usageError("%v", err)
				}
				chosen = append(chosen, e)
			}
			if len(chosen) > 1 && out == formatCSV {
				return usageError("CSV holds one table; run one experiment at a time, or use -o json")
			}
			for _, e := range chosen {
				if err := runExperiment(cmd, env, e, o, out, plots, quiet); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&o.Runs, "runs", 0, "runs or seeds; 0 for the experiment's own number")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "first seed; 0 for the experiment's own")
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "fewer runs, for a first look")
	cmd.Flags().StringVar(&o.Keep, "keep", "", "folder in which finished trainings of fig2, fig3 and fig8 are kept and found again")
	cmd.Flags().StringVar(&plots, "plots", "", "draw the figures' panels into this folder, as SVG and PNG")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress on stderr")
	addFormatFlag(cmd, &out)
	addDeviceFlag(cmd, &o.Device)
	return cmd
}

// runExperiment prints what there is even when the experiment was stopped, and lets the cause decide the exit code.
func runExperiment(cmd *cobra.Command, env *environment, e experiments.Experiment, o experiments.Options, out format, plots string, quiet bool) error {
	if o.Runs < 0 {
		return usageError("--runs %d is negative", o.Runs)
	}
	started := env.now()
	bar := startProgress(env, quiet, trackProgress(&o))
	report, err := e.Run(cmd.Context(), o)
	bar.stop()
	if report == nil {
		return interrupted(err)
	}
	stamp(env, started, report)
	if err := errors.Join(interrupted(err), printReport(env, report, out), drawPanels(env, plots, report)); err != nil {
		return err
	}
	return report.Err()
}
