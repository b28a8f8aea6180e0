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
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/loops"
	"github.com/olafctl/olaf/tui/pace"
)

// Loop is a run of hosts that wait for a switch, before the eyes of a person.
type Loop struct {
	Env   *cli.Env
	View  cli.ViewFlags
	About loops.Options // of the run, but for where it comes from and what is beside it
	Play  func(ctx context.Context, follow closedloop.Follow) (*closedloop.Result, error)
	Runs  *Background // all runs, which are measured beside it; nil for none
}

// NewLoop is of a run of a bench. The error says that there is no such run.
func NewLoop(env *cli.Env, view cli.ViewFlags, plan *bench.Plan, index int, runs *Background) (*Loop, error) {
	if index < 0 || index >= len(plan.Seeds) {
		return nil, cli.UsageError("--index %d: there are runs 0 to %d", index, len(plan.Seeds)-1)
	}
	c := &plan.Configs[0]
	return &Loop{
		Env: env, View: view, Runs: runs,
		About: loops.Options{
			System: c.Queue, About: fmt.Sprintf("at %v, %s", c.OutRate, plan.Spec.LoopTitle()), Seed: plan.Seeds[index],
			Work: "bench", Leaving: "Runs that were done beside it are printed.",
		},
		Play: func(ctx context.Context, follow closedloop.Follow) (*closedloop.Result, error) {
			return plan.PlayLoop(ctx, 0, index, follow)
		},
	}, nil
}

// Show plays the run until the person leaves, or it is told to its end as text.
func (w *Loop) Show(ctx context.Context) error {
	whole, err := w.Play(ctx, nil) // where it ends, so that time has a scale
	if err != nil {
		return err
	}
	end := olaf.Time(math.Round(float64(whole.Duration) * float64(olaf.Nanosecond)))
	chosen, err := PaceOf(&w.View, end.Sub(0))
	if err != nil {
		return err
	}
	options, err := w.View.Options(w.Env)
	if err != nil {
		return err
	}
	player := loops.NewPlayer(end, chosen, NewClock(w.Env.Now))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	player.StopWith(ctx)
	if w.Runs != nil {
		w.Runs.start(ctx)
	}
	var played error
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, played = w.Play(context.WithoutCancel(ctx), player.Follow) // the player ends it
	}()
	var shown error
	if w.View.IsPlain(w.Env) {
		shown = w.tell(ctx, player, over)
	} else {
		program := w.View.Program(ctx, tui.New(loops.New(w.options(player)), options), tea.WithInput(w.Env.Stdin), tea.WithOutput(w.Env.Screen()))
		if _, shown = program.Run(); ctx.Err() != nil {
			shown = context.Canceled
		}
	}
	if w.Runs == nil || !w.Runs.finished() {
		stop()
	}
	player.Stop()
	<-over
	return errors.Join(played, shown)
}

// options are what the dashboard shows.
func (w *Loop) options(player *loops.Player) loops.Options {
	o := w.About
	o.Source = player
	if w.Runs == nil {
		o.Report = func() *tui.Report { return nil }
		return o
	}
	o.Runs = func() loops.Runs {
		s := w.Runs.state()
		return loops.Runs{Done: s.Done, Total: s.Total}
	}
	o.Report = func() *tui.Report {
		s := w.Runs.state()
		if s.Finished && s.Report == nil {
			return tui.NewReport(func(int) []string { return []string{fmt.Sprint("no report: ", s.Err)} })
		}
		return s.Report
	}
	return o
}

// tell says where the run is, now and then, until it is over.
func (w *Loop) tell(ctx context.Context, player *loops.Player, over <-chan struct{}) error {
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

// Besides shows the run while all runs are measured, and returns what these came to.
func (w *Loop) Besides(ctx context.Context) (bench.Report, error) {
	shown := w.Show(ctx)
	w.Runs.wg.Wait()
	return w.Runs.report, errors.Join(w.Runs.Err, shown)
}

// PaceOf is what --speed says; without it a run takes about a minute.
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

// PaceLoop lets a loop take about a minute unless a speed was given: how long it lasts depends on everything.
func PaceLoop(cmd *cobra.Command, view *cli.ViewFlags, spec *bench.Spec) {
	if spec.Loop != nil && !cmd.Flags().Changed("speed") {
		view.Speed = ""
	}
}
