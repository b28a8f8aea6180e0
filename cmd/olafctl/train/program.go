package train

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	testbedcmd "github.com/olafctl/olaf/cmd/olafctl/testbed"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/process"
)

// programFlags are the flags for training that is computed by an external command.
type programFlags struct {
	command string
	values  int
	scale   float64
	compute olaf.Duration
}

func (f *programFlags) add(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.RunFlags, func() {
		flags := cmd.Flags()
		flags.StringVar(&f.command, "program", "", "let this command compute, once per worker and for the server")
		flags.Var(&f.compute, "compute", "computing time per vector in virtual time; 0s measures the programs one at a time")
		flags.IntVar(&f.values, "values", 0,
			"values of the program's longest vector; default one frame, and 65536 for sums")
		flags.Float64Var(&f.scale, "scale", attach.DefaultScale, "int32 lanes per unit of the program's values")
	})
}

// programForeign lists flags that do not apply if an external program trains, because the program decides what it
// trains and for how long.
var programForeign = []string{"film", "profile", "size", "quick", "time-scale", "rate", "iterations",
	"weigh-by-count", "reward-filter", "reward-threshold", "tc", "tc-law", "tc-ack", "slope"}

// programWorkers and programRate are the defaults for a program: a few processes, and an output that is not a
// bottleneck.
const (
	programWorkers = 4
	programRate    = olaf.Gbps
	programSums    = 1 << 16
)

// runProgram trains with the user's command.
func (f *trainFlags) runProgram(cmd *cobra.Command, env *cli.Env) error {
	if err := cli.RefuseFlags(cmd, programForeign, "--program"); err != nil {
		return err
	}
	sums, needs := f.waitsForAnswers(), testbed.HasHosts
	p, err := f.buildProgram(cmd, sums)
	if err != nil {
		return err
	}
	real := slices.ContainsFunc(p.Systems, func(name string) bool { return name != rl.Ideal })
	switch {
	case sums && !f.inKernel(env):
		return f.runProgramJobs(cmd, env, p)
	case f.field.device == "" && (real || f.own.compute > 0):
		return f.runProgramVirtual(cmd, env, p)
	}
	if err := cli.RefuseFlags(cmd, append(slices.Clone(trainJobOnly), "compute"), "--program on "+
		cmp.Or(f.field.device, "an ideal network in real time")); err != nil {
		return err
	}
	if sums {
		needs |= testbed.AddsModels
	}
	if real {
		if err := checkDevice(env, f.field.device, needs); err != nil {
			return err
		}
	}
	if sums {
		mode, err := f.xdpMode(env)
		if err != nil {
			return err
		}
		return f.showProgram(cmd.Context(), env, p, func(ctx context.Context) (*onwire.ProgramReport, error) {
			return p.RunSums(ctx, mode)
		})
	}
	return f.showProgram(cmd.Context(), env, p, func(ctx context.Context) (*onwire.ProgramReport, error) {
		if !real {
			return p.RunQueues(ctx, nil)
		}
		return runProgramQueues(ctx, env, p)
	})
}

// runProgramQueues trains with the user's command through the queue of a device.
func runProgramQueues(ctx context.Context, env *cli.Env, p *onwire.Program) (_ *onwire.ProgramReport, err error) {
	access, err := env.Access()
	if err != nil {
		return nil, err
	}
	bed, err := testbed.OpenTestbed(ctx, p.Device, testbed.OpenOptions{Access: access, Workers: p.Workers,
		Addresses: p.Frames()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	return p.RunQueues(ctx, bed)
}

// runProgramVirtual trains with the user's command through queues in virtual time.
func (f *trainFlags) runProgramVirtual(cmd *cobra.Command, env *cli.Env, p *onwire.Program) error {
	if err := cli.RefuseFlags(cmd, trainJobOnly, "--program with --system "+f.config.Network.Kind); err != nil {
		return err
	}
	return f.showProgram(cmd.Context(), env, p, func(ctx context.Context) (*onwire.ProgramReport, error) {
		return p.RunVirtual(ctx, f.own.compute)
	})
}

// inKernel reports whether the device's kernel can run the system's program.
func (f *trainFlags) inKernel(env *cli.Env) bool {
	_, there := testbedcmd.EndpointRows[f.config.Network.Kind]
	return there && f.field.device != "" && env.Devices.Check(f.field.device, testbed.AddsModels) == nil
}

// runProgramJobs trains with the user's command through closed-loop systems, either in virtual time or on real cables
// around a switch in this process.
func (f *trainFlags) runProgramJobs(cmd *cobra.Command, env *cli.Env, p *onwire.Program) error {
	jobs := &onwire.Jobs{Specs: map[string]*job.Spec{}, Wired: f.field.device != "", Compute: f.own.compute}
	options := f.job.options
	if cmd.Flags().Changed(system.OptionSlots) {
		options.Slots = f.config.Network.Slots
	}
	for _, name := range p.Systems {
		spec, err := (&cells.Job{System: name, Mode: f.job.mode, Loss: f.job.loss, Options: options}).Spec(f.set)
		if err != nil {
			return err
		}
		if err := errors.Join(spec.Mode.CheckOptions(spec.System, cli.GivenOptions(cmd)),
			f.checkWires(env, spec.System), f.checkAsync(spec)); err != nil {
			return err
		}
		jobs.Specs[name] = spec
	}
	if jobs.Wired {
		if err := cli.RefuseFlags(cmd, []string{"compute"}, "-d "+f.field.device); err != nil {
			return err
		}
	}
	return f.showProgram(cmd.Context(), env, p, func(ctx context.Context) (*onwire.ProgramReport, error) {
		return p.RunJobs(ctx, jobs)
	})
}

// checkAsync rejects options that cannot be used with workers that do not wait for the sum from all workers.
func (f *trainFlags) checkAsync(s *job.Spec) error {
	switch {
	case s.Mode.Sync:
		return nil
	case f.field.device != "" && s.System.Program != nil:
		return cli.UsageError("--mode %s: the workers of %s apply sums themselves, and with a program that is possible in "+
			"virtual time only; leave -d out", s.Mode.Name, s.System.Name)
	case f.job.loss > 0 && s.System.Program != nil:
		return cli.UsageError("--loss: frames of %s do not name their sum, so that a lost one shifts all later sums, and "+
			"workers' weights drift apart; leave the loss out", s.Name())
	}
	return nil
}

// checkWires rejects a system that cannot run on the device's switch.
func (f *trainFlags) checkWires(env *cli.Env, s *system.System) error {
	if f.field.device == "" {
		return nil
	}
	if err := checkDevice(env, f.field.device, testbed.HasHosts|testbed.ClosesLoop); err != nil {
		return err
	}
	if !s.CanLoop() {
		return cli.UsageError("--system %s: its servers add; use -d xdp:, or leave -d out for virtual time", s.Name)
	}
	if s.Program == nil {
		return nil
	}
	return env.Devices.NotBuilt(f.field.device, s.Program)
}

// buildProgram builds the training run of an external program from the flags.
func (f *trainFlags) buildProgram(cmd *cobra.Command, sums bool) (*onwire.Program, error) {
	n, given := &f.config.Network, cmd.Flags().Changed
	p := &onwire.Program{
		Command: f.own.command, Systems: []string{n.Kind}, Device: f.field.device, Workers: programWorkers, Clusters: 1,
		Values: f.own.values, Lanes: n.Lanes, Scale: f.own.scale,
	}
	if given("workers") {
		p.Workers = f.config.Workers
	}
	if given("clusters") {
		p.Clusters = f.config.Clusters
	}
	p.Lanes = cmp.Or(p.Lanes, process.MaxOpenLanes)
	if f.field.versus != "" {
		p.Systems = append(p.Systems, strings.Split(f.field.versus, ",")...)
	}
	known := append(engine.DisciplineNames(), rl.Ideal)
	if sums {
		p.Values = cmp.Or(p.Values, programSums)
		known = f.set.ClosedLoop().Names()
	} else {
		p.Slots, p.OutRate = n.Slots, programRate
		if given("out-rate") {
			p.OutRate = n.OutRate
		}
		p.Values = cmp.Or(p.Values, p.Lanes-attach.Overhead)
	}
	if err := checkProgramSystems(p.Systems, known); err != nil {
		return nil, err
	}
	for i := range max(f.field.seeds, 0) {
		p.Seeds = append(p.Seeds, f.config.Seed+uint64(i))
	}
	return p, p.Check()
}

// checkProgramSystems rejects systems that are unknown or that are listed twice.
func checkProgramSystems(systems, known []string) error {
	for i, name := range systems {
		if !slices.Contains(known, name) || slices.Contains(systems[:i], name) {
			return cli.UsageError("--versus %s: beside %s a program trains through other systems of %s", name, systems[0],
				strings.Join(known, ", "))
		}
	}
	return nil
}

// showProgram runs the training, shows its progress, and stores, prints and draws the result.
func (f *trainFlags) showProgram(ctx context.Context, env *cli.Env, p *onwire.Program,
	run func(context.Context) (*onwire.ProgramReport, error)) (err error) {
	if err := f.checkOutputs(env); err != nil {
		return err
	}
	if p.Olafctl, err = ownCommand(); err != nil {
		return err
	}
	p.Progress, p.OnPoint = f.printProgress(env), func(onwire.Point) {}
	return showReport(f, env, "program", p.Device, func() (*onwire.ProgramReport, error) { return run(ctx) })
}
