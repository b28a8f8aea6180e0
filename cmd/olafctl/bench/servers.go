package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	testbedcmd "github.com/olafctl/olaf/cmd/olafctl/testbed"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/saturate"
)

// modelFlags are the flags for a bench of a system that sums whole models on servers.
type modelFlags struct {
	children, lanes, fragments, vectors int
}

// modelOnly are the names of these flags; modelTakes are all flags that such a bench accepts.
var (
	modelOnly  = []string{"children", "lanes", "fragments", "vectors"}
	modelTakes = append([]string{"system", "queue", "device", "runs", "seed", "output", "keep", "store", "quiet",
		"explain", "line-rate", "rate", "pcap", "force"}, modelOnly...)
)

// Default rates for a worker's line and for an aggregator's line to all its children: as much as two processors sustain
// on time.
const (
	modelLine = 200 * olaf.Mbps
	modelRate = 400 * olaf.Mbps
)

// defaultModelRuns is the default number of runs. It is enough for a confidence interval, and each run takes seconds.
const defaultModelRuns = 5

func (f *modelFlags) add(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.ModelFlags, func() {
		flags := cmd.Flags()
		flags.IntVar(&f.children, "children", 4, "workers per server")
		flags.IntVar(&f.lanes, "lanes", lab.DefaultLanes, "values per packet")
		flags.IntVar(&f.fragments, "fragments", lab.DefaultFragments, "packets per model")
		flags.IntVar(&f.vectors, "vectors", 20, "models per worker and run")
	})
}

// refuseFlags rejects these flags in a bench of queues.
func (f *modelFlags) refuseFlags(cmd *cobra.Command, set system.Set) error {
	for _, name := range modelOnly {
		if cmd.Flags().Changed(name) {
			return cli.UsageError("--%s is for systems that sum models on servers, such as --system %s", name,
				strings.Join(serverSystems(set), ", "))
		}
	}
	return nil
}

// serverSystems returns the systems whose programs run on servers.
func serverSystems(set system.Set) []string {
	return set.Where(func(s *system.System) bool { return s.OnServers }).Names()
}

// planTestbed returns the testbed to use: the testbed from a file, with its job changed by the flags, or one server
// with the given number of workers.
func (f *modelFlags) planTestbed(cmd *cobra.Command, env *cli.Env, b *Flags, name string) (*lab.Plan, error) {
	given := cmd.Flags().Changed
	for _, flag := range []struct {
		name     string
		is, most int
	}{{"children", f.children, lab.MaxCables / 2}, {"lanes", f.lanes, lab.MaxLanes},
		{"fragments", f.fragments, lab.MaxValues / max(f.lanes, 1)}} {
		if flag.is < 1 || flag.is > flag.most {
			return nil, cli.UsageError("--%s is %d; use 1 to %d", flag.name, flag.is, flag.most)
		}
	}
	if device, _, err := env.Devices.Lookup(b.Device); err != nil {
		return nil, err
	} else if !device.Can(testbed.AddsModels) {
		return f.userTestbed()
	}
	if !isLab(name) {
		return f.starTestbed(name)
	}
	file, _, err := testbedcmd.ReadLab(env, name)
	if err != nil {
		return nil, err
	}
	if given("lanes") {
		file.Job.Lanes = f.lanes
	}
	if given("fragments") {
		file.Job.Fragments = f.fragments
	}
	p, err := file.Resolve()
	if err != nil {
		return nil, err
	}
	if p.Switch != nil {
		return nil, cli.UsageError("%s has a queue and no aggregator; use 'olafctl bench -d xdp:%s' without --system",
			name, name)
	}
	if err := requireLocal(name, p); err != nil {
		return nil, err
	}
	if most := p.Children(); given("children") && most != f.children {
		return nil, cli.UsageError("--children %d: servers in %s have at most %d; change the file, or leave the "+
			"flag out", f.children, name, most)
	}
	return p, testbedcmd.CheckReserved(env, p)
}

// userTestbed returns a testbed with one server, whose program runs in this process, and its workers.
func (f *modelFlags) userTestbed() (*lab.Plan, error) {
	p, err := f.starTestbed(lab.Generic)
	if err != nil {
		return nil, err
	}
	for i := range p.Adders {
		p.Adders[i].Mode = lab.User
	}
	return p, nil
}

// starTestbed returns a testbed with workers around one server. mode is the XDP mode, or "" for the best one available.
func (f *modelFlags) starTestbed(mode string) (*lab.Plan, error) {
	in := ""
	switch {
	case slices.Contains([]string{lab.Native, lab.Generic}, mode):
		in = ", mode: " + mode
	case mode != "":
		return nil, cli.UsageError("--device xdp:%s: write xdp:, xdp:%s, or xdp:FILE.yaml for a testbed file", mode,
			lab.Generic)
	}
	text := fmt.Sprintf("name: bench\ntree: {workers: %d%s}\njob: {lanes: %d, fragments: %d}\n", f.children, in,
		f.lanes, f.fragments)
	file, err := lab.Parse("bench", []byte(text))
	if err != nil {
		return nil, err
	}
	return file.Resolve()
}

// runModels benchmarks a system that sums models on servers.
func (f *modelFlags) runModels(cmd *cobra.Command, env *cli.Env, b *Flags, of *system.System) error {
	if err := f.checkFlags(cmd, env, b, of); err != nil {
		return err
	}
	if !cmd.Flags().Changed("runs") {
		b.Spec.Runs = defaultModelRuns
	}
	_, name, err := env.Devices.Lookup(b.Device)
	if err != nil {
		return err
	}
	p, err := f.planTestbed(cmd, env, b, name)
	if err != nil {
		return err
	}
	report, err := f.newReport(cmd, b, of, p)
	if err != nil {
		return err
	}
	if err := b.CheckStore(env); err != nil {
		return err
	}
	if b.pcap != "" {
		if err := errors.Join(cli.CheckExtension("--pcap", b.pcap, ".pcapng"),
			cli.RefuseExisting(b.pcap, b.to.Force)); err != nil {
			return err
		}
		if b.recording, err = bench.RecordEnds(b.pcap, b.to.Force, saturate.EndNames(p)...); err != nil {
			return err
		}
		defer b.recording.Abandon() // does nothing after the commit
	}
	return f.carryOut(cmd.Context(), env, b, report)
}

// newReport returns a report without runs and sets the rates of the plan's aggregators.
func (f *modelFlags) newReport(cmd *cobra.Command, b *Flags, of *system.System, p *lab.Plan) (*saturate.Report, error) {
	report := &saturate.Report{System: of.Name, Plan: p, Requested: b.Spec.Runs,
		Config: saturate.Config{Vectors: f.vectors, Line: modelLine, Seed: b.Spec.Seed}}
	if cmd.Flags().Changed("line-rate") {
		report.Config.Line = b.Spec.Workload.LineRate
	}
	for i := range p.Adders {
		switch a := &p.Adders[i]; {
		case cmd.Flags().Changed("rate"):
			a.Rate = b.Spec.Workload.MeanRate
		case a.Rate == 0:
			a.Rate = modelRate
		}
	}
	if err := report.Config.Check(); err != nil {
		return nil, err
	}
	if b.Spec.Runs < 1 || b.Spec.Runs > saturate.MaxRuns {
		return nil, cli.UsageError("--runs is %d; use 1 to %d", b.Spec.Runs, saturate.MaxRuns)
	}
	return report, nil
}

// checkFlags rejects flags, devices and formats that do not apply to a system that runs on servers.
func (f *modelFlags) checkFlags(cmd *cobra.Command, env *cli.Env, b *Flags, of *system.System) error {
	var wrong error
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if wrong == nil && !slices.Contains(modelTakes, given.Name) {
			wrong = cli.UsageError("--%s does not apply to --system %s, which sums whole models: it takes --%s, "+
				"--line-rate, --rate, --pcap", given.Name, of.Name, strings.Join(modelOnly, ", --"))
		}
	})
	if wrong != nil {
		return wrong
	}
	if err := env.Devices.Check(b.Device, testbed.BenchesModels); err != nil {
		return fmt.Errorf("--system %s: %w; 'olafctl simulate --preset xagg-testbed' runs it without", of.Name, err)
	}
	if b.format == cli.JSONL || b.format == cli.YAML {
		return cli.UsageError("--system %s prints %s, %s or %s", of.Name, cli.Table, cli.JSON, cli.CSV)
	}
	return nil
}

// endsFile writes captured frames to the --pcap file.
type endsFile struct{ file *bench.Recording }

func (e endsFile) Frame(p *capture.Packet) error { return e.file.Event(bench.Framed{Packet: *p}) }

func (e endsFile) Lost(frames int64) error { return e.file.Event(bench.Captured{Lost: frames}) }

// carryOut runs the feed, then stores and prints its report.
func (f *modelFlags) carryOut(ctx context.Context, env *cli.Env, b *Flags, report *saturate.Report) error {
	started := env.Now()
	kept := b.KeepDocument(env, "bench", started)
	var done atomic.Int64
	bar := cli.StartProgress(env, b.quiet, func() (int, int) { return int(done.Load()), report.Requested * f.vectors })
	var record saturate.Recorder
	if b.recording != nil {
		record = endsFile{b.recording}
	}
	err := feedAll(ctx, report, record, func() { done.Add(1) })
	bar.Stop()
	if len(report.Runs) == 0 {
		return errors.Join(cli.MarkNothingToShow(err), kept.Abort())
	}
	by := cli.NewProvenance(env, started)
	by.Device = b.Device
	found := report.Result(by)
	// The first run and its capture are complete even if a later run failed.
	err = errors.Join(cli.MarkInterrupted(err), kept.Finish(env, found, by, found.Partial, b.quiet),
		b.commitCapture(env, "run 1"))
	if err = errors.Join(err, cli.PrintReport(env, found, b.format, b.explain)); err != nil {
		return err
	}
	return found.Err()
}
