package simulate

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	schedulecmd "github.com/olafctl/olaf/cmd/olafctl/schedule"
	"github.com/olafctl/olaf/experiments/sched/play"
)

// scheduleTakes lists the flags that can be used together with --schedule.
var scheduleTakes = []string{"schedule", "packets", "quiet", "output"}

// playedWithin is the maximum accepted difference between packets and fluid model, in per cent of a job's sending time.
const playedWithin = 2

// runSchedule simulates a schedule packet by packet.
func (f *simulateFlags) runSchedule(cmd *cobra.Command, env *cli.Env, args []string) error {
	var wrong error
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if !slices.Contains(scheduleTakes, given.Name) {
			wrong = cli.UsageError("--%s does not apply to --schedule", given.Name)
		}
	})
	switch {
	case wrong != nil:
		return wrong
	case len(args) > 0:
		return cli.UsageError("--schedule simulates a plan, which contains its network; leave out %s", args[0])
	case f.format == cli.YAML || f.format == cli.JSONL:
		return cli.UsageError("--schedule prints %s, %s or %s", cli.Table, cli.JSON, cli.CSV)
	}
	plan, err := schedulecmd.ReadPlan(f.schedule)
	if err != nil {
		return err
	}
	var done, total atomic.Int64
	bar := cli.StartProgress(env, f.quiet, func() (int, int) { return int(done.Load()), int(total.Load()) })
	r, err := play.PlayPlan(cmd.Context(), plan,
		play.Options{Packets: f.packets, Delay: olaf.Microsecond, OnProgress: func(d, t int) {
			done.Store(int64(d))
			total.Store(int64(t))
		}})
	bar.Stop()
	if err != nil {
		return err
	}
	if err := cli.PrintReport(env, r.Result(), f.format, f.explain); err != nil {
		return err
	}
	if worst := float64(r.WorstPct); worst > playedWithin || worst < -playedWithin {
		return &cli.Exit{Kind: olaf.Missed,
			Err: fmt.Errorf("packets of %s are %.2f %% off the fluid; use more --packets for a finer result", r.Worst,
				worst)}
	}
	return nil
}
