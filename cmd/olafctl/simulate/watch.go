package simulate

import (
	"context"
	"sync"
	"sync/atomic"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/network"
)

// watchedRuns simulates the first seed on the dashboard and all other seeds in the background. If the user leaves the
// dashboard or a signal arrives, the first run stops early. Complete runs of the other seeds are still stored.
type watchedRuns struct {
	env        *cli.Env
	view       cli.ViewFlags
	simulation *bench.Simulation
	options    bench.SimulateOptions
	text       func(*bench.Simulated) *tui.Report
}

// showRuns shows the runs until the user leaves. It returns the results up to that point.
func (w *watchedRuns) showRuns(ctx context.Context) (*bench.Simulated, error) {
	topology := w.simulation.Networks[0].Topology
	length := topology.Warmup + topology.Duration
	pace, err := watch.PaceOf(&w.view, length)
	if err != nil {
		return nil, err
	}
	options, err := w.view.DashboardOptions(w.env)
	if err != nil {
		return nil, err
	}
	player := network.NewPlayer(olaf.Time(length), pace, watch.NewClock(w.env.Now))
	w.options.First.Watcher = player
	var report atomic.Pointer[tui.Report]
	program := w.view.NewProgram(ctx, tui.New(w.newPages(player, &report), options), tea.WithInput(w.env.Stdin),
		tea.WithOutput(w.env.Screen()))

	working, stop := context.WithCancel(ctx)
	player.StopWith(working)
	var out *bench.Simulated
	var wg sync.WaitGroup
	w.options.Failed = func(error) { program.Kill() } // closing the dashboard ends the run that it shows
	wg.Go(func() {
		if out, err = bench.SimulateAll(working, w.simulation, w.options); err == nil && w.text != nil {
			report.Store(w.text(out))
		}
	})
	_, shown := program.Run()
	stop()
	wg.Wait()
	switch {
	case err != nil:
		return out, err
	case ctx.Err() != nil || out.Partial:
		return out, context.Canceled
	}
	return out, shown
}

// newPages returns the pages of the dashboard: one for the first seed, and one for the report when it is available.
func (w *watchedRuns) newPages(player *network.Player, report *atomic.Pointer[tui.Report]) tui.Dashboard {
	return network.New(network.Options{
		Source: player,
		Seeds: func() network.Seeds {
			return network.Seeds{Done: w.options.Stream.Progress().Done, Total: w.simulation.RunCount()}
		},
		Report: report.Load,
	})
}
