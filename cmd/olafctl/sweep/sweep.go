// Package sweep implements 'olafctl sweep' and the --sweep flag of other commands: a grid of cells, run by worker
// processes on one or several machines.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
	found "github.com/olafctl/olaf/results/sweep"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/tui"
	pages "github.com/olafctl/olaf/tui/sweep"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Run a command over a grid of options, on all cores or many machines",
		Long: `Run a command for every combination of some of its options, in worker processes. Results are stored under a key of
everything that determines them, so nothing is computed twice and a stopped sweep can resume. The digest does not depend on
the number of processes. 'olafctl bench --sweep' is the short form. See docs/guide/sweeps.md.`,
		Example: `  olafctl sweep run slots.yaml
  olafctl sweep status
  olafctl sweep resume last`,
	}
	cmd.AddCommand(newSweepRunCmd(env), newSweepStatusCmd(env), newSweepResumeCmd(env), newSweepShowCmd(env), newSweepExportCmd(env), newSweepRmCmd(env),
		newSweepServeCmd(env), newSweepWorkCmd(env), newSweepWorkerCmd(env))
	return cmd
}

// GridFlags are what every way to start a sweep takes.
type GridFlags struct {
	Where     cli.StoreFlag
	Metrics   []string
	until     string
	order     string
	processes int
	Yes       bool
	Quiet     bool
	Explain   bool
	Format    cli.Format
	To        cli.Exports
	Watch     cli.MetricsFlag
	queue     QueueFlags // of no address where processes of this machine do the work
	Tui       bool
	View      cli.ViewFlags
	unkept    bool // the store can't be written, and the sweep works in a temporary one
}

// addWork adds how a sweep is carried out.
func (f *GridFlags) addWork(cmd *cobra.Command) {
	f.order = sweep.Random
	cmd.Flags().IntVar(&f.processes, "processes", 0, "worker processes; 0 for one per core")
	cli.Choose(cmd, &f.order, "order", "order of cells: random (spreads drift over all cells) or grid", sweep.Random, sweep.Grid)
}

// addWhat adds what of a sweep can be said beside its file.
func (f *GridFlags) addWhat(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Metrics, "metric", nil, "metrics to show, comma-separated, or all")
	flags.StringVar(&f.until, "until", "", "add runs to each cell until a target, such as ci=2%; at most --runs")
}

// addOutput adds what is printed and written.
func (f *GridFlags) addOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.AddFormatFlag(cmd, &f.Format)
	flags.StringVar(&f.To.Xlsx, "xlsx", "", "write a workbook to this file")
	flags.StringVar(&f.To.Report, "report", "", "write a self-contained HTML report to this file")
	flags.BoolVar(&f.To.Force, "force", false, "overwrite existing output files")
	flags.BoolVarP(&f.Quiet, "quiet", "q", false, "no progress on stderr")
	f.Watch.Add(cmd)
	f.Where.Add(cmd)
}

// addDashboard adds how a sweep is watched.
func (f *GridFlags) addDashboard(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.DashboardFlags, func() {
		cmd.Flags().BoolVar(&f.Tui, "tui", false, "show the dashboard: speed, workers, failures")
	})
	f.View.AddLooks(cmd)
}

// fileFlags are the flags of sweep run.
type fileFlags struct {
	GridFlags
	runs   int
	schema bool
}

func newSweepRunCmd(env *cli.Env) *cobra.Command {
	f := new(fileFlags)
	cmd := &cobra.Command{
		Use:   "run FILE.yaml",
		Short: "Run a sweep from a file",
		Long: `Run a sweep from a file:

  command: bench
  options: {clusters: 9}
  sweep:
    - slots=2..64:x2
    - out-rate=5G..40G:5G
  runs: 30

Values are single ones or ranges: 2..64:x2 doubles, 5G..40G:5G steps, 0..100ms/20 has 20 equal steps. 'list' instead of
'sweep' lists the cells. All cells are checked before any runs.`,
		Example: `  olafctl sweep run slots.yaml
  olafctl sweep run slots.yaml --until ci=2% --processes 8 -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.runFile(cmd, env, args) },
	}
	cmd.Flags().IntVar(&f.runs, "runs", 0, "runs per cell, overriding the file")
	cmd.Flags().BoolVar(&f.schema, "schema", false, "print the JSON schema of bench files and exit")
	cmd.Flags().BoolVar(&f.Yes, "yes", false, "allow more than a million cells")
	f.addWhat(cmd)
	f.addWork(cmd)
	f.queue.AddWorkers(cmd, "let machines work that take jobs from this work queue ('olafctl sweep serve')")
	f.addDashboard(cmd)
	f.addOutput(cmd)
	return cmd
}

// runFile carries out the sweep that a file describes.
func (f *fileFlags) runFile(cmd *cobra.Command, env *cli.Env, args []string) error {
	if f.schema {
		return cli.PrintText(env, sweep.Schema)
	}
	if len(args) == 0 {
		return cli.UsageError("say which file describes the sweep; 'olafctl sweep run --help' shows one, - is standard input")
	}
	file, err := readSweep(env, args[0])
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("runs") {
		file.Runs = f.runs
	}
	if err := f.refuseLooks(cmd); err != nil {
		return err
	}
	return f.run(cmd.Context(), env, file)
}

// refuseLooks refuses flags about a dashboard that is not shown.
func (f *GridFlags) refuseLooks(cmd *cobra.Command) error {
	if f.Tui {
		return nil
	}
	return cli.RefuseViewFlags(cmd)
}

// Short carries a sweep out that the line of another command describes.
func (f *Flags) Short(cmd *cobra.Command, env *cli.Env, file *sweep.File) error {
	if err := f.refuseLooks(cmd); err != nil {
		return err
	}
	return f.run(cmd.Context(), env, file)
}

// run resolves a sweep and carries it out.
func (f *GridFlags) run(ctx context.Context, env *cli.Env, file *sweep.File) error {
	if len(f.Metrics) > 0 {
		file.Metrics = f.Metrics
	}
	if f.until != "" {
		file.Until = f.until
	}
	if err := f.check(); err != nil {
		return err
	}
	plan, err := file.Resolve(env.SweepCommands(env), f.Yes)
	if err != nil {
		return err
	}
	plan.Order, plan.Line = f.order, append([]string{"olafctl"}, env.Args...)
	if plan.Build, err = ThisBuild(env); err != nil {
		return err
	}
	return f.Where.WithWritable(env, func(s *store.Store, kept bool) error {
		f.unkept = !kept
		folder, err := sweep.In(s).Create(plan, env.Now())
		if err != nil {
			return err
		}
		return f.carryOut(ctx, env, s, folder)
	})
}

func (f *GridFlags) check() error {
	if err := f.queue.check(); err != nil {
		return err
	}
	switch {
	case f.processes < 0:
		return cli.UsageError("--processes %d: use 1 or more, or 0 for one a core", f.processes)
	case f.processes > 0 && f.queue.Url != "":
		return cli.UsageError("--processes are of this machine, and with --workers %s those of a work queue do the cells; leave one out", f.queue.Url)
	}
	if err := f.To.Check(); err != nil {
		return err
	}
	return cli.RefuseAnyExisting(f.To.Force, f.To.Xlsx, f.To.Report)
}

// ThisBuild says what this program is built of.
func ThisBuild(env *cli.Env) (sweep.Build, error) {
	path, err := env.Executable()
	if err != nil {
		return sweep.Build{}, err
	}
	return sweep.ThisBuild(path)
}

// carryOut works on a sweep until it is finished, fails or is stopped.
func (f *GridFlags) carryOut(ctx context.Context, env *cli.Env, s *store.Store, folder *sweep.Folder) error {
	host, err := env.Hostname()
	if err != nil {
		host = "unknown"
	}
	engine := &sweep.Engine{Plan: folder.Plan, Results: s.Singles(), Workers: f.processes, Host: host, Now: env.Now, Start: Processes(env, folder.Plan.Build)}
	if engine.Workers == 0 {
		engine.Workers = runtime.GOMAXPROCS(0)
	}
	handedOut := func(error) (Handed, error) { return Handed{}, nil }
	if f.queue.Url != "" {
		if handedOut, err = f.queue.HandOut(ctx, env, engine); err != nil {
			return errors.Join(err, folder.Leave())
		}
	}
	watch, unwatch, err := f.Watch.Start(ctx, env)
	if err != nil {
		return errors.Join(err, folder.Leave())
	}
	defer unwatch()
	watch.Sweep(engine.Progress)
	stopBeat := beat(env, engine, folder, host)
	cells, differences, err := f.work(ctx, env, engine)
	stopBeat()
	elsewhere, lost := handedOut(err)
	differences = append(differences, elsewhere.Differences...)
	if err == nil {
		err = lost
	}
	if err != nil {
		return errors.Join(f.unfinished(env, engine, folder, err), folder.Leave())
	}
	return f.finish(env, s, folder, cells, Handed{differences, elsewhere.Checked})
}

// work works on all cells beside a dashboard or a progress bar.
func (f *GridFlags) work(ctx context.Context, env *cli.Env, engine *sweep.Engine) ([]found.Outcome, []string, error) {
	if f.Tui && !f.View.IsPlain(env) {
		return f.watched(ctx, env, engine)
	}
	bar := cli.StartNotedProgress(env, f.Quiet, func() (int, int) { p := engine.Progress(); return p.LotsDone, p.Lots }, SweepNote(env, engine))
	defer bar.Stop()
	return engine.Run(ctx)
}

// watched shows the sweep until the person leaves, which stops it.
func (f *GridFlags) watched(ctx context.Context, env *cli.Env, engine *sweep.Engine) (cells []found.Outcome, differences []string, err error) {
	options, err := f.View.Options(env)
	if err != nil {
		return nil, nil, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var report atomic.Pointer[tui.Report]
	board := pages.New(pages.Options{ID: engine.Plan.ID, What: engine.Plan.What(), Progress: engine.Progress, Report: report.Load})
	program := f.View.Program(ctx, tui.New(board, options), tea.WithInput(env.Stdin), tea.WithOutput(env.Screen()))
	var done sync.WaitGroup
	done.Go(func() {
		if cells, differences, err = engine.Run(working); err != nil {
			program.Kill()
			return
		}
		report.Store(watch.Report(func(w io.Writer, v text.View) error {
			d, err := engine.Plan.Document(cells)
			if err != nil {
				return err
			}
			return d.WriteText(w, v)
		}))
	})
	_, shown := program.Run()
	stop()
	done.Wait()
	if err == nil && !errors.Is(shown, tea.ErrProgramKilled) {
		err = shown
	}
	return cells, differences, err
}

// unfinished says how far the sweep came, and how to go on.
func (f *GridFlags) unfinished(env *cli.Env, engine *sweep.Engine, folder *sweep.Folder, err error) error {
	p := engine.Progress()
	if f.unkept {
		fmt.Fprintf(env.Stderr, "%d of %d cells were done; none is kept\n", p.Done, p.Cells)
	} else {
		fmt.Fprintf(env.Stderr, "%d of %d cells are done, and kept; 'olafctl sweep resume %s' goes on\n", p.Done, p.Cells, folder.Plan.ID)
	}
	if errors.Is(err, context.Canceled) {
		return &cli.Exit{Kind: olaf.Interrupted, Err: errors.New("interrupted")}
	}
	return err
}

// finish keeps a whole sweep, prints it and writes what was asked for.
func (f *GridFlags) finish(env *cli.Env, s *store.Store, folder *sweep.Folder, cells []found.Outcome, from Handed) error {
	d, err := folder.Plan.Document(cells)
	if err != nil {
		return errors.Join(err, folder.Leave())
	}
	started, err := time.Parse(time.RFC3339Nano, folder.Plan.Started)
	if err != nil {
		started = env.Now()
	}
	d.Provenance, d.Differences, d.Checked = cli.MadeBy(env, started), from.Differences, from.Checked
	d.Provenance.Command = folder.Plan.Line
	id, err := folder.Finish(d, cells)
	if err != nil {
		return errors.Join(err, folder.Leave())
	}
	if !f.Quiet && !f.unkept {
		fmt.Fprintf(env.Stderr, "kept as %s\n", id)
	}
	if f.To != (cli.Exports{Force: f.To.Force}) {
		run, err := s.Load(id)
		if err != nil {
			return err
		}
		r, err := archive.LoadExportable(run, env.Declared, env.Layouts)
		if err != nil {
			return err
		}
		if err := f.To.Write(env, r); err != nil {
			return err
		}
		if err := f.To.Remember(env, s, run); err != nil {
			return err
		}
	}
	return errors.Join(cli.PrintReport(env, d, f.Format, f.Explain), d.Err())
}

// Processes starts workers: this program once more, each on one core.
func Processes(env *cli.Env, build sweep.Build) func(context.Context) (sweep.Worker, error) {
	started := make(chan int, 1)
	started <- 0
	return func(ctx context.Context) (sweep.Worker, error) {
		path, err := env.Executable()
		if err != nil {
			return nil, err
		}
		n := <-started + 1
		started <- n
		cmd := exec.Command(path, "sweep", WorkerName)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		return sweep.StartProcess(ctx, "process "+strconv.Itoa(n), cmd, build)
	}
}

// SweepNote is what stands behind the bar: how fast it goes, and what failed.
func SweepNote(env *cli.Env, engine *sweep.Engine) func() string {
	started := env.Now()
	return func() string {
		p := engine.Progress()
		note := ""
		if seconds := env.Now().Sub(started).Seconds(); seconds > 0 && p.LotsDone > p.Found {
			note = fmt.Sprintf("%.3g/s", float64(p.LotsDone-p.Found)/seconds)
		}
		if p.Failed > 0 {
			note += fmt.Sprintf("  %s failed", olaf.Plural(p.Failed, "cell"))
		}
		return strings.TrimSpace(note)
	}
}

// beatInterval is how often a sweep says how far it is.
const beatInterval = time.Second

// beat says how far the sweep is for 'olafctl sweep status', until stop.
func beat(env *cli.Env, engine *sweep.Engine, folder *sweep.Folder, host string) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	started := env.Now()
	tell := func() {
		now := env.Now()
		folder.Beat(sweep.Beat{Progress: engine.Progress(), Host: host, At: now.UTC().Format(time.RFC3339), Seconds: now.Sub(started).Seconds()})
	}
	go func() {
		defer close(ended)
		ticker := time.NewTicker(beatInterval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				tell()
				return
			case <-ticker.C:
				tell()
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// WorkerName is the command of worker processes.
const WorkerName = "worker"

func newSweepWorkerCmd(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:    WorkerName,
		Short:  "Run jobs from standard input; started by sweeps",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			build, err := ThisBuild(env)
			if err != nil {
				return err
			}
			commands := env.WorkCommands(env)
			err = sweep.Serve(cmd.Context(), commands, build, env.Stdin, env.Stdout)
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) {
				err = nil // whoever asked is gone
			}
			return errors.Join(err, commands.Close())
		},
	}
}

// Flags let a command be swept by its own line: --sweep.
type Flags struct {
	GridFlags
	Axes    []string
	machine *cli.NumberOrQueue // what --workers says, beside how many there are in what is measured
}

// AddTo adds --sweep and what belongs to it, to a command that has --workers of its own.
func (f *Flags) AddTo(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.RunFlags, func() {
		cmd.Flags().StringArrayVar(&f.Axes, "sweep", nil, "vary an option, slots=2..64:x2; repeatable")
	})
	cli.InGroup(cmd, cli.SweepFlags, func() {
		f.addWhat(cmd)
		f.addWork(cmd)
		f.queue.addToken(cmd)
		f.queue.addCheck(cmd)
	})
	f.machine = cli.AddQueueTo(cmd)
}

// Settle is called before anybody asks which flags were given. A work queue is refused where nothing is swept.
func (f *Flags) Settle() error {
	f.machine.Settle()
	if f.queue.Url = f.machine.Address; f.queue.Url != "" && len(f.Axes) == 0 {
		return cli.UsageError("--workers %s: machines of a work queue do sweeps; add --sweep NAME=VALUES, or say how many workers there are", f.queue.Url)
	}
	return nil
}

// sweepOnly are the flags that do nothing without --sweep.
var sweepOnly = []string{"metric", "until", "order", "processes", "token-file", "check"}

// Refuse refuses flags that do nothing without --sweep, and those of the command that are like them.
func (f *Flags) Refuse(cmd *cobra.Command, also ...string) error {
	for _, name := range slices.Concat(also, sweepOnly) {
		if cmd.Flags().Changed(name) {
			return cli.UsageError("--%s is of a sweep; add --sweep NAME=VALUES", name)
		}
	}
	return nil
}

// File is the sweep that a command line describes: all flags that were given are options of every cell, but those in also, which
// belong to the sweep as a whole. Any other is refused.
func (f *Flags) File(cmd *cobra.Command, of *sweep.Command, also ...string) (*sweep.File, error) {
	file := &sweep.File{Command: of.Name, Sweep: f.Axes, Options: map[string]string{}}
	also = append(also, "sweep", "metric", "until", "order", "processes", "store", "quiet", "force", "output", "yes", "explain", "runs", "file",
		"tui", "keys", "theme", "mouse", "token-file", "check", "tls-ca", "tls-cert", "tls-key", "tls-server-name")
	var refused []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch {
		case slices.Contains(also, flag.Name), !flag.Changed:
		case !slices.Contains(of.Options, flag.Name):
			refused = append(refused, "--"+flag.Name)
		default:
			file.Options[flag.Name] = flag.Value.String()
			if list, ok := flag.Value.(pflag.SliceValue); ok {
				file.Options[flag.Name] = strings.Join(list.GetSlice(), ",")
			}
		}
	})
	if len(refused) > 0 {
		return nil, cli.UsageError("%s can't be given with --sweep; leave it out", strings.Join(refused, ", "))
	}
	return file, nil
}
