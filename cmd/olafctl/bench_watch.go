package main

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
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/loops"
	"github.com/olafctl/olaf/tui/pace"
)

// watchedLoop is a run of hosts that wait for a switch, before the eyes of a person.
type watchedLoop struct {
	env   *cli.Env
	view  cli.ViewFlags
	plan  *bench.Plan
	index int         // of the run
	runs  *background // all runs of the plan, which are measured beside it; nil for none
}

// show plays the run until the person leaves, or it is told to its end as text.
func (w *watchedLoop) show(ctx context.Context) error {
	if w.index < 0 || w.index >= len(w.plan.Seeds) {
		return cli.UsageError("--index %d: there are runs 0 to %d", w.index, len(w.plan.Seeds)-1)
	}
	whole, err := w.plan.PlayLoop(ctx, 0, w.index, nil) // where it ends, so that time has a scale
	if err != nil {
		return err
	}
	end := olaf.Time(math.Round(float64(whole.Duration) * float64(olaf.Nanosecond)))
	chosen, err := paceOf(&w.view, end.Sub(0))
	if err != nil {
		return err
	}
	options, err := w.view.Options(w.env)
	if err != nil {
		return err
	}
	player := loops.NewPlayer(end, chosen, watchClock{w.env.Now})
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	player.StopWith(ctx)
	if w.runs != nil {
		w.runs.start(ctx)
	}
	var played error
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, played = w.plan.PlayLoop(context.WithoutCancel(ctx), 0, w.index, player.Follow) // the player ends it
	}()
	var shown error
	if w.view.IsPlain(w.env) {
		shown = w.tell(ctx, player, over)
	} else {
		program := w.view.Program(ctx, tui.New(loops.New(w.options(player)), options), tea.WithInput(w.env.Stdin), tea.WithOutput(w.env.Stdout))
		if _, shown = program.Run(); ctx.Err() != nil {
			shown = context.Canceled
		}
	}
	if w.runs == nil || !w.runs.finished() {
		stop()
	}
	player.Stop()
	<-over
	return errors.Join(played, shown)
}

// options are what the dashboard shows.
func (w *watchedLoop) options(player *loops.Player) loops.Options {
	c := &w.plan.Configs[0]
	o := loops.Options{Source: player, System: c.Queue, About: fmt.Sprintf("at %v, %s", c.OutRate, w.plan.Spec.LoopTitle()), Seed: w.plan.Seeds[w.index]}
	if w.runs == nil {
		o.Report = func() []string { return nil }
		return o
	}
	o.Runs = func() loops.Runs {
		s := w.runs.state()
		return loops.Runs{Done: s.Done, Total: s.Total}
	}
	o.Report = func() []string {
		switch s := w.runs.state(); {
		case !s.Finished:
			return nil
		case len(s.Lines) > 0:
			return s.Lines
		default:
			return []string{fmt.Sprint("no report: ", s.Err)}
		}
	}
	return o
}

// tell says where the run is, now and then, until it is over.
func (w *watchedLoop) tell(ctx context.Context, player *loops.Player, over <-chan struct{}) error {
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
			if _, err := fmt.Fprintln(w.env.Stdout, loops.Line(v, player.End())); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}

// watchLoop measures all runs of a plan while the terminal shows its first.
func watchLoop(ctx context.Context, env *cli.Env, view cli.ViewFlags, plan *bench.Plan, b *background) (bench.Report, error) {
	shown := (&watchedLoop{env: env, view: view, plan: plan, runs: b}).show(ctx)
	b.wg.Wait()
	return b.report, errors.Join(b.err, shown)
}

// paceOf is what --speed says; without it a run takes about a minute.
func paceOf(view *cli.ViewFlags, length olaf.Duration) (pace.Pace, error) {
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

// paceLoop lets a loop take about a minute unless a speed was given: how long it lasts depends on everything.
func paceLoop(cmd *cobra.Command, view *cli.ViewFlags, spec *bench.Spec) {
	if spec.Loop != nil && !cmd.Flags().Changed("speed") {
		view.Speed = ""
	}
}
