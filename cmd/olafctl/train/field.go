package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	testbedcmd "github.com/olafctl/olaf/cmd/olafctl/testbed"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// trainFieldFlags are the flags for training with several seeds, through several systems, or with real packets on a
// device.
type trainFieldFlags struct {
	device    string
	seeds     int
	versus    string
	quick     bool
	plots     string
	timeScale string
}

func (f *trainFieldFlags) add(cmd *cobra.Command, env *cli.Env) {
	flags := cmd.Flags()
	cli.InGroup(cmd, cli.RunFlags, func() {
		flags.IntVar(&f.seeds, "seeds", 1, "number of seeds, starting at --seed; prints learning curves with intervals")
		flags.StringVar(&f.versus, "versus", "", "queues to compare with, such as fifo")
		cli.AlsoCalled(flags, "seeds", "runs")
		flags.BoolVar(&f.quick, "quick", false, "at most two seeds and a fifth of the iterations, for a quick look")
		flags.StringVar(&f.plots, "plots", "", "write the learning curves to this folder as SVG, PDF and PNG")
		flags.StringVar(&f.timeScale, "time-scale", "", "scale both rates, such as 1/10000; the scale is printed")
	})
	devices := env.Devices.With(testbed.HasHosts)
	cli.InGroup(cmd, cli.RunFlags, func() {
		flags.StringVarP(&f.device, "device", "d", "",
			"train with processes and real packets on this device: "+devices.Forms())
	})
	cli.Complete(cmd, "device", devices.Prefixes)
	cli.Complete(cmd, "versus", engine.DisciplineNames)
}

// isSet reports whether any of the flags in f is given.
func (f *trainFieldFlags) isSet(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"device", "seeds", "versus", "quick", "plots", "time-scale"},
		cmd.Flags().Changed)
}

// settleDevice completes the configuration for training on a device. Its defaults are low enough for processes to keep
// up.
func (f *trainFlags) settleDevice(cmd *cobra.Command, env *cli.Env) error {
	given, c := cmd.Flags().Changed, &f.config
	n := &c.Network
	if scale := f.field.timeScale; scale != "" {
		by, err := cli.TimeScale(scale)
		if err != nil {
			return err
		}
		n.Rate, n.OutRate = n.Rate/olaf.Rate(by), n.OutRate/olaf.Rate(by)
		fmt.Fprintf(env.Stderr, "time scale %s: rates are the requested ones divided by %d\n", scale, by)
	}
	if f.field.device == "" {
		return nil
	}
	if given("lanes") {
		return cli.UsageError("--lanes: an update's real packets have %d values; leave it out",
			onwire.GradientLayout().PerPacket)
	}
	n.Profile, n.Lanes = engine.Ideal, onwire.GradientLayout().PerPacket // a kernel queue has no clock cycles
	if f.field.timeScale == "" {
		if !given("rate") {
			n.Rate = onwire.TimelyRate
		}
		if !given("out-rate") {
			n.OutRate = onwire.TimelyOutRate
		}
	}
	if !given("workers") {
		c.Workers = 8
	}
	if !given("clusters") {
		c.Clusters = max(1, c.Workers/2)
	}
	return nil
}

// runField trains with several seeds or on a device and prints learning curves.
func (f *trainFlags) runField(cmd *cobra.Command, env *cli.Env) error {
	c := &f.field
	sums := f.waitsForAnswers()
	if c.device != "" {
		needs := testbed.HasHosts
		if sums {
			needs |= testbed.AddsModels
		}
		if err := checkDevice(env, c.device, needs); err != nil {
			return err
		}
	}
	if err := cli.RefuseFlags(cmd, []string{"film", "profile", "size"},
		"several trainings, or real packets"); err != nil {
		return err
	}
	if c.seeds < 1 {
		return cli.UsageError("--seeds is %d; use 1 or more", c.seeds)
	}
	if err := f.settleDevice(cmd, env); err != nil {
		return err
	}
	if err := f.checkOutputs(env); err != nil {
		return err
	}
	if sums {
		return f.compareSums(cmd, env)
	}
	k, err := f.newComparison()
	if err != nil {
		return err
	}
	return f.runComparison(cmd.Context(), env, k)
}

// checkDevice returns an error if the device lacks an ability or if another user has reserved the device.
func checkDevice(env *cli.Env, address string, needs testbed.Ability) error {
	access, err := env.Access()
	if err != nil {
		return err
	}
	if err = env.Devices.Check(address, needs); err == nil {
		err = access.CheckDevice(address)
	}
	if err != nil {
		return fmt.Errorf("--device: %w", err)
	}
	return nil
}

// compareSums trains through a system whose workers wait for sums. It simulates the training and, if the device's
// kernel can run the system's program, also trains on the device.
func (f *trainFlags) compareSums(cmd *cobra.Command, env *cli.Env) error {
	c, name := &f.field, f.config.Network.Kind
	if _, there := testbedcmd.EndpointRows[name]; c.device != "" && !there {
		return cli.UsageError("--system %s: there is no kernel program for it; with -d use one of %s", name,
			strings.Join(testbedcmd.EndpointSystems(), ", "))
	}
	if c.versus != "" {
		return cli.UsageError("--versus %s: trainings through sums cannot be compared; --system olaf --versus fifo "+
			"compares queues", c.versus)
	}
	if err := cli.RefuseFlags(cmd, []string{"time-scale"}, "--system "+name); err != nil {
		return err
	}
	mode, err := f.xdpMode(env)
	if err != nil {
		return err
	}
	t, err := f.buildTraining(cmd)
	if err != nil {
		return err
	}
	spec, err := t.Job.Spec(env.Systems)
	if err != nil {
		return err
	}
	f.config = t.Config
	k, err := f.withSeeds([]string{name})
	if err != nil {
		return err
	}
	if k.Job, err = json.Marshal(t.Job); err != nil {
		return err
	}
	sums := simulatedSums(k, spec)
	sums.Mode = mode
	return f.showComparison(cmd.Context(), env, k,
		func(ctx context.Context) (*onwire.Report, error) { return k.RunSums(ctx, sums) })
}

// xdpMode returns the XDP mode in the device's name, or "" if there is no device or no mode.
func (f *trainFlags) xdpMode(env *cli.Env) (string, error) {
	if f.field.device == "" {
		return "", nil
	}
	device, name, err := env.Devices.Lookup(f.field.device)
	if err == nil && device.Named != nil {
		err = device.Named(name)
	}
	if err != nil {
		return "", fmt.Errorf("--device: %w", err)
	}
	return name, nil
}

// simulatedSums returns the training on simulated hosts whose workers wait for sums.
func simulatedSums(k *onwire.Comparison, spec *job.Spec) *onwire.Sums {
	return &onwire.Sums{Simulate: func(ctx context.Context, t rl.Config) ([][]rl.Point, float64, error) {
		out, err := job.Train(ctx, t, spec, func(_ int, p rl.Point) { k.OnUpdate(p.Reward) })
		if out == nil {
			return nil, 0, err
		}
		return out.Curves, rl.Evaluate(&out.Weights, rl.Flights), err // diverged training returns both curves and an error
	}}
}

// VerifyTrainings repeats the simulated training runs in a stored comparison and checks them against the stored
// results. files and exports are the numbers of files and exports that were compared before.
func VerifyTrainings(ctx context.Context, env *cli.Env, f *store.Folder, files, exports int) error {
	k, kept, err := onwire.Load(f)
	if err != nil {
		return err
	}
	var sums *onwire.Sums
	if k.Job != nil {
		t := cells.Job{}
		if err := json.Unmarshal(k.Job, &t); err != nil {
			return fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
		}
		spec, err := t.Spec(env.Systems)
		if err != nil {
			return err
		}
		sums = simulatedSums(k, spec)
	}
	live := &Curve{Total: k.Training.Workers * k.Training.Iterations * len(k.Systems) * len(k.Seeds)}
	k.OnUpdate = live.addReward
	bar := cli.StartProgress(env, false, live.Look)
	p, err := k.Verify(ctx, kept, sums)
	bar.Stop()
	switch {
	case errors.Is(err, context.Canceled):
		return cli.MarkInterrupted(err)
	case err != nil:
		return fmt.Errorf("%s: %w", f.ID(),
			ExplainArchitecture(err, &f.Manifest.Provenance, runtime.GOOS+"/"+runtime.GOARCH))
	}
	fmt.Fprintf(env.Stdout, "%s verified: %s, curves of %s, %s repeated, %s made again; all as they were\n",
		f.ID(), olaf.Plural(files, "file"), olaf.Plural(len(kept.Trainings), "training"),
		olaf.Plural(p.Repeated, "simulated training"), olaf.Plural(exports, "export"))
	if p.Repeated > 0 {
		fmt.Fprintf(env.Stdout, "repeated trainings have the last bits of %s, which kept them\n",
			f.Manifest.Provenance.System)
	}
	if p.Real > 0 {
		fmt.Fprintf(env.Stdout, "not repeated: %s with real packets, which come once; %s, %d of the kernel's "+
			"decisions and %s of the weights hold, %d invalid in no curve\n",
			olaf.Plural(p.Real, "training"), countIdentities(p.Identities), p.Decisions,
			olaf.Plural(p.Digests, "digest"), p.Invalid)
	}
	return nil
}

// ErrArchitecture is matched by errors about differences that another processor architecture can explain.
var ErrArchitecture = olaf.NewError(olaf.Unknown, "a training has the last bits of its architecture")

// ExplainArchitecture replaces the mismatch error if the training ran on another architecture, because the mismatch
// then proves nothing about the run.
func ExplainArchitecture(err error, stored *results.Provenance, here string) error {
	if !errors.Is(err, archive.ErrMismatch) || stored.System == here {
		return err
	}
	return fmt.Errorf("%w: it was kept by olafctl %s (%s) on %s and repeated by %s on %s; verify it on %s",
		ErrArchitecture, stored.Version, stored.Go, stored.System, cli.ToolVersion(), here, stored.System)
}

// countIdentities returns the text for a number of identities, such as "2 identities".
func countIdentities(n int) string {
	if n == 1 {
		return "1 identity"
	}
	return fmt.Sprintf("%d identities", n)
}

// newComparison returns the requested comparison of training runs.
func (f *trainFlags) newComparison() (*onwire.Comparison, error) {
	c := &f.field
	systems := []string{f.config.Network.Kind}
	if c.versus != "" {
		systems = append(systems, strings.Split(c.versus, ",")...)
	}
	if there := f.listSystems(); !slices.Contains(there, systems[0]) {
		return nil, cli.UsageError("--system %s: trainings with several seeds or real packets can go through %s",
			systems[0], strings.Join(there, ", "))
	}
	for i, name := range systems {
		if !slices.Contains(engine.DisciplineNames(), name) {
			return nil, cli.UsageError("--versus %s: trainings can be compared through %s", name,
				strings.Join(engine.DisciplineNames(), " and "))
		}
		if slices.Contains(systems[:i], name) {
			return nil, cli.UsageError("--versus %s: %s cannot be compared with itself", c.versus, name)
		}
	}
	return f.withSeeds(systems)
}

// listSystems returns the systems for training with several seeds or with real packets: the queues, and the systems
// whose workers wait for sums.
func (f *trainFlags) listSystems() []string {
	if f.field.device != "" {
		return testbedcmd.EndpointSystems()
	}
	return append(engine.DisciplineNames(), f.set.ClosedLoop().Names()...)
}

// withSeeds returns a comparison of training runs through the given systems, with the requested seeds.
func (f *trainFlags) withSeeds(systems []string) (*onwire.Comparison, error) {
	c := &f.field
	seeds := c.seeds
	if c.quick {
		seeds = min(seeds, 2)
		f.config.Iterations = max(1, f.config.Iterations/5)
	}
	k := &onwire.Comparison{Training: f.config, Systems: systems, Device: c.device, Quick: c.quick}
	for i := range seeds {
		k.Seeds = append(k.Seeds, f.config.Seed+uint64(i))
	}
	return k, f.config.Check()
}

// runComparison opens the device, if any, and runs the comparison.
func (f *trainFlags) runComparison(ctx context.Context, env *cli.Env, k *onwire.Comparison) (err error) {
	if k.Device != "" {
		access, err := env.Access()
		if err != nil {
			return err
		}
		workers, addresses := onwire.HostCounts(&k.Training)
		k.Bed, err = testbed.OpenTestbed(ctx, k.Device, testbed.OpenOptions{Access: access, Workers: workers, Addresses: addresses})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, k.Bed.Close()) }()
		if err := onwire.CheckRates(&k.Training, k.Bed.Hosts.Carried); err != nil {
			return err
		}
	}
	return f.showComparison(ctx, env, k, k.Run)
}

// showComparison runs a comparison, shows its progress, and stores, prints and draws the result.
func (f *trainFlags) showComparison(ctx context.Context, env *cli.Env, k *onwire.Comparison,
	run func(context.Context) (*onwire.Report, error)) error {
	command, err := ownCommand()
	if err != nil {
		return err
	}
	live := &Curve{Total: k.Updates()}
	k.Options.Command, k.OnUpdate, k.Progress = command, live.addReward, f.printProgress(env)
	bar := cli.StartNotedProgress(env, f.quiet, live.Look, live.Note)
	return showReport(f, env, "train", k.Device, func() (*onwire.Report, error) {
		defer bar.Stop()
		return run(ctx)
	})
}

// ownCommand returns a function that builds commands of this program.
func ownCommand() (func(args ...string) *exec.Cmd, error) {
	self, err := os.Executable()
	return func(args ...string) *exec.Cmd { return exec.Command(self, args...) }, err
}

// printProgress returns a function that prints lines about the progress, unless --quiet is given.
func (f *trainFlags) printProgress(env *cli.Env) func(format string, args ...any) {
	return func(format string, args ...any) {
		if !f.quiet {
			fmt.Fprintf(env.Stderr, format+"\n", args...)
		}
	}
}

// checkOutputs returns an error if the result could not be drawn or stored.
func (f *trainFlags) checkOutputs(env *cli.Env) error {
	return errors.Join(watch.RefusePlots(f.field.plots, "train", f.force), f.keep.CheckStore(env))
}

// showReport runs a training, and stores, prints and draws its report.
func showReport[R result.Report](f *trainFlags, env *cli.Env, experiment, device string, run func() (R, error)) error {
	started := env.Now()
	kept := f.keep.KeepDocument(env, experiment, started)
	report, err := run()
	if errors.Is(err, context.Canceled) {
		err = cli.MarkInterrupted(err)
	}
	if err != nil {
		return errors.Join(err, kept.Abort())
	}
	by := cli.NewProvenance(env, started)
	by.Device = device
	return errors.Join(kept.Finish(env, report, by, false, f.quiet),
		watch.DrawFigures(env, f.field.plots, f.force, "train", report), cli.PrintReport(env, report, f.format, false),
		report.Err())
}
