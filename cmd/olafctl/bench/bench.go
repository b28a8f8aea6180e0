// Package bench implements 'olafctl bench', which measures a queue or a switch program under configurable traffic on
// any device.
package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/expect"
	"github.com/olafctl/olaf/cmd/olafctl/monitor"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results/result"
)

// Flags are the flags of bench. Their defaults are the settings of the experiment table1.
type Flags struct {
	cli.KeepFlags
	file     specFlags
	expect   cli.ExpectFlags
	Spec     bench.Spec
	OutRates []string
	h        int
	dequeue  int
	merge    int
	ports    int
	Device   string
	listen   string
	format   cli.Format
	explain  bool
	to       cli.Exports
	pcap     string
	prom     string
	monitor  *monitor.Monitor // nil without prom
	// recording writes pcap while the bench runs; nil without pcap.
	recording *bench.Recording
	trace     traceTrafficFlags
	loop      loopFlags
	quiet     bool
	tui       bool
	view      cli.ViewFlags
	Card      cli.CardFlags
	ageError  float64
	swept     sweepcmd.Flags
	beside    string
	rows      *bench.Rows // results for a dashboard that compares ages with the twin's; nil otherwise
	timeScale string
	tc        tc.Control // converted into Spec, together with tcCount
	tcCount   netsim.Count
	notes     []string
	wires     testbed.Wires // from a testbed file
	models    modelFlags
}

const benchExamples = `  olafctl bench --system olaf --rate 60G
  olafctl bench --clusters 100 --workers 300 --slots 16 -o json
  olafctl bench --system iswitch --h 3 --versus olaf,fifo
  olafctl bench --sweep slots=2..64:x2 --metric aom_cluster_ns --xlsx slots.xlsx
  olafctl bench --expect 'olaf.40G.aom_cluster_ns < 1.3us' -o yaml > spec.yaml
  sudo olafctl bench -d xdp: --rate 8M --out-rate 3M --burst 1 --runs 3`

func New(env *cli.Env) *cobra.Command {
	f := &Flags{Spec: bench.DefaultSpec(env.Systems), OutRates: []string{"40G", "20G"}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure one system under generated traffic; without options, the paper's Table 1",
		Long: `Measure one system: generated updates pass through the queue or switch program, and loss, aggregation and AoM at the
parameter server are printed beside the published numbers. Every default is the paper's, so the bare command reproduces
Table 1. Runs with lost or untimed packets are reported as invalid. See docs/guide/first-bench.md.`,
		Example: benchExamples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd, env) },
	}
	f.addFlags(cmd, env)
	cmd.SetHelpFunc(cli.PrintHelp(env, f.appliesTo))
	return cmd
}

// rareSystemFlags lists flags for the system and its traffic that only --help-all shows.
var rareSystemFlags = []string{
	"queue", "accelerator", "ports", "dequeue-cycles", "merge-cycles", "overhead", "reward-threshold",
	"cluster-sigma", "active-clusters", "trace-averaging", "trace-spread", "trace-limit", "trace-frames",
	"first-frame-only",
	"aggregators", "fraction", "spread", "delay", "limit", slotRanges,
}

// appliesTo reports whether a flag applies to the system on the command line. Help lists only flags that apply.
func (f *Flags) appliesTo(flag string) bool {
	s, err := f.Spec.Systems.Find(f.Spec.Queue)
	if err != nil {
		return true
	}
	if s.OnServers {
		return slices.Contains(modelTakes, flag) || flag == "help"
	}
	switch closed := !s.Open() || f.loop.Mode != "" && f.loop.Mode != netsim.Open; {
	case slices.Contains(modelOnly, flag), closed && slices.Contains(openOnly, flag), !closed &&
		slices.Contains(loopOnly, flag):
		return false
	case flag == modeFlag:
		return len(s.Modes) > 1
	case flag == system.OptionH, flag == "topology", flag == "values" && !closed:
		return s.Adds()
	case slices.Contains(bench.LoopOptions(), flag) && closed:
		mode, err := s.Mode(f.loop.Mode)
		return err != nil || mode.CheckOptions(s, []string{flag}) == nil
	}
	return true
}

func (f *Flags) addFlags(cmd *cobra.Command, env *cli.Env) {
	f.AddSpec(cmd)
	cli.InGroup(cmd, cli.RunFlags, func() {
		f.file.addSchema(cmd)
		f.expect.Add(cmd)
	})
	f.swept.AddTo(cmd, env)
	cli.InGroup(cmd, cli.SweepFlags, func() {
		cmd.Flags().BoolVar(&f.swept.Yes, "yes", false,
			"skip the check for long runs, large memory and million-cell sweeps")
	})
	cli.InGroup(cmd, cli.OutputFlags, func() {
		cmd.Flags().BoolVar(&f.tui, "tui", false, "show the dashboard with one run in slow motion")
	})
	f.view.Add(cmd)
	cli.InGroup(cmd, cli.OutputFlags, func() { f.addOutput(cmd) })
	f.KeepFlags.Add(cmd)
	f.Card.Add(cmd)
	cli.InGroup(cmd, cli.CardFlagsOf, func() {
		cmd.Flags().StringVar(&f.listen, "p4rt", "",
			"also serve P4Runtime at this address, such as 127.0.0.1:9559 or unix:/path")
		cmd.Flags().Float64Var(&f.ageError, "age-error", 10,
			"withhold ages if the clock error exceeds this percentage of the mean AoM")
	})
	f.addReal(cmd)
	f.models.add(cmd)
	cli.AddFormatFlag(cmd, &f.format, cli.Table, cli.JSON, cli.CSV, cli.JSONL, cli.YAML)
	cli.AddExplainFlag(cmd, &f.explain)
	cli.AddDeviceFlag(cmd, env, &f.Device)
	cli.MarkRare(cmd, rareSystemFlags...)
}

// besideTwin is the value of --beside that compares the device with the twin.
const besideTwin = "twin"

// addReal adds the flags for devices that run in real time.
func (f *Flags) addReal(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.CardFlagsOf, func() {
		cmd.Flags().StringVar(&f.beside, "beside", "",
			"compare ages with the twin's, for the plan and for the logged arrivals: twin")
		cmd.Flags().StringVar(&f.timeScale, "time-scale", "",
			"divide all rates, such as 1/500; for devices timed by a processor")
		cli.AddControl(cmd, &f.tc)
		f.tcCount = netsim.CountClusters
		cli.Choose(cmd, &f.tcCount, "tc-count", "clusters that ACKs count as active, with --tc", netsim.CountNames()...)
	})
	cli.Complete(cmd, "beside", func() []string { return []string{besideTwin} })
}

// scaleRates divides all rates by the divisor in --time-scale and returns a note about the change, or "" without the
// flag.
func (f *Flags) scaleRates() (string, error) {
	if f.timeScale == "" {
		return "", nil
	}
	by, err := cli.TimeScale(f.timeScale)
	if err != nil {
		return "", err
	}
	w := &f.Spec.Workload
	for _, r := range append([]*olaf.Rate{&w.MeanRate, &w.LineRate}, ratePointers(f.Spec.OutRates)...) {
		*r /= olaf.Rate(by)
	}
	return fmt.Sprintf("time scale %s: all rates are the requested ones divided by %d", f.timeScale, by), nil
}

func ratePointers(rates []olaf.Rate) []*olaf.Rate {
	p := make([]*olaf.Rate, len(rates))
	for i := range rates {
		p[i] = &rates[i]
	}
	return p
}

func (f *Flags) addOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.to.Add(flags, "xlsx", "write a workbook to this file")
	f.to.Add(flags, "report", "write a self-contained HTML report to this file")
	flags.StringVar(&f.pcap, "pcap", "", "write the first run's frames: .pcapng or .pcap")
	flags.StringVar(&f.prom, "metrics-file", "", "write the results for Prometheus' node exporter to this .prom file, which all users can read")
	cli.AddForce(flags, &f.to.Force, "existing output files")
	cli.AddQuiet(flags, &f.quiet)
}

// AddSpec adds the flags that describe a bench, with the values in f.Spec and f.OutRates as their defaults.
func (f *Flags) AddSpec(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.SystemFlags, func() { f.addSystem(cmd) })
	cli.InGroup(cmd, cli.TrafficFlags, func() { f.addTraffic(cmd) })
	cli.InGroup(cmd, cli.LoopFlags, func() { f.loop.add(cmd, f.Spec.Systems) })
	cli.InGroup(cmd, cli.RunFlags, func() {
		f.file.add(cmd)
		cmd.Flags().IntVar(&f.Spec.Runs, "runs", f.Spec.Runs, "number of runs, one seed each")
		cmd.Flags().Uint64Var(&f.Spec.Seed, "seed", f.Spec.Seed, "seed of the first run")
	})
}

func (f *Flags) addSystem(cmd *cobra.Command) {
	s, flags := &f.Spec, cmd.Flags()
	systems := s.Systems.ForBench().Names
	tested := append(systems(), serverSystems(s.Systems)...)
	cli.AddSystem(cmd, &s.Queue, "system under test: "+strings.Join(tested, "|"), func() []string { return tested })
	flags.StringVar(&s.Versus, "versus", s.Versus, "systems to compare with, or none")
	flags.IntVar(&f.h, "h", 0, "updates per sum; default a cluster's workers")
	flags.BoolVar(&s.Accelerator, "accelerator", false, "model the published hardware's speed: iswitch, 51.2 Gbps")
	flags.Var(&s.Topology, "topology", "destination of results: P (server), S (workers), or P,S for both")
	flags.StringSliceVar(&f.OutRates, "out-rate", f.OutRates, "output rates")
	flags.IntVar(&s.Slots, "slots", s.Slots, "queue slots (Qmax)")
	cli.ProfileFlag(cmd, &s.Profile)
	flags.IntVar(&f.ports, "ports", 0, "read ports of the gradient memory, 1 or 2, with --profile measured (default 2)")
	flags.IntVar(&f.dequeue, "dequeue-cycles", 0, "override: 4 ns cycles per departure")
	flags.IntVar(&f.merge, "merge-cycles", 0, "override: cycles per merge")
	flags.Var(&s.Overhead, "overhead", "bytes the rate limiter adds per frame: 0B, or 24B for FCS, preamble and gap")
	cli.AddRewardFilter(flags, &s.RewardFilter, &s.RewardThreshold)
	cli.Complete(cmd, "topology", bench.ListTopologies)
	cli.Complete(cmd, "versus", func() []string { return append(systems(), bench.NoVersus) })
}

func (f *Flags) addTraffic(cmd *cobra.Command) {
	w, flags := &f.Spec.Workload, cmd.Flags()
	flags.Var(&w.MeanRate, "rate", "mean rate offered by all workers")
	flags.Var(&w.LineRate, "line-rate", "rate inside a burst")
	flags.IntVar(&w.BurstPackets, "burst", w.BurstPackets, "packets in a burst; 1 for smooth")
	flags.IntVar(&w.Clusters, "clusters", w.Clusters, "clusters (training jobs)")
	flags.IntVar(&w.Workers, "workers", w.Workers, "workers, spread evenly over the clusters")
	flags.IntVar(&w.UpdatesPerWorker, "updates", w.UpdatesPerWorker, "updates per worker")
	flags.Var(&w.Size, "size", "frame size of an update")
	flags.Float64Var(&w.ClusterSigma, "cluster-sigma", w.ClusterSigma,
		"spread of log-normal cluster weights; 0 for equal")
	flags.IntVar(&w.ActiveClusters, "active-clusters", w.ActiveClusters, "clusters in one burst; 0 for all")
	f.trace.add(flags)
}

// ResolveSpec builds the specification from the file, if any, and the flags.
func (f *Flags) ResolveSpec(cmd *cobra.Command, env *cli.Env) error {
	if err := f.file.loadFile(cmd, env, &f.Spec); err != nil {
		return err
	}
	given := cmd.Flags().Changed
	if f.file.read == nil || given("out-rate") {
		if err := f.parseRates(); err != nil {
			return err
		}
	}
	if err := f.loop.closeLoop(cmd, env, f.Device, &f.Spec); err != nil {
		return err
	}
	if f.Spec.Topology == bench.ToWorkers && !given("versus") && f.file.path == "" {
		f.Spec.Versus = "" // systems that only queue send workers no answers
	}
	if f.Spec.Versus == bench.NoVersus {
		f.Spec.Versus = ""
	}
	if err := f.applyOverrides(given); err != nil {
		return err
	}
	if cli.ControlGiven(cmd) != "" {
		f.settleControl()
	}
	if f.trace.name != "" && given("burst") {
		return cli.UsageError("--burst and --trace do not go together: the trace determines when updates leave")
	}
	if err := f.checkFiles(); err != nil {
		return err
	}
	return f.trace.resolveTrace(given, &f.Spec)
}

func (f *Flags) parseRates() error {
	f.Spec.OutRates = nil
	for _, text := range f.OutRates {
		rate, err := olaf.ParseRate(text)
		if err != nil {
			return cli.UsageError("--out-rate: %v", err)
		}
		f.Spec.OutRates = append(f.Spec.OutRates, rate)
	}
	return nil
}

// settleControl sets the workers' transmission control in the specification. It is off if no threshold is set.
func (f *Flags) settleControl() {
	f.Spec.Control = nil
	if c := cli.SettleControl(f.tc); c != nil {
		if f.Spec.Control = (&bench.Control{Control: *c}); f.tcCount != netsim.CountClusters {
			f.Spec.Control.Count = f.tcCount
		}
	}
}

// applyOverrides sets the fields whose flags are given. They override values from a system or a profile.
func (f *Flags) applyOverrides(given func(string) bool) error {
	if given("h") {
		if f.h < 1 || f.h > bench.MaxH {
			return cli.UsageError("--h %d: use 1 to %d", f.h, bench.MaxH)
		}
		f.Spec.H = &f.h
	}
	if given("ports") {
		profile, err := f.Spec.Profile.WithPorts(f.ports)
		if err != nil {
			return cli.UsageError("--ports %d: %v", f.ports, err)
		}
		f.Spec.Profile = profile
	}
	if given("dequeue-cycles") {
		f.Spec.DequeueCycles = &f.dequeue
	}
	if given("merge-cycles") {
		f.Spec.MergeCycles = &f.merge
	}
	return nil
}

// checkFiles rejects output files that cannot be written as requested.
func (f *Flags) checkFiles() error {
	for _, err := range []error{f.to.CheckNames(), cli.CheckExtension("--pcap", f.pcap, ".pcap", ".pcapng"),
		cli.CheckExtension("--metrics-file", f.prom, ".prom"), cli.CheckDistinct(f.listFiles()...)} {
		if err != nil {
			return err
		}
	}
	return cli.RefuseAnyExisting(f.to.Force, f.listFiles()...)
}

// checkFlags rejects flags that do not apply, and an invalid --p4rt address.
func (f *Flags) checkFlags(cmd *cobra.Command, env *cli.Env) error {
	if !f.tui {
		if err := cli.RefuseViewFlags(cmd); err != nil {
			return err
		}
	}
	if err := watch.OneScreen(env, f.tui, f.format); err != nil {
		return err
	}
	if wrong := bench.CheckVersus(f.Spec.Queue, f.Spec.Versus); cmd.Flags().Changed("versus") && wrong != "" {
		return cli.UsageError("--versus %q: %s; leave it out, or use %s", f.Spec.Versus, wrong, bench.NoVersus)
	}
	device, _, err := env.Devices.Lookup(f.Device)
	if err != nil {
		return err
	}
	if f.pcap != "" {
		if err := env.Devices.Check(f.Device, testbed.Records); err != nil {
			return fmt.Errorf("--pcap: %w; elsewhere capture at the parameter server's interface", err)
		}
	}
	if flag := cli.ControlGiven(cmd); flag != "" {
		if err := env.Devices.Check(f.Device, testbed.AnswersUpdates); err != nil {
			return fmt.Errorf("%s: %w; 'olafctl simulate' has control in virtual time", flag, err)
		}
		if err := cli.RefuseFlags(cmd, []string{"pcap", "beside", "tui"}, flag); err != nil {
			return err
		}
	}
	switch f.beside {
	case "":
	case besideTwin:
		if err := env.Devices.Check(f.Device, testbed.LogsArrivals); err != nil {
			return fmt.Errorf("--beside: %w", err)
		}
	default:
		return cli.UsageError("--beside %q: use %s", f.beside, besideTwin)
	}
	switch {
	case cmd.Flags().Changed("age-error") && device.Can(testbed.VirtualTime):
		return cli.UsageError("--age-error is for a card: ages in virtual time are exact")
	case !(f.ageError > 0):
		return cli.UsageError("--age-error %g: want a number above 0", f.ageError)
	}
	if f.listen == "" || strings.HasPrefix(f.listen, "unix:") {
		return nil
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return cli.UsageError("--p4rt %q: use HOST:PORT or unix:PATH", f.listen)
	}
	return nil
}

func (f *Flags) run(cmd *cobra.Command, env *cli.Env) error {
	if f.file.schema {
		return cli.PrintText(env, func() ([]byte, error) { return bench.FileSchema(env.Systems) })
	}
	if err := f.swept.SettleAddress(); err != nil {
		return err
	}
	if found, err := env.Systems.Find(f.Spec.Queue); err == nil && found.OnServers {
		return f.models.runModels(cmd, env, f, found)
	}
	if err := errors.Join(f.models.refuseFlags(cmd, env.Systems), f.settleLab(cmd, env)); err != nil {
		return err
	}
	if len(f.swept.Axes) > 0 {
		return f.sweepSpec(cmd, env)
	}
	if err := errors.Join(f.swept.RefuseSweepOnly(cmd), f.checkFlags(cmd, env)); err != nil {
		return err
	}
	if err := f.settleSpec(cmd, env); err != nil {
		return err
	}
	if f.format == cli.YAML {
		return f.file.printFile(env, f.Spec, append(f.file.expectations(), f.expect.Texts...))
	}
	return f.measureSpec(cmd, env)
}

// settleSpec resolves the file, the flags and the expectations, and checks that the bench can be planned.
func (f *Flags) settleSpec(cmd *cobra.Command, env *cli.Env) error {
	if err := f.ResolveSpec(cmd, env); err != nil {
		return err
	}
	if err := errors.Join(f.checkRealTime(env), f.checkPatience(env, cmd.Flags().Changed("yes"))); err != nil {
		return err
	}
	watch.PaceLoop(cmd, &f.view, &f.Spec)
	scaled, err := f.scaleRates()
	if err != nil {
		return err
	}
	if scaled != "" {
		f.notes = append(f.notes, scaled)
	}
	plan, err := bench.NewPlan(f.Spec)
	if err != nil {
		return err
	}
	if err := f.expect.ResolveRules(f.file.expectations(), plan.DeclareAll(), configurationsOf(plan)); err != nil {
		return f.file.read.Locate(err)
	}
	return nil
}

// measureSpec runs the specification, stores and prints the result, and checks it against the expectations.
func (f *Flags) measureSpec(cmd *cobra.Command, env *cli.Env) error {
	if err := f.CheckStore(env); err != nil {
		return err
	}
	access, err := f.Card.AccessCard(cmd, env, f.Device)
	if err != nil {
		return err
	}
	access.Wires = f.wires
	started := env.Now()
	sinks := f.eventSinks(cmd, env)
	if f.pcap != "" {
		if f.recording, err = f.startRecording(env); err != nil {
			return err
		}
		defer f.recording.Abandon() // does nothing after the commit
		sinks = append(sinks, f.recording)
	}
	if f.prom != "" {
		f.monitor = cli.NewMonitor()
	}
	kept := f.KeepEvents(env, started)
	stream := bench.NewStream(slices.Concat(sinks, f.monitor.Sinks(), kept.Sinks())...)
	report, err := f.carryOut(cmd.Context(), env, access, stream)
	if report == nil {
		return errors.Join(cli.MarkNothingToShow(err), kept.Abort())
	}
	cli.StampProvenance(env, started, report)
	return f.concludeRun(env, report, kept, err)
}

// eventSinks returns the sinks that receive a bench's events: the event lines, the dashboard and the --p4rt announcer.
func (f *Flags) eventSinks(cmd *cobra.Command, env *cli.Env) []bench.Sink {
	sinks := cli.EventSinks(env, f.format)
	if f.tui && f.beside != "" {
		f.rows = new(bench.Rows)
		sinks = append(sinks, f.rows)
		if !cmd.Flags().Changed("speed") {
			f.view.Speed = "1s" // as fast as the bench
		}
	}
	if f.listen != "" && !f.tui {
		sinks = append(sinks, &announcer{env, f.listen})
	}
	return sinks
}

// concludeRun stores, exports and prints the report of a bench that ended with err, and checks the expectations. A
// report that cannot be stored is still exported and printed.
func (f *Flags) concludeRun(env *cli.Env, report *bench.Measurement, kept *cli.Keeping, err error) error {
	unkept := kept.Finish(env, report, report.Bench.Provenance, err != nil, f.quiet)
	// Before the report is printed: its reader may exit early, as head does.
	if err = cli.MarkGeneratorInterrupted(err); err == nil {
		err = f.writeExports(env, report)
	} else {
		f.reportUnwritten(env)
	}
	if err := errors.Join(err, unkept, cli.PrintReport(env, report, f.format, f.explain)); err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	if err := f.expect.JudgeRows(env, report.Bench.Rows); err != nil {
		return err
	}
	return experiments.CheckExpected(report.Paper())
}

// checkRealTime rejects options that closed-loop workers support only in virtual time.
func (f *Flags) checkRealTime(env *cli.Env) error {
	if f.Spec.Loop == nil {
		return nil
	}
	if f.beside != "" {
		return cli.UsageError("--beside compares ages of planned updates, but workers that wait for answers do not "+
			"send by a plan; run the bench with -d %s as well, and compare both with 'olafctl runs "+
			"compare'", env.Devices.Default())
	}
	if f.tui {
		if err := env.Devices.Check(f.Device, testbed.ClosesLoop|testbed.VirtualTime); err != nil {
			return fmt.Errorf("--tui: %w", err)
		}
	}
	return nil
}

// checkPatience rejects a closed loop whose simulation would take long, unless --yes is given.
func (f *Flags) checkPatience(env *cli.Env, asked bool) error {
	switch {
	case f.Spec.Loop == nil && asked:
		return cli.UsageError("--yes applies only to a sweep or to workers that wait for answers; leave it out")
	case asked, env.Devices.Check(f.Device, testbed.VirtualTime) != nil:
		return nil
	}
	return f.Spec.CheckPatience()
}

// startRecording creates the capture file for --pcap.
func (f *Flags) startRecording(env *cli.Env) (*bench.Recording, error) {
	if f.Spec.Loop == nil && env.Devices.Check(f.Device, testbed.ShowsEnds) == nil {
		return bench.RecordEnds(f.pcap, f.to.Force, testbed.EndNames...)
	}
	return f.Spec.Record(f.pcap, f.to.Force)
}

// sweepSpec runs a sweep instead of a bench.
func (f *Flags) sweepSpec(cmd *cobra.Command, env *cli.Env) error {
	if err := env.Devices.Check(f.Device, testbed.Repeats); err != nil {
		return fmt.Errorf("--sweep: %w", err)
	}
	if f.format == cli.YAML || f.format == cli.JSONL {
		return cli.UsageError("-o %s does not go with --sweep; use table, json or csv", f.format)
	}
	file, err := f.swept.SweepFile(cmd, SweepCommand(env), "xlsx", "report", "device")
	if err != nil {
		return err
	}
	if file.File = f.file.path; cmd.Flags().Changed("runs") {
		file.Runs = f.Spec.Runs
	}
	s := &f.swept.GridFlags
	s.Store, s.To, s.Format, s.Quiet, s.Explain, s.Tui, s.View = f.KeepFlags.Store, f.to, f.format, f.quiet, f.explain,
		f.tui, f.view
	return f.swept.RunGrid(cmd, env, file)
}

// configurationsOf returns the plan's configurations in the form that expectations refer to.
func configurationsOf(p *bench.Plan) []expect.Configuration {
	at := make([]expect.Configuration, len(p.Configs))
	for i := range p.Configs {
		at[i] = expect.Configuration{System: p.Configs[i].Queue, Rate: p.Configs[i].OutRate}
	}
	return at
}

// carryOut runs the specification and shows a dashboard or a progress bar.
func (f *Flags) carryOut(ctx context.Context, env *cli.Env, access testbed.Access, stream *bench.Stream) (*bench.Measurement, error) {
	options := bench.Options{Device: f.Device, Access: access, Listen: f.listen, AgeErrorPct: f.ageError,
		Stream: stream, ComparePaper: env.Published.CompareBench, Twin: f.beside != "", Notes: f.notes}
	if f.tui && env.Terminal {
		d := &watch.Dashboard{View: f.view, Device: f.Device, CompareTwin: f.beside != ""}
		shown := &watch.Background{
			Run: func(ctx context.Context) (result.Report, error) {
				report, err := bench.MeasureSpec(ctx, f.Spec, options)
				if report == nil {
					return nil, err // not a non-nil Report with a nil pointer
				}
				return report, err
			},
			Look: cli.ProgressOf(stream),
		}
		if f.rows != nil {
			shown.Rows = f.rows.NewestRows
		}
		report, err := watch.RunBeside(ctx, env, d, f.Spec, shown)
		bench, _ := report.(*bench.Measurement)
		return bench, err
	}
	bar := cli.StartProgress(env, f.quiet, cli.ProgressOf(stream))
	defer bar.Stop()
	return bench.MeasureSpec(ctx, f.Spec, options)
}

// announcer prints the address for a second controller when the tables have been written.
type announcer struct {
	env    *cli.Env
	listen string
}

func (a *announcer) Event(e bench.Event) error {
	if _, ok := e.(bench.Started); ok {
		fmt.Fprintf(a.env.Stderr, "P4Runtime: %s\n", a.listen)
	}
	return nil
}

// listFiles returns the names of the requested files. A name is empty if its file was not requested.
func (f *Flags) listFiles() []string {
	return []string{f.to.Path("xlsx"), f.to.Path("report"), f.pcap, f.prom}
}

// reportUnwritten lists the requested files that were not written because the run did not finish.
func (f *Flags) reportUnwritten(env *cli.Env) {
	for _, path := range f.listFiles() {
		if path != "" {
			fmt.Fprintf(env.Stderr, "not written: %s\n", path)
		}
	}
}

// writeExports writes the requested files and prints their names.
func (f *Flags) writeExports(env *cli.Env, report *bench.Measurement) error {
	if err := f.to.WriteFiles(env, report.Result()); err != nil {
		return err
	}
	if f.monitor != nil {
		f.monitor.AddVerdicts(report.Bench.Experiment, report.Paper())
		if err := f.monitor.WriteFile(f.prom); err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "metrics: %s\n", f.prom)
	}
	return f.commitCapture(env, fmt.Sprintf("run 1 of %s at %v", f.Spec.Queue, f.Spec.OutRates[0]))
}

// commitCapture completes the capture file, if any, and prints what it contains.
func (f *Flags) commitCapture(env *cli.Env, of string) error {
	if f.recording == nil {
		return nil
	}
	if err := f.recording.Commit(); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "capture: %s (%s: %s)\n", f.pcap, f.recording.About(), of)
	return nil
}
