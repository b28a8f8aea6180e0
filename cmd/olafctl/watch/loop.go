package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/loops"
	"github.com/olafctl/olaf/tui/pace"
)

// Loop shows a run whose hosts wait for a switch.
type Loop struct {
	Env   *cli.Env
	View  cli.ViewFlags
	About loops.Options // description of the run; the source and the other runs are added later
	Play  func(ctx context.Context, follow closedloop.Follow) (*closedloop.Result, error)
	Runs  *Background // all runs, measured in the background; nil for none
}

// NewLoop prepares the run with the given index for the dashboard. It returns an error if the plan has no such run.
func NewLoop(env *cli.Env, view cli.ViewFlags, plan *bench.Plan, index int, runs *Background) (*Loop, error) {
	if index < 0 || index >= len(plan.Seeds) {
		return nil, cli.UsageError("--index %d: there are runs 0 to %d", index, len(plan.Seeds)-1)
	}
	c := &plan.Configs[0]
	return &Loop{
		Env: env, View: view, Runs: runs, About: loops.Options{
			System: c.Queue, About: fmt.Sprintf("at %v, %s", c.OutRate, plan.Spec.LoopTitle()), Seed: plan.Seeds[index],
			Work: "bench", Leaving: "Runs that are complete are printed.",
		},
		Play: func(ctx context.Context, follow closedloop.Follow) (*closedloop.Result, error) {
			return plan.PlayLoop(ctx, 0, index, follow)
		},
	}, nil
}

// ShowRun plays the run until the user leaves, or prints it as text until it ends.
func (w *Loop) ShowRun(ctx context.Context) error {
	whole, err := w.Play(ctx, nil) // for the end of the run, which scales the time axis
	if err != nil {
		return err
	}
	end := olaf.Time(math.Round(float64(whole.Duration) * float64(olaf.Nanosecond)))
	chosen, err := PaceOf(&w.View, end.Sub(0))
	if err != nil {
		return err
	}
	options, err := w.View.DashboardOptions(w.Env)
	if err != nil {
		return err
	}
	player := loops.NewPlayer(end, chosen, NewClock(w.Env.Now))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	player.StopWith(ctx)
	if w.Runs != nil {
		w.Runs.startRun(ctx)
	}
	var played error
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, played = w.Play(context.WithoutCancel(ctx), player.Follow) // player ends the run
	}()
	var shown error
	if w.View.IsPlain(w.Env) {
		shown = w.printLines(ctx, player, over)
	} else {
		program := w.View.NewProgram(ctx, tui.New(loops.New(w.dashboardOptions(player)), options),
			tea.WithInput(w.Env.Stdin), tea.WithOutput(w.Env.Screen()))
		if _, shown = program.Run(); ctx.Err() != nil {
			shown = context.Canceled
		}
	}
	if w.Runs == nil || !w.Runs.isFinished() {
		stop()
	}
	player.Stop()
	<-over
	return errors.Join(played, shown)
}

// dashboardOptions returns the options for the dashboard of a loop.
func (w *Loop) dashboardOptions(player *loops.Player) loops.Options {
	o := w.About
	o.Source = player
	if w.Runs == nil {
		o.Report = func() *tui.Report { return nil }
		return o
	}
	o.Runs = func() loops.Runs {
		s := w.Runs.latestState()
		return loops.Runs{Done: s.Done, Total: s.Total}
	}
	o.Report = func() *tui.Report {
		s := w.Runs.latestState()
		if s.Finished && s.Report == nil {
			return tui.NewReport(func(int) []string { return []string{fmt.Sprint("no report: ", s.Err)} })
		}
		return s.Report
	}
	return o
}

// printLines prints the position in the run at regular intervals until the run is over.
func (w *Loop) printLines(ctx context.Context, player *loops.Player, over <-chan struct{}) error {
	ticker := time.NewTicker(plainInterval)
	defer ticker.Stop()
	for {
		ended := false
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-over:
			ended = true
		case <-ticker.C:
		}
		if v := player.Snapshot(); v != nil {
			if _, err := fmt.Fprintln(w.Env.Stdout, loops.FormatLine(v, player.End())); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}

// ShowBeside shows the run while all runs are measured. It returns the report on the measured runs.
func (w *Loop) ShowBeside(ctx context.Context) (result.Report, error) {
	shown := w.ShowRun(ctx)
	w.Runs.wg.Wait()
	return w.Runs.report, errors.Join(w.Runs.Err, shown)
}

// PaceOf returns the pace that --speed selects. Without the flag, a run takes about a minute.
func PaceOf(view *cli.ViewFlags, length olaf.Duration) (pace.Pace, error) {
	switch view.Speed {
	case "":
		return pace.Pace{Speed: pace.AboutAMinute(length), Paused: view.Paused}, nil
	case "max":
		return pace.Pace{Speed: pace.Full, Paused: view.Paused}, nil
	}
	speed, err := olaf.ParseDuration(view.Speed)
	if err != nil {
		return pace.Pace{}, cli.UsageError("--speed: %v", err)
	}
	if speed < olaf.Nanosecond {
		return pace.Pace{}, cli.UsageError("--speed %v: use 1ns or more, or max", speed)
	}
	return pace.Pace{Speed: pace.Speed(speed.NS() / 1e9), Paused: view.Paused}, nil
}

// PaceLoop clears the default speed for a loop, whose length is not known beforehand. Without a speed, a loop takes
// about a minute.
func PaceLoop(cmd *cobra.Command, view *cli.ViewFlags, spec *bench.Spec) {
	if spec.Loop != nil && !cmd.Flags().Changed("speed") {
		view.Speed = ""
	}
}
