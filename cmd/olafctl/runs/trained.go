package runs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/store"
)

// trainedFlags are the flags for comparing the learning curves of stored training runs. Real and simulated runs can be
// compared.
type trainedFlags struct {
	between []string
	plots   string
	force   bool
	of      []*onwire.Side
}

func (f *trainedFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.between, "between", nil,
		"for training runs: compare A's runs of one kind with B's of another: "+strings.Join(onwire.AllKinds(), ","))
	flags.StringVar(&f.plots, "plots", "", "for training runs: write both sides' learning curves to this folder")
	cli.AddForce(flags, &f.force, "existing figures")
	cli.Complete(cmd, "between", func() []string {
		all := onwire.AllKinds()
		return []string{strings.Join(all, ","), all[1] + "," + all[0]}
	})
}

// compareRuns compares run B with run A and, with --plots, draws the learning curves of both.
func (f *trainedFlags) compareRuns(env *cli.Env, s *store.Store, names []string) (*compare.Document, error) {
	sides, err := f.loadSides(env, s, names)
	if err != nil {
		return nil, err
	}
	d, err := compare.CompareResults(sides[0], sides[1])
	if err != nil {
		return nil, err
	}
	return d, f.drawCurves(env)
}

// loadSides returns the two sides of the comparison.
func (f *trainedFlags) loadSides(env *cli.Env, s *store.Store, names []string) (sides []*compare.Side, err error) {
	if n := len(f.between); n != 0 && n != len(names) {
		return nil, cli.UsageError("--between %s: use one for A and one for B, of %s", strings.Join(f.between, ","),
			strings.Join(onwire.AllKinds(), ", "))
	}
	if err := watch.RefusePlots(f.plots, plotted, f.force); err != nil {
		return nil, err
	}
	for i, name := range names {
		folder, err := cli.LoadRun(s, name)
		if err != nil {
			return nil, err
		}
		side, err := f.loadSide(env, folder, i)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	return sides, nil
}

// loadSide returns the side of the comparison that argument i names.
func (f *trainedFlags) loadSide(env *cli.Env, folder *store.Folder, i int) (*compare.Side, error) {
	if !onwire.IsKept(folder) {
		if len(f.between) > 0 || f.plots != "" {
			return nil, cli.UsageError("%s is a run of %s; --between and --plots are for trainings with several "+
				"seeds ('olafctl train --seeds')", folder.ID(), folder.Manifest.Experiment)
		}
		return NewSide(env, folder)
	}
	kind := ""
	if len(f.between) > 0 {
		kind = f.between[i]
	}
	trained, err := onwire.SideOf(folder, kind)
	if err != nil {
		return nil, err
	}
	f.of = append(f.of, trained)
	return &trained.Side, nil
}

// plotted is the name under which figures of comparisons are stored.
const plotted = "compare"

// drawCurves draws the curves of two training runs in one figure.
func (f *trainedFlags) drawCurves(env *cli.Env) error {
	if f.plots == "" {
		return nil
	}
	return watch.DrawFigures(env, f.plots, f.force, plotted, onwire.DrawCurves(f.of[0], f.of[1]))
}
