// Package train implements 'olafctl train': reinforcement learning over a simulated network or over a testbed.
package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/gif"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/lander"
	"github.com/olafctl/olaf/experiments/rl/ppo"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// trainFlags are the flags of train.
type trainFlags struct {
	set    system.Set // of the systems that there are
	config rl.Config
	film   string
	force  bool
	quiet  bool
	format cli.Format
	watch  cli.MetricsFlag
	job    trainJobFlags
	field  trainFieldFlags
	keep   cli.KeepFlags
}

// newTrainFlags are those of a training that learns.
func newTrainFlags(set system.Set) *trainFlags {
	f := &trainFlags{set: set, config: rl.Defaults()}
	f.config.Network.Kind = "olaf"
	f.config.Workers, f.config.Clusters, f.config.Iterations = 24, 12, 100
	f.config.PPO.Steps, f.config.PPO.LearnRate = 384, 3e-4
	return f
}

// addConfig adds what decides a training, but for workers that wait.
func (f *trainFlags) addConfig(cmd *cobra.Command) {
	cli.AddTrainingFlags(cmd, &f.config)
	n, flags, systems := &f.config.Network, cmd.Flags(), TrainSystems(f.set)
	cli.AddSystem(cmd, &n.Kind, "queue that updates pass through: "+strings.Join(systems, "|"), func() []string { return systems }, "network")
	flags.Var(&n.OutRate, "out-rate", "output rate of the queue")
	flags.Var(&n.Rate, "rate", "total rate offered by all workers")
	flags.IntVar(&n.Slots, "slots", n.Slots, "queue slots (Qmax)")
	flags.Var(&n.Frame, "size", "frame size of an update; 0B to fit the weights")
	flags.IntVar(&n.Lanes, "lanes", 0, "values per packet, to split updates over several packets; 0 for one frame")
	flags.BoolVar(&f.config.WeighByCount, "weigh-by-count", false, "scale the server's step by the number of merged updates (not in the paper)")
	cli.ProfileFlag(cmd, &n.Profile)
}

func New(env *cli.Env) *cobra.Command {
	f := newTrainFlags(env.Systems)
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train LunarLander over an emulated network",
		Long: `Train LunarLander with asynchronous PPO whose updates pass through a congested queue, in virtual time. Gradients are Q16.16
lanes, merged by olaf and dropped by fifo. Systems with closed-loop workers (olafctl system list) train one job packet by
packet with float32 gradients. --seeds and --versus print learning curves with intervals. With -d xdp: workers and server are
processes, packets are real, and the Linux kernel merges them. See docs/guide/own-training.md.`,
		Example: `  olafctl train --system olaf --out-rate 20G
  olafctl train --system fifo --out-rate 20G --workers 24 --clusters 12
  olafctl train --system olaf --versus fifo --seeds 5 --plots curves
  sudo olafctl train -d xdp: --system olaf --versus fifo --workers 8 --seeds 5 --quick
  olafctl train --system iswitch --mode async --h 4 --bound 3 --workers 8
  olafctl train --system ideal --workers 8 --clusters 1 --iterations 200 --learn-rate 1e-4 --film landing.gif`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.train(cmd, env) },
	}
	f.job.add(cmd)
	f.addConfig(cmd)
	f.field.add(cmd, env)
	flags := cmd.Flags()
	flags.StringVar(&f.film, "film", "", "write one flight of cluster 0's trained policy to this .gif file")
	flags.BoolVar(&f.force, "force", false, "overwrite an existing output file")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on stderr")
	f.watch.Add(cmd)
	f.keep.Add(cmd)
	cli.AddFormatFlag(cmd, &f.format)
	return cmd
}

// train trains: several seeds or queues side by side, hosts that wait, or one network.
func (f *trainFlags) train(cmd *cobra.Command, env *cli.Env) error {
	if f.field.asked(cmd) {
		return f.runField(cmd, env)
	}
	if f.waits() {
		return f.runJob(cmd, env)
	}
	if err := f.job.refuse(cmd, f.config.Network.Kind); err != nil {
		return err
	}
	return f.run(cmd.Context(), env)
}

// Schema heads the document of trainReport.
const Schema = "olafctl.train/v1"

// Brief says in a few words what a kept training found, of whichever network.
func Brief(document []byte) string {
	var t struct {
		Config  rl.Config `json:"config"`
		Rewards []float64 `json:"rewards"`
		Hung    bool      `json:"hung"`
	}
	if json.Unmarshal(document, &t) != nil || len(t.Rewards) == 0 {
		return ""
	}
	brief := fmt.Sprintf("%s: reward %s in the last tenth", t.Config.Network.Kind, text.Decimal(t.Rewards[len(t.Rewards)-1], 1))
	if t.Hung {
		brief += ", hung"
	}
	return brief
}

// trainReport is the document of train.
type trainReport struct {
	cli.Head
	Config  rl.Config        `json:"config"`
	Partial bool             `json:"partial,omitempty"`
	EndNS   int64            `json:"end_ns"` // virtual
	Rewards []float64        `json:"rewards"`
	Network trainNetwork     `json:"network"`
	Servers []rl.ServerStats `json:"servers"`
	Greedy  float64          `json:"greedy_reward"` // of cluster 0's policy without exploring
}

// trainNetwork is what became of the updates.
type trainNetwork struct {
	Sent       uint64 `json:"sent"`
	Delivered  uint64 `json:"delivered_frames"`
	Aggregated uint64 `json:"aggregated"`
	Replaced   uint64 `json:"replaced"`
	Dropped    uint64 `json:"dropped"`
	Saturated  uint64 `json:"lane_saturations"`
}

func (f *trainFlags) run(ctx context.Context, env *cli.Env) error {
	if err := errors.Join(f.config.Check(), f.keep.Check(env)); err != nil {
		return err
	}
	if f.film != "" && !strings.HasSuffix(strings.ToLower(f.film), ".gif") {
		return cli.UsageError("%s: films are .gif", f.film)
	}
	if err := cli.RefuseExisting(f.film, f.force); err != nil {
		return err
	}
	live := &Curve{Total: f.config.Workers * f.config.Iterations}
	monitor, unwatch, err := f.watch.Start(ctx, env)
	if err != nil {
		return err
	}
	defer unwatch()
	monitor.Work("train", live.Look)
	monitor.Value("training_reward", "mean reward of the newest twentieth of the updates", live.reward)
	started := env.Now()
	kept := f.keep.Documents(env, "train", started)
	bar := cli.StartNotedProgress(env, f.quiet, live.Look, live.Note)
	out, err := rl.Train(ctx, f.config, live)
	bar.Stop()
	stopped := errors.Is(err, context.Canceled)
	if out == nil || err != nil && !stopped {
		return errors.Join(err, kept.Abort())
	}
	report := f.report(out, stopped)
	err = errors.Join(kept.Finish(env, report, cli.MadeBy(env, started), stopped, f.quiet), cli.PrintReport(env, report, f.format, false))
	if err == nil && stopped {
		said := "interrupted; what is shown is what was done until then"
		if f.film != "" {
			said += ", and " + f.film + " was not written"
		}
		return &cli.Exit{Kind: olaf.Interrupted, Err: errors.New(said)}
	}
	if err != nil || f.film == "" {
		return err
	}
	return writeFilm(env, f.film, &out.Weights[0], f.config.Seed)
}

func (f *trainFlags) report(out *rl.Outcome, stopped bool) *trainReport {
	n := out.Network
	r := &trainReport{Head: cli.Head{Schema: Schema}, Config: f.config, Partial: stopped, EndNS: out.EndNS,
		Rewards: rl.Blocks(out.Curves, f.config.Tenth()), Servers: out.Servers,
		Network: trainNetwork{Sent: n.In(), Delivered: n.Released, Aggregated: n.Class[engine.Aggregated],
			Replaced: n.Class[engine.Replaced] + n.Class[engine.ReplacedReward], Saturated: n.LaneSaturations,
			Dropped: n.Class[engine.DroppedFull] + n.Class[engine.DroppedReward] + n.Class[engine.DroppedMismatch]}}
	if !stopped {
		r.Greedy = rl.Evaluate(&out.Weights[0], rl.Flights)
	}
	return r
}

// grid is the learning curve in tenths.
func (r *trainReport) grid() *cli.Grid {
	list := &cli.Grid{Header: []string{"ITERATIONS", "REWARD"}}
	block := r.Config.Tenth()
	for i, v := range r.Rewards {
		list.Add(fmt.Sprintf("%d-%d", i*block+1, min((i+1)*block, r.Config.Iterations)), fmt.Sprintf("%.1f", v))
	}
	return list
}

// Document implements bench.Report.
func (r *trainReport) Document() any { return r }

// Table implements bench.Report.
func (r *trainReport) Table() (header []string, rows [][]string) {
	return []string{"iterations", "reward"}, r.grid().Rows
}

// Paper implements bench.Report: nobody printed such a training.
func (r *trainReport) Paper() []results.PaperRow { return nil }

// Err implements bench.Report.
func (r *trainReport) Err() error { return nil }

// WriteText implements bench.Report.
func (r *trainReport) WriteText(w io.Writer, v text.View) error {
	c, n := &r.Config, &r.Network
	fmt.Fprintf(w, "%s in %s through %s", olaf.Plural(c.Workers, "worker"), olaf.Plural(c.Clusters, "cluster"), c.Network.Kind)
	if c.Network.Kind != rl.Ideal {
		fmt.Fprintf(w, " at %v, %v offered, %s", c.Network.OutRate, c.Network.Rate, olaf.Plural(c.Network.Slots, "slot"))
	}
	fmt.Fprintf(w, ", seed %d\n%s sent, %s delivered, %d aggregated, %d replaced, %d dropped; %s saturated\n",
		c.Seed, olaf.Plural(n.Sent, "update"), olaf.Plural(n.Delivered, "frame"), n.Aggregated, n.Replaced, n.Dropped, olaf.Plural(n.Saturated, "lane"))
	if !r.Partial {
		fmt.Fprintf(w, "cluster 0 without exploring: reward %.1f over %d flights\n", r.Greedy, rl.Flights)
	}
	fmt.Fprintln(w)
	return r.grid().Page().Write(w, v.Columns())
}

// writeFilm flies a policy once and keeps what it looked like.
func writeFilm(env *cli.Env, path string, weights *ppo.Weights, seed uint64) error {
	var policy ppo.Policy
	policy.Load(weights)
	film, reward := lander.Film(seed, policy.Greedy)
	if err := cli.WriteAtomically(path, func(w io.Writer) error { return gif.EncodeAll(w, film) }); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s (seed %d, reward %.1f)\n", path, seed, reward)
	return nil
}
