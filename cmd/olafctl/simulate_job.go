package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/expect"
	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/paper/iswitch"
	"github.com/olafctl/olaf/experiments/paper/xagg"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// jobLimit is the virtual time that a job is given at least; an update takes some ten milliseconds.
const jobLimit = 60 * olaf.Second

// jobFlags choose a job on such a cluster.
type jobFlags struct {
	*waitFlags       // those of the network
	model, versus    string
	workers, updates int
	spread           float64
	wireOnly         bool
	preset           *jobPreset
}

func (f *jobFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "", "whose gradients: "+strings.Join(modelNames(), "|")+"; of isw-lab dqn, of xagg-testbed resnet50")
	flags.IntVar(&f.workers, "workers", iswitch.LabWorkers, "workers; above 4 in racks of 3 below a root")
	flags.IntVar(&f.updates, "updates", 10, "updates of the weights")
	flags.Float64Var(&f.spread, "spread", 0, "computing times vary by this share of themselves")
	flags.BoolVar(&f.wireOnly, "wire-only", false, "hosts cost no time, only links and switches do")
	flags.StringVar(&f.versus, "versus", "", "the same job of these systems beside it, such as ps,ring")
	cli.Complete(cmd, "model", modelNames)
	cli.Complete(cmd, "versus", system.All().Waiting().Names)
}

// addSystemOptions adds what users may choose about a system wherever its hosts run.
func addSystemOptions(cmd *cobra.Command, o *system.Options) {
	flags := cmd.Flags()
	cli.AddCount(flags, &o.H, system.OptionH, "iswitch: vectors that complete a sum; the number of children if not given")
	flags.IntVar(&o.Bound, system.OptionBound, system.DefaultBound, "iswitch async: staleness S beyond which a gradient is discarded")
	flags.StringVar(&o.Profile, system.OptionProfile, "", "iswitch sync: isw-1, the paper's frames, or isw-x, ours with rounds and a bitmap; atp: p4ml, the released code, or paper, for racks")
	flags.StringVar(&o.Recovery, system.OptionRecovery, "", "what workers do about loss: iswitch sync help|fbcast|none, atp resend|none")
	flags.Var(&o.Timeout, system.OptionTimeout, "silence after which workers ask or send again: iswitch sync, switchml, p4inc 1ms, atp 200us")
	flags.Var(&o.Packet, system.OptionPacket, "switchml: payload of a packet: 256B|1024B")
	cli.AddCount(flags, &o.Window, system.OptionWindow, "packets of a worker on their way; if not given 100 of atp, its segment of p4inc")
	flags.BoolVar(&o.Congestion, system.OptionCongestion, false, "atp: windows follow marks of congestion")
	cli.Complete(cmd, system.OptionProfile, func() []string { return []string{"isw-1", "isw-x", "p4ml", "paper"} })
	cli.Complete(cmd, system.OptionRecovery, func() []string {
		return []string{string(endpoint.RecoverHelp), string(endpoint.RecoverForce), system.RecoverResend, string(endpoint.RecoverNone)}
	})
}

func modelNames() []string {
	var names []string
	for _, m := range iswitch.Models() {
		names = append(names, m.Name)
	}
	for _, m := range xagg.Models() {
		names = append(names, m.Name)
	}
	return names
}

// jobOnly are the flags that mean nothing to other networks, and networkOnly those that mean nothing to a job.
var jobOnly = []string{"model", "workers", "updates", "spread", "wire-only", "versus"}

var jobTakes = slices.Concat([]string{"preset", "system", "queue", "runs", "seed", "quiet", "output", "yes", "keep", "store", "pcap", "force", "expect", "sweep", "tui"}, sweepOnly, jobOnly, waitNames)

// refuseJobFlags refuses what belongs to another kind of network than the one that was asked for.
func refuseJobFlags(cmd *cobra.Command, preset *jobPreset) error {
	var wrong error
	cmd.Flags().Visit(func(given *pflag.Flag) {
		switch {
		case !given.Changed:
		case preset != nil && (!slices.Contains(jobTakes, given.Name) || slices.Contains(preset.refuse, given.Name)):
			wrong = cli.UsageError("--%s means nothing to --preset %s", given.Name, preset.name)
		case preset == nil && slices.Contains(sharingOnly, given.Name):
			wrong = cli.UsageError("--%s belongs to --preset %s", given.Name, sharedPreset)
		case preset == nil && slices.Contains(jobOnly, given.Name):
			wrong = cli.UsageError("--%s belongs to --preset %s", given.Name, strings.Join(jobPresetNames(), "|"))
		}
	})
	return wrong
}

// specs are the jobs that were asked for, the first of them the one that the others stand beside.
func (f *jobFlags) specs(cmd *cobra.Command, name string) ([]*job.Spec, error) {
	if name == "" {
		name = f.preset.system
	}
	if f.workers < 1 || f.updates < 1 {
		return nil, cli.UsageError("--workers and --updates must be at least 1")
	}
	if _, err := f.single(); err != nil {
		return nil, err
	}
	if f.model == "" {
		f.model = f.preset.model
	}
	if err := f.preset.prepare(cmd, f); err != nil {
		return nil, err
	}
	given := givenOptions(cmd)
	names := []string{name}
	if f.versus != "" {
		names = append(names, strings.Split(f.versus, ",")...)
	}
	if slices.Contains(names[1:], name) {
		return nil, cli.UsageError("--versus %s: %s cannot stand beside itself", f.versus, name)
	}
	var specs []*job.Spec
	for i, n := range names {
		s, err := f.spec(n, given, i == 0)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// givenOptions are the options of a system that were asked for.
func givenOptions(cmd *cobra.Command) []string {
	return slices.DeleteFunc(slices.Clone(waitOptions), func(o string) bool { return !cmd.Flags().Changed(o) })
}

// spec is the job of one system; options that mean nothing to it are refused only where it leads.
func (f *jobFlags) spec(name string, given []string, leads bool) (*job.Spec, error) {
	s, err := system.All().Waiting().Find(name)
	if err != nil {
		return nil, err
	}
	mode, err := s.Mode(f.mode)
	if err != nil {
		return nil, err
	}
	if leads {
		if err := mode.Refuse(s, given); err != nil {
			return nil, err
		}
	}
	spec := &job.Spec{System: s, Mode: mode, Options: f.options}
	if err := f.preset.build(f, spec); err != nil {
		return nil, err
	}
	spec.Network.Lose(f.losses.first())
	spec.Job.Updates, spec.Job.Jitter = uint32(f.updates), f.spread
	spec.Job.Limit = max(jobLimit, olaf.Duration(f.updates)*olaf.Second)
	return spec, nil
}

// runJob simulates a job for every seed and prints what it did.
func (f *simulateFlags) runJob(cmd *cobra.Command, env *cli.Env) error {
	f.job.preset = findJobPreset(f.preset)
	if err := refuseJobFlags(cmd, f.job.preset); err != nil {
		return err
	}
	if f.runs < 1 || f.runs > 100_000 {
		return cli.UsageError("--runs is %d; it must be 1 to 100000", f.runs)
	}
	if f.format == cli.YAML {
		return cli.UsageError("--preset %s prints %s, %s, %s or %s", f.preset, cli.Table, cli.JSON, cli.JSONL, cli.CSV)
	}
	if len(f.swept.axes) > 0 {
		return f.sweepWith(cmd, env, jobSweep())
	}
	if err := f.swept.refuse(cmd); err != nil {
		return err
	}
	if f.tui {
		return cli.UsageError("--tui shows networks and sweeps; of --preset %s leave it out, or add --sweep", f.preset)
	}
	plan, err := f.jobPlan(cmd)
	if err != nil {
		return err
	}
	if err := f.Check(env); err != nil {
		return err
	}
	captures, err := f.captureJob(plan.Jobs)
	if err != nil {
		return err
	}
	defer captures.Abandon() // does nothing after a commit
	started := env.Now()
	kept := f.Documents(env, simulateName, started)
	report, err := playJobs(cmd.Context(), env, plan, f.quiet)
	if err != nil {
		return errors.Join(err, kept.Abort())
	}
	if f.pcap != "" {
		if err := captures.Commit(); err != nil {
			return errors.Join(err, kept.Abort())
		}
		fmt.Fprintf(env.Stderr, "captures: %s (%s)\n", f.pcap, olaf.Plural(int(captures.Frames()), "frame"))
	}
	report.Provenance = cli.MadeBy(env, started)
	err = kept.Finish(env, report, report.Provenance, false, f.quiet)
	if err = errors.Join(err, cli.PrintReport(env, report, f.format, f.explain)); err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	return f.expect.judge(env, report.Rows())
}

// jobPlan is everything that was asked for.
func (f *simulateFlags) jobPlan(cmd *cobra.Command) (*job.Plan, error) {
	specs, err := f.job.specs(cmd, f.queue)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(f.job.config())
	if err != nil {
		return nil, err
	}
	plan := &job.Plan{Title: f.job.title(f.runs), Basis: f.job.preset.basis(&f.job), Config: config, Jobs: specs}
	for i := range f.runs {
		plan.Seeds = append(plan.Seeds, f.seed+uint64(i))
	}
	var at []expect.Configuration
	for _, s := range specs {
		if states := f.job.preset.states; states != nil && states(&f.job, s.System) != "" {
			plan.Statements = append(plan.Statements, states(&f.job, s.System))
		}
		at = append(at, expect.Configuration{System: s.System.Name})
	}
	return plan, f.expect.resolve(nil, job.Declared(), at)
}

// playJobs carries a plan out beside a progress bar.
func playJobs(ctx context.Context, env *cli.Env, plan *job.Plan, quiet bool) (*job.Report, error) {
	var done atomic.Int64
	bar := cli.StartProgress(env, quiet, func() (int, int) { return int(done.Load()), plan.Runs() })
	report, err := plan.Run(ctx, func() { done.Add(1) })
	bar.Stop()
	if errors.Is(err, context.Canceled) {
		err = cli.Interrupted(err)
	}
	return report, err
}

// captureJob prepares the files of --pcap; without it there are none.
func (f *simulateFlags) captureJob(specs []*job.Spec) (*job.Captures, error) {
	switch {
	case f.pcap == "":
		return &job.Captures{}, nil
	case f.runs > 1 || len(specs) > 1:
		return nil, cli.UsageError("--pcap belongs to a single run of one system")
	}
	captures, err := job.Capture(specs[0], f.pcap, f.force)
	if errors.Is(err, job.ErrFrames) {
		err = fmt.Errorf("%w; there are frames of %s", err, strings.Join(system.All().Framed().Names(), ", "))
	}
	return captures, err
}

func (f *jobFlags) title(runs int) string {
	return fmt.Sprintf("%s: %s, %s, %s", f.preset.name, f.preset.title(f), olaf.Plural(f.updates, "update"), olaf.Plural(runs, "seed"))
}

// jobConfig is what was asked for, as documents have it; systems say the rest of themselves.
type jobConfig struct {
	Preset   string   `json:"preset"`
	Model    string   `json:"model,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	Workers  int      `json:"workers,omitempty"`
	Updates  int      `json:"updates"`
	Loss     float64  `json:"loss"`
	Spread   float64  `json:"spread"`
	WireOnly bool     `json:"wire_only"`
	Versus   []string `json:"versus,omitempty"`
}

func (f *jobFlags) config() jobConfig {
	c := jobConfig{Preset: f.preset.name, Model: f.model, Mode: f.mode, Workers: f.workers, Updates: f.updates, Loss: f.losses.first(), Spread: f.spread, WireOnly: f.wireOnly}
	if f.versus != "" {
		c.Versus = strings.Split(f.versus, ",")
	}
	return c
}
