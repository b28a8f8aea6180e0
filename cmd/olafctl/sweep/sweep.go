// Package sweep implements 'olafctl sweep' and the --sweep flag of other commands. A sweep is a grid of cells that
// worker processes run on one or several machines.
package sweep

import (
	"cmp"
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
	cmd.AddCommand(newSweepRunCmd(env), newSweepStatusCmd(env), newSweepResumeCmd(env), newSweepShowCmd(env),
		newSweepExportCmd(env), newSweepRmCmd(env), newSweepServeCmd(env), newSweepWorkCmd(env), newSweepWorkerCmd(env))
	return cmd
}

// GridFlags are the flags of every command that runs a sweep.
type GridFlags struct {
	Store     cli.StoreFlag
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
	queue     QueueFlags // without an address, processes on this machine do the work
	Tui       bool
	View      cli.ViewFlags
	unkept    bool // the store is not writable, so the sweep uses a temporary one
}

// addWork adds the flags that control how a sweep is run.
func (f *GridFlags) addWork(cmd *cobra.Command) {
	f.order = sweep.Random
	cmd.Flags().IntVar(&f.processes, "processes", 0, "worker processes; 0 for one per core")
	cli.Choose(cmd, &f.order, "order", "order of cells: random (spreads drift over all cells) or grid", sweep.Random,
		sweep.Grid)
}

// addFileFlags adds the flags that override the contents of a sweep file.
func (f *GridFlags) addFileFlags(cmd *cobra.Command, env *cli.Env) {
	flags := cmd.Flags()
	f.addMetrics(cmd, env)
	flags.StringVar(&f.until, "until", "", "add runs to each cell until a target, such as ci=2%; at most --runs")
}

// addMetrics adds --metric. The shell completes its value with the metrics of the command, or of all commands.
func (f *GridFlags) addMetrics(cmd *cobra.Command, env *cli.Env) {
	cmd.Flags().StringSliceVar(&f.Metrics, "metric", nil, "metrics to show, comma-separated, or all")
	cli.Complete(cmd, "metric", func() []string {
		names := []string{"all"}
		for _, c := range env.SweepCommands(env) {
			if _, err := env.SweepCommands(env).Find(cmd.Name()); err != nil || c.Name == cmd.Name() {
				for _, m := range c.Metrics {
					names = append(names, m.Name)
				}
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	})
}

// addOutput adds the flags for output formats and files.
func (f *GridFlags) addOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.AddFormatFlag(cmd, &f.Format)
	f.To.Add(flags, "xlsx", "write a workbook to this file")
	f.To.Add(flags, "report", "write a self-contained HTML report to this file")
	cli.AddForce(flags, &f.To.Force, "existing output files")
	cli.AddQuiet(flags, &f.Quiet)
	f.Watch.Add(cmd)
	f.Store.Add(cmd)
}

// addDashboard adds the flags for the dashboard.
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
	f.addFileFlags(cmd, env)
	f.addWork(cmd)
	f.queue.AddWorkers(cmd, "work queue from which other machines take jobs ('olafctl sweep serve')")
	f.addDashboard(cmd)
	f.addOutput(cmd)
	return cmd
}

// runFile runs the sweep that a file describes.
func (f *fileFlags) runFile(cmd *cobra.Command, env *cli.Env, args []string) error {
	if f.schema {
		return cli.PrintText(env, sweep.FileJSONSchema)
	}
	if len(args) == 0 {
		return cli.UsageError("name the sweep's file, or - for standard input; 'olafctl sweep run --help' shows an " +
			"example")
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

// refuseLooks rejects dashboard flags if --tui is not given.
func (f *GridFlags) refuseLooks(cmd *cobra.Command) error {
	if f.Tui {
		return nil
	}
	return cli.RefuseViewFlags(cmd)
}

// RunGrid runs a sweep that the command line of another command describes.
func (f *Flags) RunGrid(cmd *cobra.Command, env *cli.Env, file *sweep.File) error {
	if err := f.refuseLooks(cmd); err != nil {
		return err
	}
	return f.run(cmd.Context(), env, file)
}

// run resolves the cells of a sweep and runs them.
func (f *GridFlags) run(ctx context.Context, env *cli.Env, file *sweep.File) error {
	if len(f.Metrics) > 0 {
		file.Metrics = f.Metrics
	}
	if f.until != "" {
		file.Until = f.until
	}
	if err := f.checkFlags(); err != nil {
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
	return f.Store.WithWritable(env, func(s *store.Store, kept bool) error {
		f.unkept = !kept
		folder, err := sweep.FoldersOf(s).Create(plan, env.Now())
		if err != nil {
			return err
		}
		return f.carryOut(ctx, env, s, folder)
	})
}

func (f *GridFlags) checkFlags() error {
	if err := f.queue.checkAddress(); err != nil {
		return err
	}
	switch {
	case f.processes < 0:
		return cli.UsageError("--processes %d: use 1 or more, or 0 for one per core", f.processes)
	case f.processes > 0 && f.queue.Url != "":
		return cli.UsageError("--processes counts processes on this machine, but --workers %s uses a work queue; "+
			"leave one of them out", f.queue.Url)
	}
	if err := f.To.CheckNames(); err != nil {
		return err
	}
	return cli.RefuseAnyExisting(f.To.Force, f.To.Path("xlsx"), f.To.Path("report"))
}

// ThisBuild returns the build identity of this program.
func ThisBuild(env *cli.Env) (sweep.Build, error) {
	path, err := env.Executable()
	if err != nil {
		return sweep.Build{}, err
	}
	return sweep.ThisBuild(path)
}

// carryOut runs a sweep until it is finished, fails or is stopped.
func (f *GridFlags) carryOut(ctx context.Context, env *cli.Env, s *store.Store, folder *sweep.Folder) error {
	engine := f.newEngine(env, s, folder.Plan)
	var err error
	handedOut := func(error) (Handed, error) { return Handed{}, nil }
	if f.queue.Url != "" {
		if handedOut, err = f.queue.HandOut(ctx, env, engine); err != nil {
			return errors.Join(err, folder.Leave())
		}
	}
	watch, unwatch, err := f.Watch.StartMonitor(ctx, env)
	if err != nil {
		return errors.Join(err, folder.Leave())
	}
	defer unwatch()
	watch.AddSweep(engine.Progress)
	stopBeat := startBeat(env, engine, folder)
	cells, differences, err := f.runCells(ctx, env, engine)
	stopBeat()
	elsewhere, lost := handedOut(err)
	differences = append(differences, elsewhere.Differences...)
	if err == nil {
		err = lost
	}
	if err != nil {
		return errors.Join(f.reportUnfinished(env, engine, folder, err), folder.Leave())
	}
	return f.finishSweep(env, s, folder, cells, Handed{differences, elsewhere.Checked})
}

// runCells runs all cells and shows a dashboard or a progress bar.
func (f *GridFlags) runCells(ctx context.Context, env *cli.Env, engine *sweep.Engine) ([]found.Outcome, []string,
	error) {
	if f.Tui && !f.View.IsPlain(env) {
		return f.showDashboard(ctx, env, engine)
	}
	return f.runWithBar(ctx, env, engine)
}

// newEngine returns the engine for a plan, with the worker processes that the flags select.
func (f *GridFlags) newEngine(env *cli.Env, s *store.Store, plan *sweep.Plan) *sweep.Engine {
	return &sweep.Engine{Plan: plan, Results: s.Singles(), Workers: f.countProcesses(), Host: env.HostName(), Now: env.Now,
		Start: ProcessStarter(env, plan.Build)}
}

// countProcesses returns the number of worker processes on this host.
func (f *GridFlags) countProcesses() int { return cmp.Or(f.processes, runtime.GOMAXPROCS(0)) }

// runWithBar runs an engine and shows a progress bar.
func (f *GridFlags) runWithBar(ctx context.Context, env *cli.Env, engine *sweep.Engine) ([]found.Outcome, []string,
	error) {
	bar := cli.StartNotedProgress(env, f.Quiet, func() (int, int) { p := engine.Progress(); return p.LotsDone, p.Lots },
		SweepNote(env, engine))
	defer bar.Stop()
	return engine.Run(ctx)
}

// NewReport returns a report on a finished sweep for the dashboard.
func NewReport(plan *sweep.Plan, cells []found.Outcome) *tui.Report {
	return watch.NewReport(func(w io.Writer, v text.View) error {
		d, err := plan.Document(cells)
		if err != nil {
			return err
		}
		return d.WriteText(w, v)
	})
}

// showDashboard shows the sweep on the dashboard until it ends. If the user leaves the dashboard, the sweep is stopped.
func (f *GridFlags) showDashboard(ctx context.Context, env *cli.Env, engine *sweep.Engine) (cells []found.Outcome,
	differences []string, err error) {
	options, err := f.View.DashboardOptions(env)
	if err != nil {
		return nil, nil, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var report atomic.Pointer[tui.Report]
	board := pages.New(pages.Options{ID: engine.Plan.ID, What: engine.Plan.Describe(), Progress: engine.Progress, Report: report.Load})
	program := f.View.NewProgram(ctx, tui.New(board, options), tea.WithInput(env.Stdin), tea.WithOutput(env.Screen()))
	var done sync.WaitGroup
	done.Go(func() {
		if cells, differences, err = engine.Run(working); err != nil {
			program.Kill()
			return
		}
		report.Store(NewReport(engine.Plan, cells))
	})
	_, shown := program.Run()
	stop()
	done.Wait()
	if err == nil && !errors.Is(shown, tea.ErrProgramKilled) {
		err = shown
	}
	return cells, differences, err
}

// reportUnfinished prints the progress of an unfinished sweep and how to resume it.
func (f *GridFlags) reportUnfinished(env *cli.Env, engine *sweep.Engine, folder *sweep.Folder, err error) error {
	p := engine.Progress()
	switch {
	case f.unkept:
		fmt.Fprintf(env.Stderr, "%d of %d cells were done, but are not kept\n", p.Done, p.Cells)
	case p.Unkept != "":
		fmt.Fprintf(env.Stderr, "%d of %d cells are done, but not all are kept: %s; 'olafctl sweep resume %s' continues\n",
			p.Done, p.Cells, p.Unkept, folder.Plan.ID)
	default:
		fmt.Fprintf(env.Stderr, "%d of %d cells are done and kept; 'olafctl sweep resume %s' continues\n", p.Done,
			p.Cells, folder.Plan.ID)
	}
	if errors.Is(err, context.Canceled) {
		return &cli.Exit{Kind: olaf.Interrupted, Err: errors.New("interrupted")}
	}
	return err
}

// finishSweep stores a complete sweep, prints it and writes the requested files.
func (f *GridFlags) finishSweep(env *cli.Env, s *store.Store, folder *sweep.Folder, cells []found.Outcome,
	from Handed) error {
	d, err := folder.Plan.Document(cells)
	if err != nil {
		return errors.Join(err, folder.Leave())
	}
	started, err := time.Parse(time.RFC3339Nano, folder.Plan.Started)
	if err != nil {
		started = env.Now()
	}
	d.Provenance, d.Differences, d.Checked = cli.NewProvenance(env, started), from.Differences, from.Checked
	d.Provenance.Command = folder.Plan.Line
	id, err := folder.Finish(d, cells)
	if err != nil { // the result is not lost even if the store is full
		d.ID = ""
		err = fmt.Errorf("the result is shown, but not kept: %w; 'olafctl sweep resume %s' stores it when there is room",
			err, folder.Plan.ID)
		return errors.Join(cli.PrintReport(env, d, f.Format, f.Explain), &cli.Exit{Kind: olaf.Failed, Err: err},
			folder.Leave())
	}
	if !f.Quiet && !f.unkept {
		fmt.Fprintf(env.Stderr, "kept as %s\n", id)
	}
	if !f.To.IsEmpty() {
		if err := f.writeExports(env, s, id); err != nil {
			return err
		}
	}
	return errors.Join(cli.PrintReport(env, d, f.Format, f.Explain), d.Err())
}

// writeExports writes the requested files from a stored sweep.
func (f *GridFlags) writeExports(env *cli.Env, s *store.Store, id string) error {
	run, err := s.Load(id)
	if err != nil {
		return err
	}
	r, err := archive.LoadExportable(run, env.Declared, env.Layouts)
	if err != nil {
		return err
	}
	if err := f.To.WriteFiles(env, r); err != nil {
		return err
	}
	return f.To.RecordExports(env, s, run)
}

// ProcessStarter returns a function that starts worker processes. Each runs this program on one core.
func ProcessStarter(env *cli.Env, build sweep.Build) func(context.Context) (sweep.Worker, error) {
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

// SweepNote returns a function that formats the note shown after the progress bar: the speed and the number of failed
// cells.
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
		if p.Unkept != "" {
			note += "  results can't be stored: " + p.Unkept
		}
		return strings.TrimSpace(note)
	}
}

// beatInterval is the interval at which a sweep records its progress.
const beatInterval = time.Second

// startBeat records the sweep's progress for 'olafctl sweep status' until stop is called.
func startBeat(env *cli.Env, engine *sweep.Engine, folder *sweep.Folder) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	started := env.Now()
	tell := func() {
		now := env.Now()
		folder.Beat(sweep.Beat{Progress: engine.Progress(), Host: engine.Host, At: now.UTC().Format(time.RFC3339),
			Seconds: now.Sub(started).Seconds()})
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

// WorkerName is the name of the command that worker processes run.
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
			err = sweep.ServeJobs(cmd.Context(), commands, build, env.Stdin, env.Stdout)
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) {
				err = nil // the parent process has exited
			}
			return errors.Join(err, commands.Close())
		},
	}
}

// Flags are the flags of a command that can be swept with --sweep.
type Flags struct {
	GridFlags
	Axes    []string
	machine *cli.NumberOrQueue // the address in --workers; a number there counts the workers of a cell
}

// AddTo adds --sweep and the related flags to a command that has its own flag --workers.
func (f *Flags) AddTo(cmd *cobra.Command, env *cli.Env) {
	cli.InGroup(cmd, cli.RunFlags, func() {
		cmd.Flags().StringArrayVar(&f.Axes, "sweep", nil, "vary an option, slots=2..64:x2; repeatable")
	})
	cli.InGroup(cmd, cli.SweepFlags, func() {
		f.addFileFlags(cmd, env)
		f.addWork(cmd)
		f.queue.addToken(cmd)
		f.queue.addCheck(cmd)
	})
	f.machine = cli.AddQueueTo(cmd)
}

// SettleAddress rejects the address of a work queue without --sweep. It must be called before checking which flags are
// given.
func (f *Flags) SettleAddress() error {
	f.machine.SettleFlag()
	if f.queue.Url = f.machine.Address; f.queue.Url != "" && len(f.Axes) == 0 {
		return cli.UsageError("--workers %s: a work queue runs only sweeps; add --sweep NAME=VALUES, or give the "+
			"number of workers", f.queue.Url)
	}
	return nil
}

// sweepOnly lists the flags that have no effect without --sweep.
var sweepOnly = []string{"metric", "until", "order", "processes", "token-file", "check"}

// RefuseSweepOnly rejects flags that have no effect without --sweep. also lists additional flags of this kind.
func (f *Flags) RefuseSweepOnly(cmd *cobra.Command, also ...string) error {
	for _, name := range slices.Concat(also, sweepOnly) {
		if cmd.Flags().Changed(name) {
			return cli.UsageError("--%s applies only to a sweep; add --sweep NAME=VALUES", name)
		}
	}
	return nil
}

// SweepFile returns the sweep that a command line describes. All given flags become options of every cell, except those
// in also, which apply to the whole sweep. All other flags are rejected.
func (f *Flags) SweepFile(cmd *cobra.Command, of *sweep.Command, also ...string) (*sweep.File, error) {
	file := &sweep.File{Command: of.Name, Sweep: f.Axes, Options: map[string]string{}}
	also = append(also, "sweep", "metric", "until", "order", "processes", "store", "quiet", "force", "output", "yes",
		"explain", "runs", "file",
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
		return nil, cli.UsageError("%s cannot be used with --sweep; leave it out", strings.Join(refused, ", "))
	}
	return file, nil
}
