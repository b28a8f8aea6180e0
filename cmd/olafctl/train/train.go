// Package train implements 'olafctl train', which runs reinforcement learning over a simulated network or a testbed.
package train

import (
	"context"
	"errors"
	"fmt"
	"image/gif"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
)

// trainFlags are the flags of train.
type trainFlags struct {
	set    system.Set // the known systems
	config rl.Config
	tc     tc.Control // converted into config
	film   string
	force  bool
	quiet  bool
	format cli.Format
	watch  cli.MetricsFlag
	job    trainJobFlags
	field  trainFieldFlags
	own    programFlags
	keep   cli.KeepFlags
}

// newTrainFlags returns flags with defaults for which training succeeds.
func newTrainFlags(set system.Set) *trainFlags {
	f := &trainFlags{set: set, config: rl.Defaults()}
	f.config.Network.Kind = "olaf"
	f.config.Workers, f.config.Clusters, f.config.Iterations = 24, 12, 100
	f.config.PPO.Steps, f.config.PPO.LearnRate = 384, 3e-4
	return f
}

// addConfig adds the flags that configure the training, except those for closed-loop workers.
func (f *trainFlags) addConfig(cmd *cobra.Command) {
	cli.AddTrainingFlags(cmd, &f.config)
	n, flags, systems := &f.config.Network, cmd.Flags(), TrainSystems(f.set)
	cli.AddSystem(cmd, &n.Kind, "queue that updates pass through: "+strings.Join(systems, "|"),
		func() []string { return systems }, "network")
	flags.Var(&n.OutRate, "out-rate", "output rate of the queue")
	flags.Var(&n.Rate, "rate", "total rate offered by all workers")
	flags.IntVar(&n.Slots, "slots", n.Slots, "queue slots (Qmax)")
	flags.Var(&n.Frame, "size", "frame size of an update; 0B to fit the weights")
	flags.IntVar(&n.Lanes, "lanes", 0, "values per packet, to split updates over several packets; 0 for one frame")
	cli.AddRewardFilter(flags, &n.RewardFilter, &n.RewardThreshold)
	cli.Choose(cmd, &f.config.Start, "start", "initial weights: common | first (those of the fastest worker; §2.1)",
		rl.CommonStart, rl.FirstStart)
	cli.AddControl(cmd, &f.tc)
	flags.BoolVar(&f.config.WeighByCount, "weigh-by-count", false,
		"scale the server's step by the number of merged updates (not in the paper)")
	cli.ProfileFlag(cmd, &n.Profile)
}

func New(env *cli.Env) *cobra.Command {
	f := newTrainFlags(env.Systems)
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train LunarLander or your own program through a network",
		Long: `Train LunarLander with asynchronous PPO whose updates pass through a congested queue, in virtual time. Gradients are Q16.16
lanes; olaf merges them, and fifo drops them when its queue is full. Systems with closed-loop workers (olafctl system list)
train one job packet by packet with float32 gradients. --seeds and --versus print learning curves with intervals. With -d xdp: workers and
server are processes, packets are real, and the Linux kernel merges them. With --program your own command computes. See docs/guide/own-training.md.`,
		Example: `  olafctl train --system olaf --out-rate 20G
  olafctl train --system fifo --out-rate 20G --workers 24 --clusters 12
  olafctl train --system olaf --versus fifo --seeds 5 --plots curves
  sudo olafctl train -d xdp: --system olaf --versus fifo --workers 8 --seeds 5 --quick
  olafctl train --system iswitch --mode async --h 4 --bound 3 --workers 8
  sudo olafctl train --program 'python3 mlp_async.py' -d xdp: --system olaf --versus fifo --workers 8 --seeds 3
  olafctl train --system ideal --workers 8 --clusters 1 --iterations 200 --learn-rate 1e-4 --film landing.gif`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.train(cmd, env) },
	}
	f.job.add(cmd)
	f.addConfig(cmd)
	f.field.add(cmd, env)
	f.own.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.film, "film", "", "write one flight of cluster 0's trained policy to this .gif file")
	cli.AddForce(flags, &f.force, "an existing output file")
	cli.AddQuiet(flags, &f.quiet)
	f.watch.Add(cmd)
	f.keep.Add(cmd)
	cli.AddFormatFlag(cmd, &f.format)
	return cmd
}

// train runs the training that the flags select: with several seeds or systems, with closed-loop workers, or through
// one network.
func (f *trainFlags) train(cmd *cobra.Command, env *cli.Env) error {
	f.config.Control = cli.SettleControl(f.tc)
	if f.own.command != "" {
		return f.runProgram(cmd, env)
	}
	if err := cli.RefuseFlags(cmd, []string{"values", "scale"}, "a training without --program"); err != nil {
		return err
	}
	if systems := TrainSystems(f.set); !slices.Contains(systems, f.config.Network.Kind) {
		return cli.UsageError("--system: unknown system %q; there are %s", f.config.Network.Kind,
			strings.Join(systems, ", "))
	}
	if f.field.isSet(cmd) {
		return f.runField(cmd, env)
	}
	if f.waitsForAnswers() {
		return f.runJob(cmd, env)
	}
	if err := f.job.refuseFlags(cmd, f.config.Network.Kind); err != nil {
		return err
	}
	return f.run(cmd.Context(), env)
}

func (f *trainFlags) run(ctx context.Context, env *cli.Env) error {
	if err := errors.Join(f.config.Check(), f.keep.CheckStore(env)); err != nil {
		return err
	}
	if f.film != "" && !strings.HasSuffix(strings.ToLower(f.film), ".gif") {
		return cli.UsageError("%s: films are .gif", f.film)
	}
	if err := cli.RefuseExisting(f.film, f.force); err != nil {
		return err
	}
	live := &Curve{Total: f.config.Workers * f.config.Iterations}
	monitor, unwatch, err := f.watch.StartMonitor(ctx, env)
	if err != nil {
		return err
	}
	defer unwatch()
	monitor.AddWork("train", live.Look)
	monitor.AddValue("training_reward", "mean reward of the newest twentieth of the updates", live.latestReward)
	started := env.Now()
	kept := f.keep.KeepDocument(env, "train", started)
	bar := cli.StartNotedProgress(env, f.quiet, live.Look, live.Note)
	out, err := rl.Train(ctx, f.config, live)
	bar.Stop()
	stopped, diverged := errors.Is(err, context.Canceled), errors.Is(err, rl.ErrDiverged)
	if out == nil || err != nil && !stopped && !diverged {
		return errors.Join(err, kept.Abort())
	}
	report := f.newReport(out, stopped)
	if diverged {
		markDiverged(report, err)
	}
	err = errors.Join(kept.Finish(env, report, cli.NewProvenance(env, started), stopped, f.quiet),
		cli.PrintReport(env, report, f.format, false))
	if err == nil && stopped {
		message := "interrupted; what is shown is partial"
		if f.film != "" {
			message += ", and " + f.film + " was not written"
		}
		return &cli.Exit{Kind: olaf.Interrupted, Err: errors.New(message)}
	}
	if err = errors.Join(err, report.Err()); err != nil || f.film == "" {
		return err
	}
	return writeFilm(env, f.film, &out.Weights[0], f.config.Seed)
}

// writeFilm records one flight of a trained policy as an animation.
func writeFilm(env *cli.Env, path string, weights *rl.Weights, seed uint64) error {
	var policy rl.Policy
	policy.Load(weights)
	film, reward := rl.Film(seed, policy.Greedy)
	if err := cli.WriteAtomically(path, func(w io.Writer) error { return gif.EncodeAll(w, film) }); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s (seed %d, reward %.1f)\n", path, seed, reward)
	return nil
}
