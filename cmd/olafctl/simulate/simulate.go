// Package simulate implements 'olafctl simulate' and 'topology', which simulate networks of queues and closed-loop jobs
// in virtual time.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/expect"
	"github.com/olafctl/olaf/cmd/olafctl/monitor"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// topologyFlags are the flags that select and change a network.
type topologyFlags struct {
	preset            string
	clusters, workers int
	interval, second  olaf.Duration
	jitter            olaf.Duration
	x1                olaf.Rate
	queue, tc         string
	tcCount           netsim.Count
	tcLaw             tc.LawName
	tcAck             tc.AckContent
	filter            bool
	threshold         float64
	dropFilter        bool // leave out the reward filter if the system has none
	duration, warmup  olaf.Duration
	seed              uint64
	sends             string
	waits             waitFlags
	clusterPresets    bool // clusters for jobs are also presets
}

func (f *topologyFlags) add(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.SystemFlags, func() { f.addNetwork(cmd) })
	cli.InGroup(cmd, cli.JobFlags, func() { f.waits.add(cmd) })
	cli.InGroup(cmd, cli.TrafficFlags, func() {
		flags := cmd.Flags()
		flags.Var(&f.interval, "interval", "send period of all workers")
		flags.Var(&f.second, "interval2", "send period of the second half of the clusters")
		flags.Var(&f.jitter, "jitter", "maximum random delay of each send")
		flags.StringVar(&f.sends, "arrivals", "", "CSV file time_ns,worker with all sends")
	})
	cli.InGroup(cmd, cli.RunFlags, func() {
		flags := cmd.Flags()
		flags.Var(&f.duration, "duration", "simulated time after the warm-up")
		flags.Var(&f.warmup, "warmup", "simulated warm-up time")
		flags.Uint64Var(&f.seed, "seed", 1, "seed of the arrivals")
	})
}

func (f *topologyFlags) addNetwork(cmd *cobra.Command) {
	flags := cmd.Flags()
	usage := "built-in topology: " + strings.Join(presetNames(), "|")
	if f.clusterPresets {
		usage += ", or cluster for jobs: " + strings.Join(ClusterNames(), "|")
	}
	flags.StringVar(&f.preset, "preset", "", usage)
	flags.IntVar(&f.clusters, "clusters", 0, "clusters; rates and slots scale with them")
	flags.IntVar(&f.workers, "workers-per-cluster", 0, "workers per cluster; rates scale with them")
	flags.Var(&f.x1, "x1", "output rate of the first cluster's switch")
	cli.AddSystem(cmd, &f.queue, "system to simulate: "+strings.Join(f.systemNames(), "|"), f.systemNames)
	cli.Choose(cmd, &f.tc, "tc", "the workers' transmission control: on|off", "on", "off")
	cli.Choose(cmd, &f.tcCount, "tc-count", "clusters that ACKs count as active", netsim.CountNames()...)
	cli.Choose(cmd, &f.tcLaw, "tc-law", "control law of the workers (docs/guide/simulate.md)", tc.LawNames()...)
	cli.AddAckContent(cmd, &f.tcAck)
	cli.AddRewardFilter(flags, &f.filter, &f.threshold)
	cli.Complete(cmd, "preset", f.presetNames)
}

// presetNames returns the names of all presets.
func (f *topologyFlags) presetNames() []string {
	if f.clusterPresets {
		return append(presetNames(), ClusterNames()...)
	}
	return presetNames()
}

// systemNames returns the names of the systems that can be simulated in networks.
func (f *topologyFlags) systemNames() []string {
	return slices.Concat(engine.DisciplineNames(), f.waits.set.Rising().Names())
}

func presetNames() []string {
	return olaf.Map(netsim.Presets(), func(p [2]string) string { return p[0] })
}

// loadTopology reads a topology file or builds a preset, and applies the given flags.
func (f *topologyFlags) loadTopology(cmd *cobra.Command, args []string) (*netsim.Topology, error) {
	given := cmd.Flags().Changed
	if given("clusters") && f.clusters < 1 || given("workers-per-cluster") && f.workers < 1 {
		return nil, cli.UsageError("--clusters and --workers-per-cluster must be at least 1")
	}
	for _, q := range []struct {
		flag string
		bad  bool
	}{{"interval", f.interval <= 0}, {"interval2", f.second <= 0}, {"x1", f.x1 <= 0}} {
		if given(q.flag) && q.bad {
			return nil, cli.UsageError("--%s must be positive", q.flag)
		}
	}
	t, err := f.baseTopology(args)
	if err != nil {
		return nil, err
	}
	scale := netsim.Scale{Clusters: f.clusters, WorkersPerCluster: f.workers, Interval: f.interval, Interval2: f.second,
		X1: f.x1}
	if given("jitter") {
		scale.Jitter = &f.jitter
	}
	if err := t.Rescale(scale); err != nil {
		return nil, err
	}
	if err := f.applyOverrides(given, t); err != nil {
		return nil, err
	}
	if f.sends != "" {
		t.Sends = f.sends
	}
	if t.Sends != "" {
		if err := t.Check(); err != nil {
			return nil, err
		}
		if err := loadSends(t, f.sends == ""); err != nil {
			return nil, err
		}
	}
	return t, t.Resolve()
}

func (f *topologyFlags) baseTopology(args []string) (*netsim.Topology, error) {
	switch {
	case len(args) == 1 && f.preset != "":
		return nil, cli.UsageError("use a topology file or --preset, not both")
	case len(args) == 1:
		text, err := os.ReadFile(args[0])
		if errors.Is(err, fs.ErrNotExist) && slices.Contains(f.presetNames(), args[0]) {
			return nil, cli.UsageError("there is no file %s; use --preset %s for the built-in "+
				"topology", args[0], args[0])
		}
		if err != nil {
			return nil, &cli.Exit{Kind: olaf.Usage, Err: err}
		}
		return netsim.ParseTopology(f.waits.set, args[0], text)
	case slices.Contains(ClusterNames(), f.preset) && !f.clusterPresets:
		return nil, cli.UsageError("preset %s is a cluster of closed-loop workers and has no topology to show; "+
			"'olafctl simulate --preset %[1]s' runs it", f.preset)
	case f.preset != "" && !slices.Contains(presetNames(), f.preset):
		return nil, cli.UsageError("unknown preset %q%s", f.preset, yamlfile.Suggest(f.preset, f.presetNames()))
	case f.preset != "":
		return netsim.Preset(f.waits.set, f.preset, netsim.Scale{})
	}
	return nil, cli.UsageError("name a topology file, or use --preset %s", strings.Join(f.presetNames(), "|"))
}

func (f *topologyFlags) applyOverrides(given func(string) bool, t *netsim.Topology) error {
	if err := errors.Join(f.chooseSystem(t), f.setWaiting(given, t)); err != nil {
		return err
	}
	if f.tc != "" {
		t.Control.Enabled = f.tc == "on"
	}
	if f.tcCount != "" {
		t.Control.Count = f.tcCount
	}
	if f.tcLaw != "" {
		t.Control.Law, t.Control.Enabled = f.tcLaw, f.tc != "off"
	}
	if f.tcAck != "" {
		t.Control.Ack, t.Control.Enabled = f.tcAck, f.tc != "off"
	}
	if given("reward-filter") {
		t.RewardFilter = f.filter
	}
	if given("reward-threshold") {
		t.RewardThreshold = f.threshold
	}
	if f.dropFilter && !t.FiltersReward() {
		t.RewardFilter, t.RewardThreshold = false, 0
	}
	if given("duration") {
		t.Duration = f.duration
	}
	if given("warmup") {
		t.Warmup = f.warmup
	}
	if given("seed") || t.Seed == 0 {
		t.Seed = f.seed
	}
	return nil
}

// loadSends reads the arrivals from a file. If inFile is set, the path comes from the topology file and is relative to
// it.
func loadSends(t *netsim.Topology, inFile bool) error {
	path := t.Sends
	if inFile && t.File != "" && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(t.File), path)
	}
	file, err := os.Open(path)
	if err != nil {
		return &cli.Exit{Kind: olaf.Usage, Err: err}
	}
	defer file.Close() // only read
	return t.SetSends(path, file)
}

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	topologyFlags
	cli.KeepFlags
	keepAsked                 bool // --keep is given
	runs                      int
	swept                     sweepcmd.Flags
	rxTrace, rxImport         string
	pcap, schedule            string
	packets                   int // number of packets in a schedule
	force, yes, quiet, schema bool
	list                      bool
	tui                       bool
	view                      cli.ViewFlags
	expect                    cli.ExpectFlags
	watch                     cli.MetricsFlag
	monitor                   *monitor.Monitor // nil without --metrics
	format                    cli.Format
	explain                   bool
	job                       jobFlags
	sharing                   sharingFlags
	began                     time.Time
}

func New(env *cli.Env) *cobra.Command {
	f := new(simulateFlags)
	f.waits.set, f.clusterPresets = env.Systems, true
	f.job.waitFlags = &f.waits
	cmd := &cobra.Command{
		Use:   "simulate [TOPOLOGY.yaml]",
		Short: "Simulate workers, switches, links and servers in a network",
		Long: `Simulate a network: workers, switches with one queue per output port, links, parameter servers, ACKs that carry the
queues' status, and the workers' transmission control. The queues are the twin's; only the network around them is a model.
The same topology and seed give the same bytes. --list prints the built-in networks, -o yaml the topology instead of running
it. Presets such as isw-lab are closed-loop jobs that run until they end. See docs/guide/simulate.md.`,
		Example: `  olafctl simulate --list
  olafctl simulate --preset multihop --system olaf --tc on
  olafctl simulate topology.yaml --system fifo --duration 60s --seed 1 -o json
  olafctl simulate --preset multihop --sweep system=olaf,fifo --sweep clusters=10..80:x2 --duration 5s
  olafctl simulate --preset isw-lab --versus ps,ring --runs 5
  olafctl simulate --preset multihop -o yaml > topology.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, env, args) },
	}
	f.addTo(cmd, env)
	cli.MarkRare(cmd, rareNetworkFlags...)
	cmd.SetHelpFunc(cli.PrintHelp(env, func(flag string) bool {
		return cli.GroupOf(cmd.Flags().Lookup(flag)) != cli.JobFlags || f.closesLoop()
	}))
	return cmd
}

// rareNetworkFlags lists flags for networks and traces that only --help-all shows.
var rareNetworkFlags = []string{"queue", "tc-count", "tc-law", "tc-ack", "x1", "interval2", "jitter", "packets", "rx-import", "rx-trace"}

// closesLoop reports whether the command line selects workers that wait for answers. If so, the help lists the flags
// for jobs.
func (f *simulateFlags) closesLoop() bool {
	s, err := f.waits.set.Find(f.queue)
	return slices.Contains(ClusterNames(), f.preset) || f.waits.mode != "" || err == nil && !s.Open()
}

func (f *simulateFlags) addTo(cmd *cobra.Command, env *cli.Env) {
	f.topologyFlags.add(cmd)
	cli.InGroup(cmd, cli.JobFlags, func() {
		f.job.add(cmd)
		f.sharing.add(cmd)
	})
	cli.InGroup(cmd, cli.RunFlags, func() { f.addRuns(cmd) })
	f.swept.AddTo(cmd, env)
	cli.InGroup(cmd, cli.OutputFlags, func() { f.addOutput(cmd) })
	cli.InGroup(cmd, cli.DashboardFlags, func() {
		flags := cmd.Flags()
		flags.BoolVar(&f.tui, "tui", false, "show the dashboard for the first seed")
		flags.StringVar(&f.view.Speed, "speed", "", "with --tui: simulated time per second, such as 1ms or max")
		flags.BoolVar(&f.view.Paused, "paused", false, "with --tui: start paused")
	})
	f.view.AddLooks(cmd)
	f.KeepFlags.Add(cmd)
	f.watch.Add(cmd)
	cli.AddFormatFlag(cmd, &f.format, cli.Table, cli.JSON, cli.CSV, cli.JSONL, cli.YAML)
	cli.AddExplainFlag(cmd, &f.explain)
}

func (f *simulateFlags) addRuns(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.runs, "runs", 1, "number of seeds, starting at --seed")
	flags.BoolVar(&f.yes, "yes", false, "skip the check for long runs and large memory")
	flags.StringVar(&f.schedule, "schedule", "", "play a plan from 'olafctl schedule plan' packet by packet")
	flags.IntVar(&f.packets, "packets", 0,
		"with --schedule: packet limit; each stands for several frames (default 1000000)")
	f.expect.Add(cmd)
}

func (f *simulateFlags) addOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.rxTrace, "rx-trace", "", "write one CSV line per received update: "+trace.RxHeader)
	flags.StringVar(&f.rxImport, "rx-import", "", "measure another simulator's rx trace instead of simulating")
	flags.StringVar(&f.pcap, "pcap", "", "folder for one pcapng per server, or per host and switch of a job")
	cli.AddForce(flags, &f.force, "existing output files")
	flags.BoolVar(&f.list, "list", false, "list the built-in networks and exit")
	flags.BoolVar(&f.schema, "schema", false, "print the JSON schema of job files and exit")
	cli.AddQuiet(flags, &f.quiet)
}

// maxSimulated is the maximum number of runs of one command.
const maxSimulated = 100_000

func (f *simulateFlags) checkRuns() error {
	if f.runs < 1 || f.runs > maxSimulated {
		return cli.UsageError("%d runs; use 1 to %d", f.runs, maxSimulated)
	}
	return nil
}

func (f *simulateFlags) run(cmd *cobra.Command, env *cli.Env, args []string) error {
	f.began = env.Now()
	if f.list {
		return listTopologies(env, f.format)
	}
	if f.schema {
		return cli.PrintText(env, func() ([]byte, error) { return jobSchema(env.Systems) })
	}
	if f.schedule != "" {
		return f.runSchedule(cmd, env, args)
	}
	if cmd.Flags().Changed("packets") {
		return cli.UsageError("--packets belongs to --schedule")
	}
	if err := f.swept.SettleAddress(); err != nil {
		return err
	}
	args, err := f.readJob(cmd, args)
	if err != nil {
		return err
	}
	switch {
	case findJobPreset(f.preset) != nil && len(args) == 0:
		f.job.preset = findJobPreset(f.preset)
		return f.runJobs(cmd, env, f.job.preset, f.jobPlan)
	case f.preset == sharedPreset && len(args) == 0:
		return f.runJobs(cmd, env, sharedCluster(), f.sharedWork)
	}
	if err := refuseJobFlags(cmd, nil); err != nil {
		return err
	}
	return f.runNetwork(cmd, env, args)
}

// runNetwork simulates a network once per seed, or sweeps it.
func (f *simulateFlags) runNetwork(cmd *cobra.Command, env *cli.Env, args []string) error {
	if len(f.swept.Axes) == 0 {
		if err := f.swept.RefuseSweepOnly(cmd); err != nil {
			return err
		}
	} else if !f.isPhaseMap(cmd) {
		return f.sweepWith(cmd, env, SweepCommand(env), args...)
	}
	t, err := f.loadTopology(cmd, args)
	if err != nil {
		return err
	}
	if len(f.swept.Axes) > 0 && t.Waiting != nil { // its phases are not locked
		return f.sweepWith(cmd, env, SweepCommand(env), args...)
	}
	others, err := f.loadOthers(cmd, args, t.System())
	if err != nil {
		return err
	}
	if err := f.resolveExpectations(append([]*netsim.Topology{t}, others...)); err != nil {
		return err
	}
	if f.format == cli.YAML {
		return cli.PrintText(env, t.Text)
	}
	t.Expect = nil // expectations do not affect the run
	if err := f.checkFlags(cmd, env); err != nil {
		return err
	}
	report, err := newSimulation(t, f.runs)
	if err != nil {
		return err
	}
	if err := report.addOthers(others); err != nil {
		return err
	}
	f.keepAsked = cmd.Flags().Changed("keep")
	var unwatch func()
	if f.monitor, unwatch, err = f.watch.StartMonitor(cmd.Context(), env); err != nil {
		return err
	}
	defer unwatch()
	started := env.Now()
	kept, err := f.carryOut(cmd.Context(), env, report, started)
	report.Provenance = cli.NewProvenance(env, started)
	return f.concludeRuns(env, report, kept, err)
}

// loadOthers loads the same network once for every system in --versus. The networks differ only in their queues or
// workers.
func (f *simulateFlags) loadOthers(cmd *cobra.Command, args []string, first string) (networks []*netsim.Topology,
	err error) {
	if f.job.versus == "" {
		return nil, nil
	}
	if why := bench.CheckVersus(first, f.job.versus); why != "" {
		return nil, cli.UsageError("--versus %q: %s; leave it out", f.job.versus, why)
	}
	if len(f.swept.Axes) > 0 || f.rxImport != "" {
		return nil, cli.UsageError("--versus compares runs; leave out --sweep and --rx-import")
	}
	asked := f.topologyFlags
	f.dropFilter = true
	defer func() { f.topologyFlags = asked }()
	for name := range strings.SplitSeq(f.job.versus, ",") {
		if err := cmd.Flags().Set("system", strings.TrimSpace(name)); err != nil {
			return nil, err
		}
		t, err := f.loadTopology(cmd, args)
		if err != nil {
			return nil, err
		}
		t.Expect = nil
		networks = append(networks, t)
	}
	return networks, nil
}

// checkFlags rejects invalid combinations of runs, files and dashboards.
func (f *simulateFlags) checkFlags(cmd *cobra.Command, env *cli.Env) error {
	if err := f.checkRuns(); err != nil {
		return err
	}
	single := len(f.swept.Axes) == 0 && f.rxImport == ""
	if files := f.rxTrace != "" || f.pcap != ""; files && (f.runs > 1 || !single) {
		return cli.UsageError("--rx-trace and --pcap belong to a single run")
	}
	if !f.tui {
		if err := cli.RefuseViewFlags(cmd); err != nil {
			return err
		}
	}
	if err := watch.OneScreen(env, f.tui, f.format); err != nil {
		return err
	}
	if f.tui && !single {
		return cli.UsageError("--tui shows a run; leave out --sweep and --rx-import")
	}
	return f.CheckStore(env)
}

// concludeRuns stores and prints the results of a simulation that ended with err, and checks them against the
// expectations.
func (f *simulateFlags) concludeRuns(env *cli.Env, report *simulation, kept *cli.Keeping, err error) error {
	if errors.Is(err, context.Canceled) {
		report.Partial = true
		f.reportUnwritten(env)
		if err = cli.MarkInterrupted(err); report.isEmpty() {
			err = &cli.Exit{Kind: olaf.Interrupted,
				Err: errors.New("interrupted before the first run was complete; there is nothing to show")}
		}
	}
	if !report.isWhole() {
		err = errors.Join(err, kept.Abort())
	} else {
		err = errors.Join(err, kept.Finish(env, report, report.Provenance, report.Partial, f.quiet))
	}
	if !report.isEmpty() {
		err = errors.Join(err, cli.PrintReport(env, report, f.format, f.explain))
	}
	if err == nil {
		err = report.Err()
	}
	if err != nil || len(f.expect.Rules) == 0 {
		return err
	}
	return f.expect.JudgeRows(env, report.networkRows())
}

// networkMetrics returns the metrics that a simulation of t measures.
func networkMetrics(t *netsim.Topology) *metric.Declaration {
	return metric.Union(system.NetworkDeclaration(), &metric.Declaration{Metrics: cells.MetricsOf(t)})
}

// networkRow returns the statistics of all networkMetrics over the runs of network i. They include the statistics in
// the stored row and the metrics that only the simulator can measure.
func networkRow(s *bench.Simulated, i int) results.Row {
	t, row := s.Simulation.Networks[i].Topology, results.Summarise(system.NetworkDeclaration(), s.Runs[i])
	for _, m := range cells.MetricsOf(t) {
		if row.Stats.Of(m.Name).Known() {
			continue
		}
		values := make([]results.Float, len(s.Results[i]))
		for k, r := range s.Results[i] {
			values[k] = cells.ValuesOf(r, []string{m.Name})[0]
		}
		row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: results.Describe(values, "no run has it")})
	}
	return row
}

// isPhaseMap reports whether the sweep is a phase map, which varies one parameter of the workers and uses no flags that
// are reserved for sweeps.
func (f *simulateFlags) isPhaseMap(cmd *cobra.Command) bool {
	name, _, _ := strings.Cut(f.swept.Axes[0], "=")
	one := len(f.swept.Axes) == 1 && slices.Contains(netsim.SweepableNames(), name)
	return one && f.swept.RefuseSweepOnly(cmd) == nil
}

// sweepWith runs a sweep of a command, using a file if there is one.
func (f *simulateFlags) sweepWith(cmd *cobra.Command, env *cli.Env, of *experimentsweep.Command, args ...string) error {
	if f.format == cli.YAML || f.format == cli.JSONL {
		return cli.UsageError("-o %s does not go with --sweep; use table, json or csv", f.format)
	}
	file, err := f.swept.SweepFile(cmd, of, "metrics")
	if err != nil {
		return err
	}
	if file.Runs = f.runs; len(args) > 0 {
		file.File = args[0]
	}
	s := &f.swept.GridFlags
	s.Store, s.Watch, s.Format, s.Quiet, s.Explain, s.Yes, s.Tui, s.View = f.KeepFlags.Store, f.watch, f.format,
		f.quiet, f.explain, f.yes, f.tui, f.view
	return f.swept.RunGrid(cmd, env, file)
}

// resolveExpectations resolves the expectations for the networks. Those in the file apply to the first network. Sweeps
// and imported traces cannot have expectations.
func (f *simulateFlags) resolveExpectations(all []*netsim.Topology) error {
	t := all[0]
	var at []expect.Configuration
	var declared []*metric.Declaration
	for _, one := range all {
		at, declared = append(at, expect.Configuration{System: one.System()}), append(declared, networkMetrics(one))
	}
	if err := f.expect.ResolveRules(t.Expect, metric.Union(declared...), at); err != nil {
		return t.LocateExpectation(err)
	}
	if len(f.expect.Rules) > 0 && (len(f.swept.Axes) > 0 || f.rxImport != "") {
		return cli.UsageError("expectations apply only to runs; leave out --sweep and --rx-import, or the expectation")
	}
	t.Expect = append(t.Expect, f.expect.Texts...)
	return nil
}

// reportUnwritten lists the requested files that were not written because the run was interrupted.
func (f *simulateFlags) reportUnwritten(env *cli.Env) {
	for _, path := range []string{f.rxTrace, f.pcap} {
		if path != "" {
			fmt.Fprintf(env.Stderr, "not written: %s\n", path)
		}
	}
}

// carryOut imports a trace, sweeps a parameter or simulates. It returns the handle with which the result is stored.
func (f *simulateFlags) carryOut(ctx context.Context, env *cli.Env, report *simulation,
	started time.Time) (kept *cli.Keeping, err error) {
	switch {
	case f.rxImport != "":
		return f.KeepDocument(env, cli.SimulateName, started), f.importTrace(report)
	case len(f.swept.Axes) > 0:
		return f.KeepDocument(env, cli.SimulateName, started), f.sweepPhases(ctx, env, report)
	}
	work := &bench.Simulation{Experiment: cli.SimulateName, Seeds: report.Seeds, Compared: true}
	for _, t := range append([]*netsim.Topology{report.topology}, report.others...) {
		work.Networks = append(work.Networks, bench.Network{Name: t.Title(), Topology: t})
	}
	if err := f.checkPatience(report.topology, f.runs*len(work.Networks)); err != nil {
		return nil, err
	}
	out, err := f.openFiles(report.topology)
	if err != nil {
		return nil, err
	}
	defer out.abandon()
	kept = f.KeepEvents(env, started)
	if kept != nil && !f.keepsFrames(env, work) {
		kept.Sink.StoreNumbersOnly()
	}
	if err := f.simulateRuns(ctx, env, report, work, out,
		bench.NewStream(slices.Concat(cli.EventSinks(env, f.format), f.monitor.Sinks(), kept.Sinks())...)); err != nil {
		return kept, err
	}
	return kept, out.commitFiles()
}

// manyBytes is the total size in bytes above which frames are stored only with --keep.
const manyBytes = 250e6

// keepsFrames reports whether frames are stored, and prints their total size if it is large.
func (f *simulateFlags) keepsFrames(env *cli.Env, work *bench.Simulation) bool {
	size := work.FrameBytes()
	// frames of imported arrivals cannot be repeated
	if size < manyBytes || work.Networks[0].Topology.SendsDigest() != "" {
		return true
	}
	if f.keepAsked {
		fmt.Fprintf(env.Stderr, "the first seed's frames take up to %.0f MB\n", size/1e6)
		return true
	}
	fmt.Fprintf(env.Stderr, "the first seed's frames would take up to %.0f MB: without --keep only numbers are "+
		"kept, and 'olafctl runs verify' repeats the run\n", size/1e6)
	return false
}

// checkPatience rejects a simulation that would take long, unless --yes is given.
func (f *simulateFlags) checkPatience(t *netsim.Topology, runs int) error {
	if f.yes {
		return nil
	}
	return t.CheckPatience(runs)
}

func (f *simulateFlags) importTrace(report *simulation) error {
	file, err := os.Open(f.rxImport)
	if err != nil {
		return &cli.Exit{Kind: olaf.Usage, Err: err}
	}
	defer file.Close() // only read
	r, err := netsim.ImportRx(report.topology, f.rxImport, file)
	if err == nil {
		report.Runs = []*netsim.Result{r}
	}
	return err
}

func (f *simulateFlags) sweepPhases(ctx context.Context, env *cli.Env, report *simulation) error {
	sweep, err := cells.ParseNetworkSweep(f.swept.Axes[0])
	if err != nil {
		return err
	}
	total := len(sweep.Values) * f.runs
	if err := f.checkPatience(report.topology, total); err != nil {
		return err
	}
	var done atomic.Int64
	look := func() (int, int) { return int(done.Load()), total }
	f.monitor.AddWork("sweep", look)
	bar := cli.StartProgress(env, f.quiet, look)
	points, err := cells.RunNetworkSweep(ctx, report.topology, sweep, report.Seeds, func() { done.Add(1) })
	bar.Stop()
	if len(points) > 0 {
		report.Sweep = &sweepDocument{Parameter: sweep.Parameter, Points: points}
	}
	return err
}

// simulateRuns simulates all runs and shows a dashboard or a progress bar.
func (f *simulateFlags) simulateRuns(ctx context.Context, env *cli.Env, report *simulation, work *bench.Simulation,
	out *deliveries, stream *bench.Stream) (err error) {
	o := bench.SimulateOptions{Stream: stream, Metrics: len(f.expect.Rules)+len(report.others) > 0}
	if !out.isEmpty() {
		o.First.Observer = out
	}
	if out.own {
		o.First.Record = out.recordPacket
	}
	if f.tui && env.Terminal {
		w := watchedRuns{env: env, view: f.view, simulation: work, options: o, text: report.reportOf}
		simulated, err := w.showRuns(ctx)
		report.addRuns(simulated)
		return err
	}
	look := cli.ProgressOf(stream)
	if f.runs == 1 {
		const parts = 1000
		var share atomic.Int64
		o.First.Progress = func(s float64) { share.Store(int64(s * parts)) }
		look = func() (int, int) { return int(share.Load()), parts }
	}
	f.monitor.AddWork(cli.SimulateName, look)
	bar := cli.StartProgress(env, f.quiet, look)
	started := env.Now()
	simulated, err := bench.SimulateAll(ctx, work, o)
	bar.Stop()
	report.addRuns(simulated)
	if err == nil && len(report.Runs) == 1 && !f.quiet {
		r := report.Runs[0]
		fmt.Fprintf(env.Stderr, "%v simulated, %d events, %.2f s\n", r.Time, r.Events, env.Now().Sub(started).Seconds())
	}
	return err
}

// deliveries writes the updates that the servers receive to the requested files.
type deliveries struct {
	trace     *trace.RxWriter
	traceFile *renameio.PendingFile
	captures  []*capture.File // captures by server
	own       bool            // in a system's own frames, which the network records
	folder    string          // folder of the captures, if it was created for them
	addresses pktgen.Addressing
	err       error
}

func (f *simulateFlags) openFiles(t *netsim.Topology) (*deliveries, error) {
	d := &deliveries{addresses: pktgen.DefaultAddressing()}
	if err := cli.RefuseExisting(f.rxTrace, f.force); err != nil {
		return nil, err
	}
	if f.rxTrace != "" {
		file, err := renameio.NewPendingFile(f.rxTrace, renameio.WithPermissions(0o644))
		if err != nil {
			return nil, fmt.Errorf("create %s: %w", f.rxTrace, err)
		}
		d.traceFile, d.trace = file, trace.NewRxWriter(file)
	}
	if f.pcap == "" {
		return d, nil
	}
	if _, err := os.Stat(f.pcap); errors.Is(err, fs.ErrNotExist) {
		d.folder = f.pcap
	}
	if err := os.MkdirAll(f.pcap, 0o755); err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	from, err := t.CaptureInterface()
	if err != nil {
		return nil, errors.Join(err, d.abandon())
	}
	d.own = from != nil
	for i := range t.Servers {
		path := filepath.Join(f.pcap, t.Servers[i].Name+".pcapng")
		var file *capture.File
		if d.own {
			file, err = capture.CreateFrom(path, f.force, *from)
		} else {
			file, err = capture.Create(path, f.force, 0)
		}
		if err != nil {
			return nil, errors.Join(err, d.abandon())
		}
		d.captures = append(d.captures, file)
	}
	return d, nil
}

func (d *deliveries) isEmpty() bool { return d.trace == nil && len(d.captures) == 0 }

// Deliver implements netsim.Observer. The first error is returned by commitFiles.
func (d *deliveries) Deliver(server, worker int, o *olaf.Observation) {
	if d.trace != nil {
		d.trace.Deliver(server, worker, o)
	}
	if len(d.captures) > 0 && !d.own && d.err == nil {
		address := d.addresses.WorkerAddresses(worker)
		d.err = d.captures[server].WriteUpdate(o.At, &address, &o.Update, nil)
	}
}

// recordPacket writes a packet that the only server received, in the system's own frame format.
func (d *deliveries) recordPacket(p *capture.Packet) error { return d.captures[0].WritePacket(p) }

func (d *deliveries) commitFiles() error {
	if d.err != nil {
		return d.err
	}
	if d.trace != nil {
		if err := d.trace.Flush(); err != nil {
			return err
		}
		if err := d.traceFile.CloseAtomicallyReplace(); err != nil {
			return err
		}
	}
	for _, c := range d.captures {
		if err := c.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes the files that were not committed.
func (d *deliveries) abandon() error {
	var err error
	if d.traceFile != nil {
		err = d.traceFile.Cleanup()
	}
	for _, c := range d.captures {
		err = errors.Join(err, c.Abandon())
	}
	if d.folder != "" {
		_ = os.Remove(d.folder) // fails if the folder contains captures, which are kept
	}
	return err
}
