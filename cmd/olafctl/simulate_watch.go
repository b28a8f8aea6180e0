package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/tui/network"
)

// watchedRuns simulates the first seed before the eyes of a person, and the others beside it. Leaving the dashboard, or
// a signal, ends the first where it stands and keeps of the others those that were done.
type watchedRuns struct {
	env      *environment
	view     viewFlags
	topology *netsim.Topology
	seeds    []uint64
	done     atomic.Int64
	first    *netsim.Result
	rest     []*netsim.Result
	err      error // of either
}

// watchClock is the clock of whoever watches.
type watchClock struct{ now func() time.Time }

func (c watchClock) Now() time.Time                         { return c.now() }
func (c watchClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// run shows the runs until the person leaves, and returns those that count: complete ones, or what there is of the first.
func (w *watchedRuns) run(ctx context.Context, opt netsim.Options) ([]*netsim.Result, error) {
	length := w.topology.Warmup + w.topology.Duration
	pace, err := w.pace(length)
	if err != nil {
		return nil, err
	}
	d := dashboard{env: w.env, view: w.view}
	bindings, err := d.bindings()
	if err != nil {
		return nil, err
	}
	look, err := d.theme()
	if err != nil {
		return nil, err
	}
	player := network.NewPlayer(olaf.Time(length), pace, watchClock{w.env.now})
	opt.Watcher = player
	model := network.New(network.Options{Source: player, Keys: bindings, Theme: look, Seeds: func() network.Seeds {
		return network.Seeds{Done: int(w.done.Load()), Total: len(w.seeds)}
	}})
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithAltScreen(), tea.WithoutSignalHandler(), tea.WithFPS(30))

	working, stop := context.WithCancel(ctx)
	player.StopWith(working)
	var wg sync.WaitGroup
	wg.Go(func() { w.simulate(working, opt, program.Kill) })
	_, shown := program.Run()
	stop()
	wg.Wait()
	switch {
	case w.err != nil:
		return w.results(), w.err
	case ctx.Err() != nil:
		return w.results(), context.Canceled
	case shown != nil:
		return w.results(), shown
	case !w.complete():
		return w.results(), context.Canceled
	}
	return w.results(), nil
}

// simulate carries out all runs; a run that fails closes the dashboard.
func (w *watchedRuns) simulate(ctx context.Context, opt netsim.Options, fail func()) {
	var wg sync.WaitGroup
	var restErr error
	wg.Go(func() {
		w.rest, restErr = netsim.RunSeeds(ctx, w.topology, w.seeds[1:], netsim.Options{}, func() { w.done.Add(1) })
	})
	one := *w.topology
	one.Seed = w.seeds[0]
	// The player ends this run, so that what was done can be measured; the context would throw it away.
	first, err := netsim.Run(context.WithoutCancel(ctx), &one, opt)
	w.first = first
	w.done.Add(1)
	if err != nil {
		w.err = err
		fail()
	}
	wg.Wait()
	if restErr != nil && ctx.Err() == nil && w.err == nil {
		w.err = restErr
		fail()
	}
}

func (w *watchedRuns) whole() bool {
	return w.first != nil && w.first.Time == w.topology.Warmup+w.topology.Duration
}

func (w *watchedRuns) complete() bool { return w.whole() && len(w.results()) == len(w.seeds) }

func (w *watchedRuns) results() []*netsim.Result {
	var out []*netsim.Result
	if w.whole() {
		out = append(out, w.first)
	}
	for _, r := range w.rest {
		if r != nil {
			out = append(out, r)
		}
	}
	if len(out) == 0 && w.first != nil {
		out = append(out, w.first)
	}
	return out
}

// pace is what --speed says; without it the run takes about a minute.
func (w *watchedRuns) pace(length olaf.Duration) (network.Pace, error) {
	switch w.view.speed {
	case "":
		return network.Pace{Speed: network.AboutAMinute(length), Paused: w.view.paused}, nil
	case "max":
		return network.Pace{Speed: network.Full, Paused: w.view.paused}, nil
	}
	speed, err := olaf.ParseDuration(w.view.speed)
	if err != nil {
		return network.Pace{}, usageError("--speed: %v", err)
	}
	if speed < olaf.Nanosecond {
		return network.Pace{}, usageError("--speed %v: use 1ns or more, or max", speed)
	}
	return network.Pace{Speed: network.Speed(speed.NS() / 1e9), Paused: w.view.paused}, nil
}
