package capture

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/capture/replay"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/experiments/system"
)

// watchedReplay shows a replay on the dashboard.
type watchedReplay struct {
	tui  bool
	view cli.ViewFlags
}

// watchedUpdates is the maximum number of updates on the dashboard, which keeps them in memory so that the user can go
// back in time.
const watchedUpdates = 4 << 20

// watchedTime is the number of seconds in which the dashboard plays a capture if --speed is not given.
const watchedTime = 60

func (w *watchedReplay) add(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.DashboardFlags, func() {
		flags := cmd.Flags()
		flags.BoolVar(&w.tui, "tui", false, "show the dashboard; without a terminal, print lines of text")
		flags.StringVar(&w.view.Speed, "speed", "",
			"with --tui: capture time per second, such as 500ns or max; default: a minute in all")
		flags.BoolVar(&w.view.Paused, "paused", false, "with --tui: start paused")
	})
	w.view.AddLooks(cmd)
}

// checkFlags rejects flags that do not apply.
func (w *watchedReplay) checkFlags(cmd *cobra.Command) error {
	if !w.tui {
		return cli.RefuseViewFlags(cmd)
	}
	for _, name := range []string{"write", "output"} {
		if cmd.Flags().Changed(name) {
			return cli.UsageError("--tui shows the replay and prints nothing; leave out --%s", name)
		}
	}
	return nil
}

// showReplay plays the capture until the user leaves.
func (w *watchedReplay) showReplay(cmd *cobra.Command, env *cli.Env, path string, decoder *capture.Decoder,
	config replay.Config) error {
	c, err := readUpdates(path, decoder, config)
	if err != nil {
		return err
	}
	c.Queue, c.Engine, c.Output = config.Queue, config.Engine, config.Output
	if w.view.Speed == "" && len(c.Arrivals) > 0 {
		span := c.Arrivals[len(c.Arrivals)-1].At.Sub(c.Arrivals[0].At)
		w.view.Speed = min(max(span/watchedTime, olaf.Nanosecond), olaf.Second).String()
	}
	d := &watch.Dashboard{Env: env, View: w.view}
	return d.PlaySession(cmd.Context(), func(_ context.Context, speed slowmotion.Speed) (*slowmotion.Player, error) {
		return slowmotion.NewReplay(*c, speed, w.view.Paused, watch.NewClock(env.Now))
	})
}

// readUpdates reads the updates in a capture. If possible, arrival times and generation times are on one clock.
func readUpdates(path string, decoder *capture.Decoder, config replay.Config) (*slowmotion.Capture, error) {
	c := &slowmotion.Capture{Name: path}
	meter, stamps := ages.New(system.QueueDeclaration()), replay.NewStampCheck(config.Output)
	var a capture.Arrival
	for {
		err := decoder.Next(&a)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return nil, err
		case a.Frame.Kind() != olaf.KindUpdate:
			continue
		case len(c.Arrivals) == watchedUpdates:
			return nil, cli.UsageError("%s has more than %d updates, too many for the dashboard; replay it "+
				"without --tui", path, watchedUpdates)
		}
		origin, sameClock := decoder.Origin()
		if len(c.Arrivals) == 0 {
			meter.Start(origin, sameClock)
		}
		stamps.Arrive(a.At, a.Update.Size())
		meter.Grain, meter.ClockErrorNS = decoder.Grain(), config.ClockError(decoder)
		meter.Arrive(a.At, &a.Update)
		observed := a.Observation()
		meter.Deliver(&observed)
		if !sameClock {
			a.Update.GenNS -= uint64(origin) // wraps as generation times do
		}
		c.Arrivals = append(c.Arrivals, slowmotion.Arrival{At: a.At, Update: a.Update})
	}
	c.Coarse = stamps.TooCoarse(decoder.Grain())
	c.NoAges = cmp.Or(c.Coarse, meter.Report().Reason)
	return c, nil
}
