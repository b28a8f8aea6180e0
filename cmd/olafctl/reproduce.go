package main

import (
	"errors"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments"
)

func newReproduceCmd(env *environment) *cobra.Command {
	var (
		out   format
		o     experiments.Options
		quiet bool
		long  bool
	)
	cmd := &cobra.Command{
		Use:   "reproduce [NAME…]",
		Short: "Set every published number beside ours, with a verdict",
		Long: `Run all experiments that take seconds, or those that are named, and print every published number beside ours: difference, 95 % interval and
verdict. A verdict worse than what is known to be reachable is a miss, and the exit code is 4.`,
		Example: `  olafctl reproduce table1 fig6
  olafctl reproduce --quick -o csv > numbers.csv`,
		ValidArgsFunction: completeArgs(experimentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := experiments.Short()
			if long {
				chosen = experiments.All()
			}
			if len(args) > 0 {
				chosen = nil
			}
			for _, name := range args {
				e, err := experiments.Find(name)
				if err != nil {
					return err
				}
				chosen = append(chosen, e)
			}
			started := env.now()
			tracker := trackProgress(&o)
			bar := startProgress(env, quiet, tracker)
			r, err := experiments.Reproduce(cmd.Context(), chosen, o)
			bar.stop()
			r.Provenance = madeBy(env, started)
			if err := errors.Join(interrupted(err), printReport(env, r, out)); err != nil {
				return err
			}
			return r.Err()
		},
	}
	cmd.Flags().IntVar(&o.Runs, "runs", 0, "runs or seeds of each; 0 for the experiment's own number")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "first seed; 0 for the experiment's own")
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "fewer runs, for a first look")
	cmd.Flags().BoolVar(&long, "long", false, "without names, also run those that train for many minutes")
	cmd.Flags().StringVar(&o.Keep, "keep", "", "folder in which finished trainings are kept and found again")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress on stderr")
	addFormatFlag(cmd, &out)
	addDeviceFlag(cmd, &o.Device)
	return cmd
}

// trackProgress makes an experiment report how far it is, whichever way it has, and returns where to look.
func trackProgress(o *experiments.Options) func() (done, total int) {
	o.Stream = experiments.NewStream()
	var done, total atomic.Int64
	o.Progress = func(d, t int) { done.Store(int64(d)); total.Store(int64(t)) }
	stream := progressOf(o.Stream)
	return func() (int, int) {
		if t := total.Load(); t > 0 {
			return int(done.Load()), int(t)
		}
		return stream()
	}
}
