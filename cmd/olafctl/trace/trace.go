// Package trace implements 'olafctl trace', which records, converts and inspects traces of training runs.
package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Record, inspect, convert and scale training traces",
		Long: `A trace records when each worker of a training run had an update ready, and its reward and size (docs/reference/trace-format.md).
It does not depend on the network it is replayed through. builtin:lander8 is a recorded example.`,
	}
	cmd.AddCommand(newTraceRecordCmd(env), newTraceInfoCmd(env), newTraceConvertCmd(env), newTraceScaleCmd(env),
		newTracePlotCmd(env))
	return cmd
}

// traceRecordFlags are the flags of trace record.
type traceRecordFlags struct {
	config  rl.Config
	clock   string
	to      string
	payload bool
	force   bool
	quiet   bool
	own     traceProgramFlags
}

func newTraceRecordCmd(env *cli.Env) *cobra.Command {
	f := &traceRecordFlags{config: rl.Defaults()}
	cmd := &cobra.Command{
		Use:   "record -w FILE",
		Short: "Train LunarLander with many workers and record their updates",
		Long: `Train LunarLander with asynchronous PPO and record every worker's updates. In virtual time (the default) the same options
give the same bytes; on the wall clock the trace shows what this machine did. An interrupt ends the recording early and keeps
what was recorded. With --program your own command trains, over an ideal network; with --attach running programs send their
updates with olaf.Recorder (docs/guide/own-training.md).`,
		Example: `  olafctl trace record --workers 8 --iterations 200 --seed 1 -w lander.trace
  olafctl trace record --program 'python3 mlp_async.py' --values 608 --workers 8 -w mlp.trace
  olafctl trace record --iterations 50 --mode periodic --threshold 4 --payload -w iswitch.trace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.own.address != "":
				return f.recordAttached(cmd, env)
			case f.own.command != "":
				return f.recordProgram(cmd, env)
			}
			return f.run(cmd.Context(), env)
		},
	}
	cli.AddTrainingFlags(cmd, &f.config)
	flags := cmd.Flags()
	f.own.add(cmd)
	cli.Choose(cmd, &f.config.Mode, "mode",
		"async | periodic (average every --threshold updates) | sync (all workers wait)", rl.Async, rl.Periodic,
		rl.Sync)
	flags.IntVar(&f.config.Threshold, "threshold", f.config.Threshold, "updates averaged in periodic mode")
	f.clock = trace.Virtual
	cli.Choose(cmd, &f.clock, "clock", "", trace.Virtual, trace.Wall)
	cli.AddWrite(flags, &f.to, "trace to write")
	flags.BoolVar(&f.payload, "payload", false, "also write the gradients to FILE.grad")
	cli.AddForce(flags, &f.force, "existing files")
	cli.AddQuiet(flags, &f.quiet)
	return cmd
}

func (f *traceRecordFlags) run(ctx context.Context, env *cli.Env) error {
	if f.to == "" {
		return cli.UsageError("no file to record into; use -w FILE")
	}
	if err := f.config.Check(); err != nil {
		return err
	}
	if err := cli.CheckEnding(f.to, "traces", ".trace"); err != nil {
		return err
	}
	if err := cli.RefuseAnyExisting(f.force, f.listTargets()...); err != nil {
		return err
	}
	header, err := rl.TraceHeader(&f.config, f.clock, f.payload)
	if err != nil {
		return err
	}
	file, err := trace.CreateFile(f.to, header)
	if err != nil {
		return err
	}
	live := &traincmd.Curve{Total: f.config.Workers * f.config.Iterations}
	bar := cli.StartNotedProgress(env, f.quiet, live.Look, live.Note)
	_, trained := f.runTraining(ctx, &rl.Recorder{File: file, Then: live})
	bar.Stop()
	if err := file.Close(); err != nil {
		return errors.Join(trained, err)
	}
	fmt.Fprintf(env.Stderr, "wrote %s: %s, %s\n", f.to, olaf.Plural(file.Rows(), "update"), live.Note())
	if errors.Is(trained, context.Canceled) {
		return &cli.Exit{Kind: olaf.Interrupted,
			Err: fmt.Errorf("interrupted; %s contains the first %s", f.to, olaf.Plural(file.Rows(), "update"))}
	}
	return trained
}

// listTargets returns the names of the files to which a recording is written.
func (f *traceRecordFlags) listTargets() []string {
	if f.payload {
		return []string{f.to, f.to + trace.PayloadSuffix}
	}
	return []string{f.to}
}

func (f *traceRecordFlags) runTraining(ctx context.Context, o rl.Observer) (*rl.Outcome, error) {
	if f.clock == trace.Wall {
		return rl.TrainLive(ctx, f.config, newMachineClock(time.Now()), o)
	}
	return rl.Train(ctx, f.config, o)
}

// traceInfo is the JSON document of the command trace info.
type traceInfo struct {
	cli.Head
	Name       string           `json:"name"`
	Header     *trace.Header    `json:"header"`
	Statistics trace.Statistics `json:"statistics"`
	Damage     string           `json:"damage,omitempty"`
}

func newTraceInfoCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "info TRACE",
		Short:   "Print a trace's origin and statistics",
		Example: "  olafctl trace info builtin:lander8\n  olafctl trace info big.trace -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printTraceInfo(cmd.Context(), env, args[0], out)
		},
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

// printTraceInfo prints a trace's statistics. For a damaged trace it prints the intact part's statistics and returns
// the error.
func printTraceInfo(ctx context.Context, env *cli.Env, name string, out cli.Format) (err error) {
	source, closer, err := openTrace(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	statistics, damage := trace.MeasureSource(source)
	if damage == nil {
		damage = checkPayload(name, source.Header())
	}
	info := traceInfo{cli.Info("trace"), name, source.Header(), statistics, ""}
	if damage != nil {
		info.Damage = cli.OneLine(damage)
	}
	if out == cli.JSON {
		return errors.Join(cli.WriteJSON(env.Stdout, info), damage)
	}
	list := cli.Grid{Header: []string{"WORKER", "CLUSTER", "UPDATES", "MEAN_MS", "CV", "LAG1", "BURSTINESS", "FLAT_CV",
		"FLAT_LAG1", "REWARD", "STEPS"}}
	for _, w := range statistics.PerWork {
		i, flat := w.Intervals, w.Detrended
		list.Add(fmt.Sprint(w.Worker), fmt.Sprint(w.Cluster), fmt.Sprint(w.Updates), text.Single(i.MeanNS/1e6),
			fmt.Sprintf("%.3f", i.CV), fmt.Sprintf("%.3f", i.Lag1), fmt.Sprintf("%.3f", i.Burstiness),
			fmt.Sprintf("%.3f", flat.CV), fmt.Sprintf("%.3f", flat.Lag1), fmt.Sprintf("%.1f", w.Reward),
			fmt.Sprintf("%.0f", w.EnvSteps))
	}
	if out == cli.Table {
		printTraceSummary(env, source.Header(), &statistics)
		if len(list.Rows) > 40 {
			fmt.Fprintf(env.Stdout, "the first 40 of %d workers; -o csv lists all\n", len(list.Rows))
			list.Rows = list.Rows[:40]
		}
	}
	return errors.Join(list.Write(env, out), damage)
}

func printTraceSummary(env *cli.Env, h *trace.Header, s *trace.Statistics) {
	p := text.NewPage(env.Stdout, env.View(false))
	p.Say("", "%s", describeOrigin(h))
	p.Say("", "%s of %s in %s, %s each, over %v", olaf.Plural(s.Updates, "update"), olaf.Plural(h.Workers, "worker"),
		olaf.Plural(h.Clusters, "cluster"), olaf.Plural(h.Lanes, "gradient"), time.Duration(s.SpanNS))
	if c := h.Scaled; c != nil {
		p.Say("", "scaled from %s… by %s to %v (%s), %s, blocks of %d", c.Source[:min(12, len(c.Source))],
			text.Single(c.Compression), c.Rate, c.Averaging, c.Method, c.Block)
	}
	p.Say("", "reward %.0f in the first tenth, %.0f in the last", s.EarlyMean, s.LateMean)
	p.Printf("\n")
	g := &table.Grid{Columns: []table.GridColumn{{Header: "INTERVALS"}, {Header: "CV", Right: true},
		{Header: "LAG-1 AUTOCORRELATION", Right: true},
		{Header: "BURSTINESS", Right: true}, {Header: "MAX/MEAN", Right: true}}}
	for _, of := range []struct {
		name string
		m    *trace.Moments
	}{{"of a worker", &s.Mean}, {"of a worker without its drift", &s.MeanFlat}, {"of all together", &s.Total}} {
		g.Add(of.name, text.Decimal(of.m.CV, 3), text.Decimal(of.m.Lag1, 3), text.Decimal(of.m.Burstiness, 3),
			text.Decimal(of.m.MaxOverAvg, 2))
	}
	p.Grid(g)
	var dispersion []string
	for _, k := range slices.Sorted(maps.Keys(s.Dispersion)) {
		dispersion = append(dispersion, fmt.Sprintf("%.2f over %s", s.Dispersion[k], olaf.Plural(k, "gap")))
	}
	p.Say("", "index of dispersion: %s", strings.Join(dispersion, ", "))
	p.Printf("\n")
}

// describeOrigin describes how a trace was recorded.
func describeOrigin(h *trace.Header) string {
	parts := []string{h.Clock + " clock"}
	if h.Env != "" {
		parts = append(parts, h.Env, fmt.Sprintf("seed %d", h.Seed))
		if h.GOOS != "" {
			parts = append(parts, strings.TrimSpace(h.GOOS+"/"+h.GOARCH+" "+h.GOAMD64))
		}
		if h.Box2D != "" {
			parts = append(parts, "box2d "+h.Box2D)
		}
	} else {
		parts = append(parts, "made by "+h.Tool)
	}
	if h.Network != "" {
		parts = append(parts, "network "+h.Network)
	}
	return strings.Join(parts, ", ")
}

// checkPayload checks the payload file of a trace if the trace's header announces a payload.
func checkPayload(name string, h *trace.Header) (err error) {
	if !h.Payload {
		return nil
	}
	grad, err := os.Open(name + trace.PayloadSuffix)
	if err != nil {
		return fmt.Errorf("%w: %w", trace.ErrPayload, err)
	}
	defer grad.Close()
	again, closer, err := trace.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	payload := trace.NewPayload(grad, h)
	var u trace.Update
	for {
		if err := again.Next(&u); err == io.EOF {
			return payload.End()
		} else if err != nil {
			return err
		}
		if _, err := payload.Next(&u); err != nil {
			return err
		}
	}
}

// openTrace opens a trace, a CSV file or a capture, depending on the file name's extension.
func openTrace(ctx context.Context, name string) (trace.Source, io.Closer, error) {
	source, closer, err := openSource(name)
	if err != nil {
		return nil, nil, err
	}
	return &watched{Source: source, ctx: ctx}, closer, nil
}

// watched is a source that stops when its context ends. Reading can take long, because a trace may contain a hundred
// million updates.
type watched struct {
	trace.Source
	ctx  context.Context
	rows uint64
}

func (w *watched) Next(u *trace.Update) error {
	if w.rows%4096 == 0 && w.ctx.Err() != nil {
		return &cli.Exit{Kind: olaf.Interrupted,
			Err: fmt.Errorf("interrupted after %s of the trace", olaf.Plural(w.rows, "update"))}
	}
	w.rows++
	return w.Source.Next(u)
}

func openSource(name string) (trace.Source, io.Closer, error) {
	if about, err := os.Stat(name); err == nil && about.IsDir() {
		return nil, nil, cli.UsageError("%s is a directory; use a trace, a CSV or a capture", name)
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return openCSV(name)
	case trace.RecordSuffix:
		source, err := trace.OpenRecords(name)
		return source, io.NopCloser(nil), err
	case ".pcap", ".pcapng":
		source, err := collectCapture(name)
		return source, io.NopCloser(nil), err
	}
	return trace.Open(name)
}

// openCSV opens a CSV trace. A file without our header is read twice, because the workers and clusters must be counted
// first.
func openCSV(name string) (trace.Source, io.Closer, error) {
	const most = 1 << 16
	source, in, err := openCSVOf(name, most, most)
	if err != nil || source.Header().Workers < most {
		return source, in, err
	}
	workers, clusters := 1, 1
	var u trace.Update
	for err = source.Next(&u); err == nil; err = source.Next(&u) {
		workers, clusters = max(workers, int(u.Worker)+1), max(clusters, int(u.Cluster)+1)
	}
	if closed := in.Close(); closed != nil {
		return nil, nil, closed
	}
	source, in, openErr := openCSVOf(name, workers, clusters)
	switch {
	case err == io.EOF:
		return source, in, openErr
	case openErr != nil:
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return &failing{source, err}, in, nil
}

func openCSVOf(name string, workers, clusters int) (trace.Source, io.Closer, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	source, err := trace.NewCSVSource(in, workers, clusters)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), in.Close())
	}
	return source, in, nil
}

// failing is a source that returns the error from an earlier reading of the same file. The second reading would fail at
// the same line but report another cause, because it knows only the workers before that line.
type failing struct {
	trace.Source
	first error
}

func (f *failing) Next(u *trace.Update) error {
	err := f.Source.Next(u)
	if err != nil && err != io.EOF {
		return f.first
	}
	return err
}

// collectCapture creates a trace from the updates in a capture.
func collectCapture(name string) (source trace.Source, err error) {
	in, err := capture.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	var c trace.Collector
	decoder := capture.NewDecoder(in)
	decoder.Others = frame.DetectSystem
	var a capture.Arrival
	for {
		if err := decoder.Next(&a); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if a.Frame.Kind() != olaf.KindUpdate {
			continue
		}
		if err := c.Add(a.GeneratedNS, &a.Update); err != nil {
			return nil, fmt.Errorf("%s: frame %d: %w", name, a.Number, err)
		}
	}
	source, err = c.Source()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return source, nil
}

func newTraceConvertCmd(env *cli.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "convert FROM TO",
		Short: "Convert between trace, CSV, capture and record files",
		Long: `Read a .trace, .csv, .pcap or .pcapng file and write a .trace or .csv file. A CSV needs the columns gen_ns, worker, cluster
and reward. A Python program's records (olaf.Recorder) are named by worker 0's file: NAME.0.olafrec.
A truncated trace is converted up to the cut, with exit code 2.`,
		Example: "  olafctl trace convert lander.trace lander.csv\n  olafctl trace convert testbed.pcapng " +
			"testbed.trace",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckEnding(args[1], "traces", ".trace", ".csv"); err != nil {
				return err
			}
			if err := cli.RefuseExisting(args[1], force); err != nil {
				return err
			}
			return convertTrace(cmd.Context(), env, args[0], args[1])
		},
	}
	cli.AddForce(cmd.Flags(), &force, "an existing target")
	return cmd
}

func convertTrace(ctx context.Context, env *cli.Env, from, to string) (err error) {
	source, closer, err := openTrace(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	good := newConvertible(source)
	if strings.EqualFold(filepath.Ext(to), ".csv") {
		err = cli.WriteAtomically(to, func(w io.Writer) error { return trace.WriteCSV(w, good) })
	} else {
		_, err = writeTrace(to, good, nil)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s: %s\n", to, olaf.Plural(good.rows, "update"))
	if good.cut != nil {
		return fmt.Errorf("%s: %w; %s contains those", from, good.cut, to)
	}
	return nil
}

// convertible is a source for conversion into another file. It omits the payload and ends where the original is
// truncated.
type convertible struct {
	trace.Source
	header trace.Header
	rows   uint64
	cut    error
}

func newConvertible(source trace.Source) *convertible {
	c := &convertible{Source: source, header: *source.Header()}
	c.header.Payload = false
	return c
}

func (c *convertible) Header() *trace.Header { return &c.header }

func (c *convertible) Next(u *trace.Update) error {
	err := c.Source.Next(u)
	switch {
	case err == nil:
		c.rows++
	case errors.Is(err, trace.ErrTruncated):
		c.cut = err
		return io.EOF
	}
	return err
}

// writeTrace writes source to path. The file becomes visible only when it is complete. see, if not nil, is called for
// every update.
func writeTrace(path string, source trace.Source, see func(*trace.Update) error) (rows uint64, err error) {
	err = cli.WriteAtomically(path, func(w io.Writer) error {
		out, err := trace.NewWriter(w, *source.Header())
		if err != nil {
			return err
		}
		var u trace.Update
		for {
			if err := source.Next(&u); err == io.EOF {
				rows = out.Rows()
				return out.Close()
			} else if err != nil {
				return err
			}
			if err := out.Write(&u); err != nil {
				return err
			}
			if see != nil {
				if err := see(&u); err != nil {
					return err
				}
			}
		}
	})
	return rows, err
}

func newTraceScaleCmd(env *cli.Env) *cobra.Command {
	s := trace.DefaultScaling()
	var (
		out   cli.Format
		to    string
		force bool
		quiet bool
	)
	cmd := &cobra.Command{
		Use:   "scale TRACE -w FILE",
		Short: "Scale a recording to another number of workers and rate",
		Long: `Scale a recording to more workers: each emulated worker replays blocks of a recorded one, which keeps the autocorrelation of
its intervals, and one factor compresses time to the target rate. The report lists the preserved statistics and their errors.`,
		Example: `  olafctl trace scale builtin:lander8 --workers 300 --clusters 100 --rate 60G -w big.trace
  olafctl trace scale lander.trace --averaging whole-run --spread 7 -w table1.trace`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return cli.UsageError("no file to write; use -w FILE")
			}
			if err := cli.CheckEnding(to, "traces", ".trace"); err != nil {
				return err
			}
			if err := cli.RefuseExisting(to, force); err != nil {
				return err
			}
			if err := cli.RefuseSameFile(args[0], to); err != nil {
				return err
			}
			return scaleTrace(cmd.Context(), env, args[0], to, s, out, quiet)
		},
	}
	addScaling(cmd, &s)
	flags := cmd.Flags()
	cli.AddWrite(flags, &to, "trace to write")
	cli.AddForce(flags, &force, "an existing file")
	cli.AddQuiet(flags, &quiet)
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

// addScaling adds the flags for scaling a trace, with the values in s as defaults.
func addScaling(cmd *cobra.Command, s *trace.Scaling) {
	flags := cmd.Flags()
	flags.IntVar(&s.Workers, "workers", s.Workers, "workers of the scaled trace")
	flags.IntVar(&s.Clusters, "clusters", s.Clusters, "clusters of the scaled trace")
	flags.IntVar(&s.Updates, "updates", s.Updates, "updates per worker")
	flags.Var(&s.Rate, "rate", "total rate offered by all workers")
	flags.Var(&s.Frame, "size", "frame size of an update")
	flags.Var(&s.Line, "line-rate", "link rate; --rate must not exceed it")
	cli.Choose(cmd, &s.Averaging, "averaging", "averaging window for --rate: stationary (while all send) | whole-run",
		trace.Stationary, trace.WholeRun)
	flags.IntVar(&s.Block, "block", s.Block, "length of the bootstrap blocks, which keep autocorrelation")
	flags.BoolVar(&s.Drift, "drift", s.Drift, "keep the growth of intervals as the policy learns")
	flags.Float64Var(&s.Spread, "spread", s.Spread, "slowest cluster's time divided by the fastest's")
	flags.Float64Var(&s.Jitter, "jitter", s.Jitter, "standard deviation of the log of worker speeds")
	flags.IntVar(&s.ActiveClusters, "active-clusters", s.ActiveClusters,
		"clusters that send at a time, in turns; 0 for all")
	flags.Uint64Var(&s.Seed, "seed", s.Seed, "seed of the bootstrap")
}

func scaleTrace(ctx context.Context, env *cli.Env, from, to string, s trace.Scaling, out cli.Format, quiet bool) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Updates == 0 {
		return cli.UsageError("--updates 0 would never end")
	}
	source, recording, err := measureAndLoad(ctx, from)
	if err != nil {
		return err
	}
	scaler, err := trace.NewScaler(recording, s)
	if err != nil {
		return err
	}
	measured := trace.NewStatistic(s.Workers)
	var written atomic.Int64
	bar := cli.StartProgress(env, quiet, func() (int, int) { return int(written.Load()), scaler.Total() })
	_, err = writeTrace(to, scaler, func(u *trace.Update) error {
		measured.Add(u)
		if n := written.Add(1); n%4096 == 0 {
			return ctx.Err()
		}
		return nil
	})
	bar.Stop()
	if errors.Is(err, context.Canceled) {
		return &cli.Exit{Kind: olaf.Interrupted, Err: fmt.Errorf("interrupted; %s was not written", to)}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s: %s\n", to, olaf.Plural(measured.Result().Updates, "update"))
	return printScaleReport(env, scaler.Report(source, measured.Result()), out)
}

// measureAndLoad reads a recording twice: once to compute its statistics, and once to load it into memory.
func measureAndLoad(ctx context.Context, name string) (s trace.Statistics, r *trace.Recording, err error) {
	for pass := range 2 {
		source, closer, openErr := openTrace(ctx, name)
		if openErr != nil {
			return s, nil, openErr
		}
		if pass == 0 {
			s, err = trace.MeasureSource(source)
		} else {
			r, err = trace.LoadRecording(source)
		}
		if err = errors.Join(err, closer.Close()); err != nil {
			return s, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, r, nil
}

func printScaleReport(env *cli.Env, r trace.ScaleReport, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			trace.ScaleReport
		}{cli.Info("trace-scale"), r})
	}
	list := cli.Grid{Header: []string{"STATISTIC", "RECORDED", "SCALED", "OFF"}}
	list.Add("rate ("+r.Averaging+")", r.Target.String(), r.Achieved.String(),
		fmt.Sprintf("%+.2f%%", 100*(float64(r.Achieved)/float64(r.Target)-1)))
	for _, k := range r.Kept {
		list.Add(k.Name, fmt.Sprintf("%.3f", k.Source), fmt.Sprintf("%.3f", k.Scaled),
			fmt.Sprintf("%+.3f", k.Scaled-k.Source))
	}
	if out == cli.Table {
		fmt.Fprintf(env.Stdout, "%s, time compressed by %s\n", olaf.Plural(r.Updates, "update"),
			text.Single(r.Compression))
	}
	return list.Write(env, out)
}

func newTracePlotCmd(env *cli.Env) *cobra.Command {
	var (
		to    string
		force bool
	)
	cmd := &cobra.Command{
		Use:     "plot TRACE -w FILE",
		Short:   "Plot a trace's rewards over time",
		Example: "  olafctl trace plot builtin:lander8 -w lander.svg",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return cli.UsageError("no file to draw into; use -w FILE.svg, FILE.pdf or FILE.png")
			}
			if err := cli.CheckEnding(to, "pictures", ".svg", ".pdf", ".png"); err != nil {
				return err
			}
			if err := cli.RefuseExisting(to, force); err != nil {
				return err
			}
			if err := plotTrace(cmd.Context(), args[0], to); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "wrote %s\n", to)
			return nil
		},
	}
	cli.AddWrite(cmd.Flags(), &to, "figure to write: .svg, .pdf or .png")
	cli.AddForce(cmd.Flags(), &force, "an existing file")
	return cmd
}

// plotSpans is the number of points in a plot.
const plotSpans = 100

func plotTrace(ctx context.Context, name, to string) (err error) {
	statistics, _, err := measureAndLoad(ctx, name)
	if err != nil {
		return err
	}
	source, closer, err := openTrace(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	var sums, counts [plotSpans]float64
	var u trace.Update
	first := int64(-1)
	for source.Next(&u) == nil {
		if first < 0 {
			first = u.GenNS
		}
		at := min(int(float64(u.GenNS-first)/float64(max(statistics.SpanNS, 1))*plotSpans), plotSpans-1)
		sums[at] += u.Reward
		counts[at]++
	}
	sheet := table.Sheet{Name: "reward", Title: name,
		Columns: []table.Column{{Header: "time", Unit: "s"}, {Header: "reward"}, {Header: "updates"}}}
	for i, n := range counts {
		mean := table.Missing("no update")
		if n > 0 {
			mean = table.N(sums[i] / n)
		}
		x := float64(statistics.SpanNS) * (float64(i) + 0.5) / plotSpans / 1e9
		sheet.Rows = append(sheet.Rows, []table.Cell{table.N(x), mean, table.N(n)})
	}
	sheet.Charts = []table.Chart{{Kind: table.Lines, Title: name, XTitle: source.Header().Clock + " s",
		YTitle: "mean reward of the updates", Series: []table.Series{{Name: "reward", Column: 1}}}}
	return drawTo(to, &sheet)
}

// drawTo draws the figure in a sheet. The file name's extension selects the format.
func drawTo(path string, s *table.Sheet) error {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	return cli.WriteAtomically(path, func(w io.Writer) error { return figure.Write(w, format, s) })
}
