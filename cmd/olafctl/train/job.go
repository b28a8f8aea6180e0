package train

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/system"
)

// waitsForAnswers reports whether the selected system has workers that wait for answers.
func (f *trainFlags) waitsForAnswers() bool {
	return slices.Contains(f.set.ClosedLoop().Names(), f.config.Network.Kind)
}

// TrainSystems returns the systems through which a training run can send its updates.
func TrainSystems(set system.Set) []string { return append(rl.Networks(), set.ClosedLoop().Names()...) }

// trainJobFlags are the flags for systems whose workers wait for answers.
type trainJobFlags struct {
	mode    string
	loss    float64
	options system.Options
}

func (f *trainJobFlags) add(cmd *cobra.Command) {
	cli.InGroup(cmd, cli.JobFlags, func() {
		cmd.Flags().StringVar(&f.mode, "mode", "", "how workers wait for each other: sync|async")
		cmd.Flags().Float64Var(&f.loss, "loss", 0, "frame loss of every link")
		cli.AddSystemOptions(cmd, &f.options)
		cli.Complete(cmd, "mode", func() []string { return []string{"sync", "async"} })
	})
}

// trainJobOnly lists flags that do not apply to queues, trainQueue those that do not apply to a job.
var (
	trainJobOnly = []string{"mode", "loss", system.OptionH, system.OptionBound, system.OptionProfile,
		system.OptionRecovery, system.OptionTimeout, system.OptionPacket, system.OptionWindow, system.OptionCongestion}
	trainQueue = []string{"out-rate", "rate", "size", "lanes", "weigh-by-count", "gate", "band", "average", "film",
		"profile", "reward-filter", "reward-threshold", "tc", "tc-law", "tc-ack", "slope"}
)

func (f *trainJobFlags) refuseFlags(cmd *cobra.Command, system string) error {
	return cli.RefuseFlags(cmd, trainJobOnly, "--system "+system)
}

// buildTraining builds a training run with closed-loop workers from the flags. It rejects flags that do not apply.
func (f *trainFlags) buildTraining(cmd *cobra.Command) (*cells.Training, error) {
	t := &cells.Training{Config: f.config,
		Job: &cells.Job{System: f.config.Network.Kind, Mode: f.job.mode, Loss: f.job.loss, Options: f.job.options}}
	if !cmd.Flags().Changed("clusters") {
		t.Config.Clusters = 1
	}
	if t.Config.Clusters != 1 {
		return nil, cli.UsageError("--clusters is %d; a job of --system %s has one", f.config.Clusters, t.Job.System)
	}
	if err := cli.RefuseFlags(cmd, trainQueue, "--system "+t.Job.System); err != nil {
		return nil, err
	}
	if cmd.Flags().Changed(system.OptionSlots) {
		t.Job.Options.Slots = f.config.Network.Slots
	}
	spec, err := t.Job.Spec(f.set)
	if err != nil {
		return nil, err
	}
	if err := spec.Mode.CheckOptions(spec.System, cli.GivenOptions(cmd)); err != nil {
		return nil, err
	}
	t.Job.Mode = spec.Mode.Name
	t.Config.Network = rl.Network{Kind: rl.Ideal} // the job is the network
	if err := t.Config.Check(); err != nil {
		return nil, err
	}
	return t, job.CheckTraining(&t.Config, spec)
}

// runJob trains a job on simulated hosts.
func (f *trainFlags) runJob(cmd *cobra.Command, env *cli.Env) error {
	t, err := f.buildTraining(cmd)
	if err != nil {
		return err
	}
	spec, err := t.Job.Spec(f.set)
	if err != nil {
		return err
	}
	if err := f.keep.CheckStore(env); err != nil {
		return err
	}
	config := t.Config
	live := &Curve{Total: config.Workers * config.Iterations}
	started := env.Now()
	kept := f.keep.KeepDocument(env, "train", started)
	bar := cli.StartNotedProgress(env, f.quiet, live.Look, live.Note)
	out, err := job.Train(cmd.Context(), config, spec, func(_ int, p rl.Point) { live.addReward(p.Reward) })
	bar.Stop()
	if errors.Is(err, context.Canceled) {
		err = cli.MarkInterrupted(err)
	}
	diverged := errors.Is(err, rl.ErrDiverged)
	if err != nil && !diverged {
		return errors.Join(err, kept.Abort())
	}
	config.Network.Kind = f.config.Network.Kind
	r := f.newJobReport(config, spec, out)
	if diverged {
		markDiverged(r, err)
	}
	err = errors.Join(kept.Finish(env, r, cli.NewProvenance(env, started), false, f.quiet),
		cli.PrintReport(env, r, f.format, false))
	return errors.Join(err, r.Err())
}
