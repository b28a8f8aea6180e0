// Package watch shows a run on a dashboard, or prints it line by line, while a command measures.
package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/export"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/results/xlsx"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/queues"
)

// OneScreen returns an error if -o jsonl and a dashboard would use the same terminal.
func OneScreen(env *cli.Env, tui bool, out cli.Format) error {
	if tui && env.Terminal && out == cli.JSONL {
		return cli.UsageError("--tui and -o jsonl both use the terminal; leave one of them out")
	}
	return nil
}

// NewReport returns a report for the dashboard with the text that write produces. If write fails, the last line is the
// error.
func NewReport(write func(io.Writer, text.View) error) *tui.Report {
	return tui.NewReport(func(width int) []string {
		var page bytes.Buffer
		if err := write(&page, text.View{Width: width}); err != nil {
			fmt.Fprintln(&page, err)
		}
		return strings.Split(strings.TrimRight(page.String(), "\n"), "\n")
	})
}

// Dashboard shows the live session of one plan on the terminal.
type Dashboard struct {
	Env         *cli.Env
	View        cli.ViewFlags
	Device      string
	Access      testbed.Access // access to the device
	Index       int
	Demo        bool
	Bench       func() *queues.Bench
	workbook    func(context.Context) (string, error)
	figures     func(context.Context) (string, error)
	Watch       cli.MetricsFlag
	CompareTwin bool   // the bench compares ages with the twin's, which the dashboard shows
	measured    string // the bench's device, if the dashboard shows another device
}

// Clock is the wall clock for a session on a dashboard.
type Clock struct{ now func() time.Time }

// NewClock returns a clock that reads the time from now.
func NewClock(now func() time.Time) Clock { return Clock{now} }

// Now returns the current time.
func (c Clock) Now() time.Time { return c.now() }

// After returns a channel that receives the time when d has elapsed.
func (c Clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Tick returns a channel that receives the time at intervals of d, and a function that stops it.
func (Clock) Tick(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// ShowPlan opens a session and shows it until the user leaves or ctx ends. It then releases the device.
func (d *Dashboard) ShowPlan(ctx context.Context, plan *bench.Plan) error {
	return d.PlaySession(ctx, func(ctx context.Context, speed slowmotion.Speed) (*slowmotion.Player, error) {
		return slowmotion.NewPlayer(ctx, plan, slowmotion.Options{Device: d.Device, Access: d.Access, Index: d.Index},
			speed, d.View.Paused, NewClock(d.Env.Now))
	})
}

// PlaySession shows the session that open returns until the user leaves or ctx ends.
func (d *Dashboard) PlaySession(ctx context.Context,
	open func(context.Context, slowmotion.Speed) (*slowmotion.Player, error)) (err error) {
	speed, err := d.parseSpeed()
	if err != nil {
		return err
	}
	options, err := d.View.DashboardOptions(d.Env)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	player, err := open(ctx, speed)
	if err != nil {
		stop()
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { player.Run(ctx) })
	defer func() {
		stop()
		wg.Wait()
		err = errors.Join(err, player.Close())
	}()
	monitor, unwatch, err := d.Watch.StartMonitor(ctx, d.Env)
	if err != nil {
		return err
	}
	defer unwatch()
	monitor.AddSession(player.Snapshot)
	if d.View.IsPlain(d.Env) {
		return cli.MarkGeneratorInterrupted(d.PrintStates(ctx, player))
	}
	pages := queues.New(queues.Options{Source: player, Bench: d.Bench, Workbook: d.workbook, Figures: d.figures,
		Demo: d.Demo, CompareTwin: d.CompareTwin, Measured: d.measured})
	return d.runProgram(ctx, tui.New(pages, options))
}

func (d *Dashboard) runProgram(ctx context.Context, f *tui.Frame) error {
	_, err := d.View.NewProgram(ctx, f).Run()
	if ctx.Err() != nil {
		return cli.MarkGeneratorInterrupted(context.Canceled)
	}
	return err
}

// plainInterval is the interval between printed lines if there is no dashboard.
const plainInterval = time.Second

// PrintStates prints the state of the run as lines until it is over.
func (d *Dashboard) PrintStates(ctx context.Context, player *slowmotion.Player) error {
	out := queues.NewPlain(d.Env.Stdout)
	ticker := time.NewTicker(plainInterval / 10)
	defer ticker.Stop()
	for n := 0; ; n++ {
		s := player.Snapshot()
		over := s.State == slowmotion.Done || s.State == slowmotion.Failed
		if n%10 == 0 || over {
			if err := out.Show(s); err != nil {
				return err
			}
		}
		if over {
			return s.Err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func (d *Dashboard) parseSpeed() (slowmotion.Speed, error) {
	if d.View.Speed == "max" {
		return slowmotion.AsFastAsPossible, nil
	}
	speed, err := olaf.ParseDuration(d.View.Speed)
	if err != nil {
		return 0, cli.UsageError("--speed: %v", err)
	}
	if speed <= 0 || speed > olaf.Second {
		return 0, cli.UsageError("--speed %v: use more than 0 and at most 1s, or max", speed)
	}
	return slowmotion.Speed(speed), nil
}

// steppedSource executes commands immediately, which makes recordings reproducible.
type steppedSource struct {
	*slowmotion.Player
	ctx context.Context
}

func (s steppedSource) Do(c slowmotion.Command) bool {
	s.Execute(s.ctx, c)
	return true
}

// RecordTour writes the guided tour to a file as an animated picture.
func (d *Dashboard) RecordTour(ctx context.Context, plan *bench.Plan, path string) error {
	player, err := slowmotion.NewPlayer(ctx, plan, slowmotion.Options{}, slowmotion.RealTime, true, NewClock(d.Env.Now))
	if err != nil {
		return err
	}
	pages := queues.New(queues.Options{Source: steppedSource{player, ctx}, Demo: true})
	film := tui.Film{Width: 118, Height: 32, Every: 100}
	picture := film.Record(tui.New(pages, tui.Options{}), func() { player.Elapse(ctx, tui.FrameInterval) })
	if err := player.Close(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &cli.Exit{Kind: olaf.Interrupted, Err: fmt.Errorf("interrupted; %s was not written", path)}
	}
	if err := renameio.WriteFile(path, []byte(picture), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(d.Env.Stderr, "wrote %s\n", path)
	return nil
}

// RunBeside runs an experiment while the terminal shows one of its runs in slow motion. If the user leaves the
// dashboard early, the experiment is stopped.
func RunBeside(ctx context.Context, env *cli.Env, d *Dashboard, spec bench.Spec, b *Background) (result.Report, error) {
	if err := env.Devices.Check(d.Device, testbed.Copies); err != nil {
		if !d.CompareTwin {
			return nil, fmt.Errorf("--tui: %w; watch it with 'olafctl tui -d %s', or leave out --tui", err, d.Device)
		}
		d.measured, d.Device = d.Device, env.Devices.Default()
	} else {
		d.CompareTwin = false
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		return nil, err
	}
	if spec.Loop != nil {
		loop, err := NewLoop(env, d.View, plan, 0, b)
		if err != nil {
			return nil, err
		}
		return loop.ShowBeside(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b.startRun(ctx)
	d.Env, d.Bench, d.workbook, d.figures = env, b.latestState, b.writeWorkbook, b.drawFigures
	shown := d.ShowPlan(ctx, plan)
	if !b.isFinished() {
		stop()
	}
	b.wg.Wait()
	return b.report, errors.Join(b.Err, shown)
}

// Background is an experiment that runs while the dashboard is shown.
type Background struct {
	Run    func(context.Context) (result.Report, error)
	Look   func() (done, total int) // returns the progress without blocking
	Rows   func() []results.Row     // rows so far; nil if they are not shown
	wg     sync.WaitGroup
	result atomic.Pointer[queues.Bench]
	report result.Report // valid after wg
	Err    error
}

func (b *Background) startRun(ctx context.Context) {
	b.wg.Go(func() {
		b.report, b.Err = b.Run(ctx)
		final := b.readProgress()
		final.Finished, final.Err = true, b.Err
		if b.report != nil {
			final.Report = NewReport(b.report.WriteText)
			if b.Err == nil {
				final.Err = b.report.Err()
			}
		}
		b.result.Store(final)
	})
}

func (b *Background) readProgress() *queues.Bench {
	done, total := b.Look()
	state := &queues.Bench{Done: done, Total: total}
	if b.Rows != nil {
		state.Rows = b.Rows()
	}
	return state
}

func (b *Background) isFinished() bool { return b.result.Load() != nil }

func (b *Background) latestState() *queues.Bench {
	if final := b.result.Load(); final != nil {
		return final
	}
	return b.readProgress()
}

// finishedResult returns the result of the experiment. It returns an error if the experiment is still running or has no
// results in the given form.
func (b *Background) finishedResult(form string) (*sheets.Result, error) {
	if !b.isFinished() {
		return nil, errors.New("the experiment is still running")
	}
	b.wg.Wait()
	report, ok := b.report.(interface{ Result() *sheets.Result })
	if !ok {
		return nil, fmt.Errorf("this experiment has no %s", form)
	}
	return report.Result(), nil
}

// writeWorkbook writes the results of a finished experiment to an Excel workbook.
func (b *Background) writeWorkbook(context.Context) (string, error) {
	r, err := b.finishedResult("workbook")
	if err != nil {
		return "", err
	}
	var book bytes.Buffer
	if err := xlsx.Write(&book, sheets.Book(r)); err != nil {
		return "", err
	}
	return cli.SaveView("olafctl-results.xlsx", book.Bytes())
}

// drawFigures draws the results of a finished experiment in a new folder.
func (b *Background) drawFigures(context.Context) (string, error) {
	r, err := b.finishedResult("figures")
	if err != nil {
		return "", err
	}
	folder, err := cli.NewFolder("olafctl-figures")
	if err != nil {
		return "", err
	}
	var targets []export.Target
	for _, format := range figure.Formats() {
		targets = append(targets, export.Figures(folder, format, r)...)
	}
	return folder, export.Files(targets, false)
}
