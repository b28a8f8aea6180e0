package simulate

import (
	"cmp"
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
	"github.com/olafctl/olaf/cmd/olafctl/expect"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/paper/iswitch"
	"github.com/olafctl/olaf/experiments/paper/xagg"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/tui/loops"
)

// jobLimit is the minimum time limit for a job, in virtual time. An update takes about ten milliseconds.
const jobLimit = 60 * olaf.Second

// longestJob is the maximum time limit for a job in seconds of virtual time. The limit in picoseconds must fit into an
// integer.
const longestJob = 8_000_000

// jobFlags are the flags for a job on a preset's cluster.
type jobFlags struct {
	*waitFlags       // also used by networks
	model, versus    string
	workers, updates int
	spread           float64
	wireOnly         bool
	preset           *jobPreset
	read             *job.File // nil without a file
}

func (f *jobFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "",
		"model: "+strings.Join(modelNames(), "|")+"; default dqn for isw-lab, resnet50 for xagg-testbed")
	flags.IntVar(&f.workers, "workers", iswitch.LabWorkers, "workers; more than 4 are placed in racks of 3")
	flags.IntVar(&f.updates, "updates", 10, "weight updates")
	flags.Float64Var(&f.spread, "spread", 0, "relative variation of computing times")
	flags.BoolVar(&f.wireOnly, "wire-only", false, "count only link and switch time, no host time")
	flags.StringVar(&f.versus, "versus", "", "systems to compare with: fifo, or ps,ring for jobs")
	cli.Complete(cmd, "model", modelNames)
	cli.Complete(cmd, "versus", f.set.ClosedLoop().Names)
}

func modelNames() []string {
	return append(olaf.Map(iswitch.Models(), func(m iswitch.Model) string { return m.Name }),
		olaf.Map(xagg.Models(), func(m xagg.Model) string { return m.Name })...)
}

// jobOnly lists flags that apply only to jobs on a preset's cluster. The exception is versus, which also applies to
// other networks.
var jobOnly = []string{"model", "workers", "updates", "spread", "wire-only", "versus"}

// jobNever maps flags for other networks to the reason why they do not apply to a job on a preset's cluster.
var jobNever = map[string]string{
	"clusters": "it has a single job, whose size is --workers", "workers-per-cluster": "its job has --workers",
	"interval": gradientsWait, "interval2": gradientsWait, "jitter": gradientsWait + "; --spread varies its computing time",
	"arrivals": gradientsWait,
	"tc":       controlled, "tc-count": controlled, "tc-law": controlled, "tc-ack": controlled, "x1": "its links are those of the paper's cluster",
	"reward-filter": queued, "reward-threshold": queued,
	"duration": ends, "warmup": ends, "rx-trace": returnsSums, "rx-import": returnsSums,
	"sharing": ownSwitch, "jobs": ownSwitch, "aggregators": ownSwitch, "fraction": ownSwitch,
}

const (
	gradientsWait = "a worker begins its next gradient when it is answered"
	queued        = "the filter is a queue's, and packets of a loop pass none"
	controlled    = "workers that wait for answers limit themselves"
	ends          = "a job ends after its --updates"
	returnsSums   = "its sums return to workers; --pcap captures every frame that a host or switch receives"
	ownSwitch     = "its job does not share the switch; jobs do with --preset " + sharedPreset
)

// refuseJobFlags rejects flags for other kinds of networks and gives the reason.
func refuseJobFlags(cmd *cobra.Command, preset *jobPreset) error {
	var wrong error
	cmd.Flags().VisitAll(func(given *pflag.Flag) {
		switch {
		case !given.Changed:
		case preset != nil:
			wrong = errors.Join(wrong, preset.refuseFlag(given.Name))
		case slices.Contains(sharingOnly, given.Name):
			wrong = cli.UsageError("--%s belongs to --preset %s", given.Name, sharedPreset)
		case slices.Contains(jobOnly, given.Name) && given.Name != "versus":
			wrong = cli.UsageError("--%s belongs to --preset %s", given.Name, strings.Join(JobPresetNames(), "|"))
		}
	})
	return wrong
}

// refuseFlag rejects a flag that does not apply to a preset.
func (p *jobPreset) refuseFlag(name string) error {
	why, not := p.refuse[name]
	if !not && !slices.Contains(p.takes, name) {
		why, not = jobNever[name]
	}
	if not {
		return cli.UsageError("--%s does not apply to --preset %s: %s", name, p.name, why)
	}
	return nil
}

// listSpecs returns the requested jobs. The first job is compared with each of the others.
func (f *jobFlags) listSpecs(cmd *cobra.Command, name string) ([]*job.Spec, error) {
	name = cmp.Or(name, f.preset.system)
	if f.workers < 1 || f.updates < 1 {
		return nil, cli.UsageError("--workers and --updates must be at least 1")
	}
	if _, err := f.singleLoss(); err != nil {
		return nil, err
	}
	f.model = cmp.Or(f.model, f.preset.model)
	if err := f.preset.prepare(cmd, f); err != nil {
		return nil, err
	}
	given := cli.GivenOptions(cmd)
	names := []string{name}
	if f.versus != "" {
		if why := bench.CheckVersus(name, f.versus); why != "" {
			return nil, cli.UsageError("--versus %q: %s; leave it out", f.versus, why)
		}
		for _, one := range strings.Split(f.versus, ",") {
			names = append(names, strings.TrimSpace(one))
		}
	}
	var specs []*job.Spec
	for i, n := range names {
		s, err := f.buildSpec(n, given, i == 0)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// buildSpec returns the job for one system. An option that does not apply to the system is an error only if leads is
// set.
func (f *jobFlags) buildSpec(name string, given []string, leads bool) (*job.Spec, error) {
	s, err := f.set.ClosedLoop().Find(name)
	if open, there := f.set.Find(name); err != nil && there == nil {
		return nil, cli.UsageError("workers of %s do not wait for answers, as those of a job on --preset %s do; use "+
			"one of %s here, or one of the networks --preset %s for %s",
			open.Name, f.preset.name, strings.Join(f.set.ClosedLoop().Names(), ", "), strings.Join(presetNames(), "|"),
			open.Name)
	}
	if err != nil {
		return nil, err
	}
	mode, err := s.Mode(f.mode)
	if err != nil {
		return nil, err
	}
	if leads {
		if err := mode.CheckOptions(s, given); err != nil {
			return nil, err
		}
	}
	spec := &job.Spec{System: s, Mode: mode, Options: f.options}
	if err := f.preset.build(f, spec); err != nil {
		return nil, err
	}
	spec.Network.SetLoss(f.losses.First())
	if spec.Job.Updates, err = closedloop.CheckRounds(f.updates); err != nil {
		return nil, err
	}
	spec.Job.Jitter = f.spread
	spec.Job.Limit = max(jobLimit, min(longestJob, olaf.Duration(f.updates))*olaf.Second)
	return spec, nil
}

// jobReport is a report on jobs that is stored with its plan and can be checked against expectations.
type jobReport interface {
	archive.Planned
	Configurations() []results.Row
}

// jobWork contains the jobs to simulate on a preset's cluster.
type jobWork struct {
	preset string
	about  string      // description of the first run, for the dashboard
	specs  []*job.Spec // all jobs, each for every seed; the dashboard shows the first
	seeds  []uint64
	names  []string // names of the flags that determine the work
	// tapped must be called when the frames of the first job are captured.
	tapped func()
	// play runs the jobs and calls done after each run.
	play func(ctx context.Context, done func()) (jobReport, error)
}

func (w *jobWork) runs() int { return len(w.specs) * len(w.seeds) }

// runJobs simulates jobs on the cluster of a preset.
func (f *simulateFlags) runJobs(cmd *cobra.Command, env *cli.Env, preset *jobPreset,
	plan func(*cobra.Command, *cli.Env) (*jobWork, error)) error {
	if err := refuseJobFlags(cmd, preset); err != nil {
		return err
	}
	if err := f.checkRuns(); err != nil {
		return err
	}
	if len(f.swept.Axes) > 0 {
		if len(f.swept.Metrics) == 0 {
			f.swept.Metrics = preset.headline
		}
		return f.sweepWith(cmd, env, JobSweepCommand(env.Systems))
	}
	err := f.swept.RefuseSweepOnly(cmd)
	if err == nil && !f.tui {
		err = cli.RefuseViewFlags(cmd)
	}
	if err = errors.Join(err, watch.OneScreen(env, f.tui, f.format)); err != nil {
		return err
	}
	work, err := plan(cmd, env)
	if err != nil {
		return err
	}
	if f.format == cli.YAML {
		return f.printJob(cmd, env, slices.DeleteFunc(work.names,
			func(name string) bool { return preset.refuseFlag(name) != nil }))
	}
	return f.carryOutJobs(cmd.Context(), env, work)
}

// carryOutJobs runs the jobs, stores and prints the results, and checks them against the expectations.
func (f *simulateFlags) carryOutJobs(ctx context.Context, env *cli.Env, work *jobWork) error {
	if err := f.CheckStore(env); err != nil {
		return err
	}
	captures, err := f.captureJob(work)
	if err != nil {
		return err
	}
	defer captures.Abandon() // does nothing after a commit
	var unwatch func()
	if f.monitor, unwatch, err = f.watch.StartMonitor(ctx, env); err != nil {
		return err
	}
	defer unwatch()
	kept := f.KeepDocument(env, cli.SimulateName, env.Now())
	report, left := f.playOrWatch(ctx, env, work)
	if report == nil {
		return errors.Join(left, kept.Abort())
	}
	if left != nil {
		return errors.Join(left, kept.Finish(env, report, cli.NewProvenance(env, f.began), true, f.quiet),
			cli.PrintReport(env, report, f.format, f.explain))
	}
	if f.pcap != "" {
		if err := captures.Commit(); err != nil {
			return errors.Join(err, kept.Abort())
		}
		fmt.Fprintf(env.Stderr, "captures: %s (%s)\n", f.pcap, olaf.Plural(int(captures.Frames()), "frame"))
	}
	err = kept.Finish(env, report, cli.NewProvenance(env, f.began), false, f.quiet)
	if err = errors.Join(err, cli.PrintReport(env, report, f.format, f.explain)); err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	return f.expect.JudgeRows(env, report.Configurations())
}

// playOrWatch runs all jobs and shows a dashboard or a progress bar.
func (f *simulateFlags) playOrWatch(ctx context.Context, env *cli.Env, work *jobWork) (jobReport, error) {
	if !f.tui || !env.Terminal {
		report, err := cli.PlayJobs(ctx, env, f.quiet, f.monitor, work.runs(), work.play)
		return report, leftEarly(report, err)
	}
	var done atomic.Int64
	var report jobReport
	look := func() (int, int) { return int(done.Load()), work.runs() }
	f.monitor.AddWork(cli.SimulateName, look)
	if !f.quiet {
		fmt.Fprintln(env.Stderr, "simulating the first run once, for its duration")
	}
	first, seed := work.specs[0], work.seeds[0]
	w := &watch.Loop{
		Env: env, View: f.view,
		About: loops.Options{System: first.Name(), About: work.about, Seed: seed, Work: "runs",
			Leaving: "Runs that are complete are printed and kept, as partial."},
		Play: func(ctx context.Context, follow closedloop.Follow) (*closedloop.Result, error) {
			return job.Play(ctx, first, seed, follow)
		},
		Runs: &watch.Background{Look: look, Run: func(ctx context.Context) (result.Report, error) {
			made, err := work.play(ctx, func() { done.Add(1) })
			if made == nil {
				return nil, err // not a non-nil Report with a nil pointer
			}
			report = made
			return made, err
		}},
	}
	_, err := w.ShowBeside(ctx)
	if report != nil && w.Runs.Err == nil && errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil // the user left the dashboard, but all runs are complete
	}
	return report, leftEarly(report, err)
}

// leftEarly returns the error for an interrupted command, depending on whether there are results.
func leftEarly(report jobReport, err error) error {
	if report == nil {
		return cli.MarkNothingToShow(err)
	}
	return cli.MarkInterrupted(err)
}

// jobPlan returns the requested jobs.
func (f *simulateFlags) jobPlan(cmd *cobra.Command, env *cli.Env) (*jobWork, error) {
	specs, err := f.job.listSpecs(cmd, f.queue)
	if err != nil {
		return nil, err
	}
	if err := f.tryJobs(specs); err != nil {
		return nil, err
	}
	config, err := json.Marshal(f.job.newConfig())
	if err != nil {
		return nil, err
	}
	plan := &job.Plan{Title: f.job.reportTitle(f.runs), Basis: f.job.preset.basis(&f.job), Config: config, Jobs: specs,
		Seeds: experiments.SeedsFrom(f.seed, f.runs)}
	var at []expect.Configuration
	for i, s := range specs {
		if printed := f.job.preset.printed; printed != nil {
			plan.Printed = append(plan.Printed, printed(&f.job, s, i)...)
		}
		if states := f.job.preset.states; states != nil && states(&f.job, s.System) != "" {
			plan.Statements = append(plan.Statements, states(&f.job, s.System))
		}
		at = append(at, expect.Configuration{System: s.System.Name})
	}
	work := &jobWork{preset: f.preset, about: strings.TrimSuffix(f.preset+", "+f.job.model, ", "), specs: specs,
		seeds: plan.Seeds, tapped: func() {}}
	work.play = func(ctx context.Context, done func()) (jobReport, error) {
		report, err := plan.Run(ctx, done)
		if report == nil {
			return nil, err // not a non-nil report with a nil pointer
		}
		by := cli.NewProvenance(env, f.began)
		report.Provenance = &by
		return report, err
	}
	work.names = slices.Concat([]string{"system", "mode"}, jobOnly, []string{"loss"}, cli.GivenOptions(cmd))
	f.queue, f.job.mode = specs[0].System.Name, specs[0].Mode.Name // the names used in files
	return work, f.job.locate(f.expect.ResolveRules(f.job.expectations(), job.DeclareRuns(), at))
}

// tryJobs returns an error if a job cannot run. Without --yes, it also returns an error if the jobs would take long.
func (f *simulateFlags) tryJobs(specs []*job.Spec) error {
	if !f.yes {
		if err := job.Patience(specs, f.runs); err != nil {
			return err
		}
	}
	for _, s := range specs {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// captureJob creates the files for --pcap. Without the flag it creates none.
func (f *simulateFlags) captureJob(work *jobWork) (*job.Captures, error) {
	switch {
	case f.pcap == "":
		return &job.Captures{}, nil
	case work.runs() > 1:
		return nil, cli.UsageError("--pcap needs a single run of one system, not %d", work.runs())
	}
	captures, err := job.Capture(work.specs[0], f.pcap, f.force)
	work.tapped()
	return captures, err
}

func (f *jobFlags) reportTitle(runs int) string {
	return fmt.Sprintf("%s: %s, %s, %s", f.preset.name, f.preset.title(f), olaf.Plural(f.updates, "update"),
		olaf.Plural(runs, "seed"))
}

// jobConfig is the configuration of a job in documents. Systems add their own fields.
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

func (f *jobFlags) newConfig() jobConfig {
	c := jobConfig{Preset: f.preset.name, Model: f.model, Mode: f.mode, Workers: f.workers, Updates: f.updates,
		Loss: f.losses.First(), Spread: f.spread, WireOnly: f.wireOnly}
	if f.versus != "" {
		c.Versus = strings.Split(f.versus, ",")
	}
	return c
}
