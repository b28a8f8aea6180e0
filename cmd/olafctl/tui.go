package main

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
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/export"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/results/xlsx"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/queues"
)

// oneScreen refuses to print lines where a dashboard is drawn.
func oneScreen(env *cli.Env, tui bool, out cli.Format) error {
	if tui && env.Terminal && out == cli.JSONL {
		return cli.UsageError("--tui draws where -o jsonl prints; leave one of them out")
	}
	return nil
}

// tuiFlags are the flags of tui.
type tuiFlags struct {
	bench   benchFlags
	view    cli.ViewFlags
	demo    bool
	record  string
	force   bool
	run     string
	against string
	index   int
	watch   cli.MetricsFlag
}

func newTuiCmd(env *cli.Env) *cobra.Command {
	f := &tuiFlags{bench: benchFlags{spec: bench.DefaultSpec(env.Systems)}}
	f.bench.spec.Experiment = "olaf/table1"
	cmd := &cobra.Command{
		Use:   "tui",
		Short: "Watch a run live: the queue, the age of the models, losses, tables, registers",
		Long: `Watch one run while it happens, in slow motion if you like: the slots of the queue in departure order, merges and
drops, the Age of Model of every cluster, loss and aggregation, tables and registers. Pause, step from event to event,
go back in time, press enter on an update to read its life. '?' lists the keys; docs/reference/dashboard.md explains the rest.

Without a terminal, or with --plain, the same is told as lines of text.`,
		Example: `  olafctl tui --demo                       # the story in a minute
  olafctl tui --speed 1us                  # a microsecond a second
  olafctl tui --run last                   # a kept run again, with time travel
  olafctl tui --out-rate 5G --slots 16 --versus none`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.execute(cmd, env) },
	}
	f.bench.outRates = []string{"20G"}
	f.bench.addSpec(cmd)
	f.bench.Store.Add(cmd)
	f.view.Add(cmd)
	cli.InGroup(cmd, cli.RunFlags, func() { f.addRun(cmd, env) })
	f.watch.Add(cmd)
	f.bench.card.Add(cmd)
	cli.AddDeviceFlag(cmd, env, &f.bench.device)
	return cmd
}

// addRun adds what says which run is watched, and how.
func (f *tuiFlags) addRun(cmd *cobra.Command, env *cli.Env) {
	flags := cmd.Flags()
	flags.BoolVar(&f.view.Plain, "plain", false, "lines of text instead of a dashboard, for screen readers and logs")
	flags.BoolVar(&f.demo, "demo", false, "a guided tour of a minute")
	flags.StringVar(&f.record, "record", "", "with --demo: write the tour to this file as an animated SVG, and show nothing")
	flags.BoolVar(&f.force, "force", false, "with --record: replace a file that exists")
	flags.StringVar(&f.run, "run", "", "watch a kept run again, by its id or 'last'")
	flags.StringVar(&f.against, "against", "", "with --run: compare with this earlier run on the Results page")
	flags.IntVar(&f.index, "index", 0, "which run of the specification, from 0")
	for _, name := range []string{"run", "against"} {
		if err := cmd.RegisterFlagCompletionFunc(name, f.bench.Store.CompleteRuns(env, 1)); err != nil {
			panic(err) // a flag that was not declared: a mistake in this package
		}
	}
}

func (f *tuiFlags) execute(cmd *cobra.Command, env *cli.Env) error {
	if err := f.bench.resolve(cmd, env); err != nil {
		return err
	}
	spec := f.bench.spec
	paceLoop(cmd, &f.view, &spec)
	access, err := f.bench.card.Access(cmd, env, f.bench.device)
	if err != nil {
		return err
	}
	d := &dashboard{env: env, view: f.view, device: f.bench.device, access: access, index: f.index, watch: f.watch}
	if f.run != "" {
		if spec, d.bench, err = f.kept(env); err != nil {
			return err
		}
	} else if f.against != "" {
		return cli.UsageError("--against compares with a kept run; add --run")
	}
	if f.demo && spec.Loop != nil {
		return cli.UsageError("--demo tells the story of a queue; leave it or --system %s out", spec.Queue)
	}
	if f.demo {
		spec.OutRates = []olaf.Rate{20 * olaf.Gbps}
		d.demo = true
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		return err
	}
	switch {
	case f.record != "":
		return f.film(cmd.Context(), d, plan)
	case spec.Loop != nil:
		return f.watchLoop(cmd.Context(), env, plan)
	}
	return d.show(cmd.Context(), plan)
}

// film writes the tour to a file.
func (f *tuiFlags) film(ctx context.Context, d *dashboard, plan *bench.Plan) error {
	if !f.demo {
		return cli.UsageError("--record writes the tour; add --demo")
	}
	if err := checkEnding(f.record, "tours", ".svg"); err != nil {
		return err
	}
	if err := cli.RefuseExisting(f.record, f.force); err != nil {
		return err
	}
	return d.film(ctx, plan, f.record)
}

// watchLoop shows hosts that wait for answers.
func (f *tuiFlags) watchLoop(ctx context.Context, env *cli.Env, plan *bench.Plan) error {
	if err := env.Devices.Check(f.bench.device, testbed.ClosesLoop|testbed.VirtualTime); err != nil {
		return err
	}
	loop, err := newWatchedLoop(env, f.view, plan, f.index, nil)
	if err != nil {
		return err
	}
	return cli.GeneratorInterrupted(loop.show(ctx))
}

// kept is the specification of a kept run and its report for the Results page.
func (f *tuiFlags) kept(env *cli.Env) (spec bench.Spec, shown func() *queues.Bench, err error) {
	err = f.bench.Store.WithRun(env, f.run, func(s *store.Store, folder *store.Folder) error {
		if archive.HasDocument(folder) { // a simulation or a training
			return cli.UsageError("%s has no single queue to look at; 'olafctl runs show %s' prints it, and 'olafctl simulate --tui' shows a network", folder.ID(), folder.ID())
		}
		if spec, err = bench.KeptSpec(env.Systems, folder); err != nil {
			return err
		}
		r, err := archive.Load(folder, env.Declared)
		if err != nil {
			return err
		}
		var page bytes.Buffer
		fmt.Fprintf(&page, "%s, %s, started %s\n\n", folder.ID(), folder.Manifest.Experiment, folder.Manifest.Provenance.Started)
		if err := f.comparison(env, &page, s); err != nil {
			return err
		}
		if err := text.Bench(&page, dashboardView(), r.Bench); err != nil {
			return err
		}
		state := &queues.Bench{Done: len(r.Runs), Total: len(r.Runs), Finished: true, Lines: lines(&page)}
		shown = func() *queues.Bench { return state }
		return nil
	})
	return spec, shown, err
}

func (f *tuiFlags) comparison(env *cli.Env, w io.Writer, s *store.Store) error {
	if f.against == "" {
		return nil
	}
	earlier, err := sideOf(env, s, f.against)
	if err != nil {
		return err
	}
	this, err := sideOf(env, s, f.run)
	if err != nil {
		return err
	}
	d, err := compare.Results(earlier, this)
	if err != nil {
		return err
	}
	return d.WriteText(w, dashboardView(), false)
}

// dashboardView is a report inside the least dashboard, whose borders take four characters.
func dashboardView() text.View { return text.View{Width: text.PlainWidth - 4} }

func lines(b *bytes.Buffer) []string { return strings.Split(strings.TrimRight(b.String(), "\n"), "\n") }

// dashboard shows one plan's live session on the terminal.
type dashboard struct {
	env      *cli.Env
	view     cli.ViewFlags
	device   string
	access   testbed.Access // to the device
	index    int
	demo     bool
	bench    func() *queues.Bench
	workbook func(context.Context) (string, error)
	figures  func(context.Context) (string, error)
	watch    cli.MetricsFlag
	beside   bool   // bench sets ages beside the twin's, which is what is shown
	measured string // the device of that bench, where it is not the one that is shown
}

// wallClock is the pace of a session that people watch.
type wallClock struct{ now func() time.Time }

func (w wallClock) Now() time.Time { return w.now() }

func (wallClock) Tick(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// show opens a session and shows it until the person leaves or ctx ends; the device is given back in either case.
func (d *dashboard) show(ctx context.Context, plan *bench.Plan) error {
	return d.play(ctx, func(ctx context.Context, speed live.Speed) (*live.Player, error) {
		return live.NewPlayer(ctx, plan, live.Options{Device: d.device, Access: d.access, Index: d.index}, speed, d.view.Paused, wallClock{d.env.Now})
	})
}

// play shows what open opens until the person leaves or ctx ends.
func (d *dashboard) play(ctx context.Context, open func(context.Context, live.Speed) (*live.Player, error)) (err error) {
	speed, err := d.speed()
	if err != nil {
		return err
	}
	options, err := d.view.Options(d.env)
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
	monitor, unwatch, err := d.watch.Start(ctx, d.env)
	if err != nil {
		return err
	}
	defer unwatch()
	monitor.Session(player.Snapshot)
	if d.view.IsPlain(d.env) {
		return cli.GeneratorInterrupted(d.tell(ctx, player))
	}
	pages := queues.New(queues.Options{Source: player, Bench: d.bench, Workbook: d.workbook, Figures: d.figures, Demo: d.demo, Beside: d.beside, Measured: d.measured})
	return d.run(ctx, tui.New(pages, options))
}

func (d *dashboard) run(ctx context.Context, f *tui.Frame) error {
	_, err := d.view.Program(ctx, f).Run()
	if ctx.Err() != nil {
		return cli.GeneratorInterrupted(context.Canceled)
	}
	return err
}

// plainInterval is how often the linear stream says how things are.
const plainInterval = time.Second

// tell writes the linear stream until the run is over.
func (d *dashboard) tell(ctx context.Context, player *live.Player) error {
	out := queues.NewPlain(d.env.Stdout)
	ticker := time.NewTicker(plainInterval / 10)
	defer ticker.Stop()
	for n := 0; ; n++ {
		s := player.Snapshot()
		over := s.State == live.Done || s.State == live.Failed
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

func (d *dashboard) speed() (live.Speed, error) {
	if d.view.Speed == "max" {
		return live.AsFastAsPossible, nil
	}
	speed, err := olaf.ParseDuration(d.view.Speed)
	if err != nil {
		return 0, cli.UsageError("--speed: %v", err)
	}
	if speed <= 0 || speed > olaf.Second {
		return 0, cli.UsageError("--speed %v: use more than 0 and at most 1s, or max", speed)
	}
	return live.Speed(speed), nil
}

// steppedSource carries commands out at once, so that a recording is the same every time.
type steppedSource struct {
	*live.Player
	ctx context.Context
}

func (s steppedSource) Do(c live.Command) bool {
	s.Obey(s.ctx, c)
	return true
}

// film writes the tour as a picture.
func (d *dashboard) film(ctx context.Context, plan *bench.Plan, path string) error {
	player, err := live.NewPlayer(ctx, plan, live.Options{}, live.RealTime, true, wallClock{d.env.Now})
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
	fmt.Fprintf(d.env.Stderr, "wrote %s\n", path)
	return nil
}

// watchBeside carries an experiment out while the terminal shows one of its runs in slow motion. Leaving the dashboard
// before it is done ends it.
func watchBeside(ctx context.Context, env *cli.Env, d *dashboard, spec bench.Spec, b *background) (bench.Report, error) {
	if err := env.Devices.Check(d.device, testbed.Copies); err != nil {
		if !d.beside {
			return nil, fmt.Errorf("--tui: %w; watch it with 'olafctl tui -d %s', or leave out --tui", err, d.device)
		}
		d.measured, d.device = d.device, env.Devices.Default()
	} else {
		d.beside = false
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		return nil, err
	}
	if spec.Loop != nil {
		loop, err := newWatchedLoop(env, d.view, plan, 0, b)
		if err != nil {
			return nil, err
		}
		return loop.besides(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b.start(ctx)
	d.env, d.bench, d.workbook, d.figures = env, b.state, b.workbook, b.figures
	shown := d.show(ctx, plan)
	if !b.finished() {
		stop()
	}
	b.wg.Wait()
	return b.report, errors.Join(b.err, shown)
}

// background is an experiment that runs beside the dashboard.
type background struct {
	run    func(context.Context) (bench.Report, error)
	look   func() (done, total int) // progress; never waits
	rows   func() []results.Row     // so far; nil of what nobody asks for
	wg     sync.WaitGroup
	result atomic.Pointer[queues.Bench]
	report bench.Report // after wg
	err    error
}

func (b *background) start(ctx context.Context) {
	b.wg.Go(func() {
		b.report, b.err = b.run(ctx)
		final := b.progress()
		final.Finished, final.Err = true, b.err
		if b.report != nil {
			var page bytes.Buffer
			if err := b.report.WriteText(&page, dashboardView()); err == nil {
				final.Lines = lines(&page)
			}
			if b.err == nil {
				final.Err = b.report.Err()
			}
		}
		b.result.Store(final)
	})
}

func (b *background) progress() *queues.Bench {
	done, total := b.look()
	state := &queues.Bench{Done: done, Total: total}
	if b.rows != nil {
		state.Rows = b.rows()
	}
	return state
}

func (b *background) finished() bool { return b.result.Load() != nil }

func (b *background) state() *queues.Bench {
	if final := b.result.Load(); final != nil {
		return final
	}
	return b.progress()
}

// outcome is what a finished experiment found, if it has runs.
func (b *background) outcome(form string) (*sheets.Result, error) {
	if !b.finished() {
		return nil, errors.New("the experiment is still running")
	}
	b.wg.Wait()
	report, ok := b.report.(interface{ Result() *sheets.Result })
	if !ok {
		return nil, fmt.Errorf("this experiment has no %s", form)
	}
	return report.Result(), nil
}

// workbook writes the results of a finished experiment.
func (b *background) workbook(context.Context) (string, error) {
	r, err := b.outcome("workbook")
	if err != nil {
		return "", err
	}
	var book bytes.Buffer
	if err := xlsx.Write(&book, sheets.Book(r)); err != nil {
		return "", err
	}
	return cli.SaveView("olafctl-results.xlsx", book.Bytes())
}

// figures draws the results of a finished experiment into a new folder.
func (b *background) figures(context.Context) (string, error) {
	r, err := b.outcome("figures")
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
