package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/rl/ppo"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
)

// addTrainingFlags are the options that recording and training share; the defaults are those that learn.
func addTrainingFlags(cmd *cobra.Command, c *rl.Config) {
	flags := cmd.Flags()
	flags.IntVar(&c.Workers, "workers", c.Workers, "workers, spread evenly over the clusters")
	flags.IntVar(&c.Clusters, "clusters", c.Clusters, "clusters (training jobs), each with a model of its own")
	flags.IntVar(&c.Iterations, "iterations", c.Iterations, "iterations of every worker")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "seed of worlds, choices and weights")
	cli.Choose(cmd, &c.Gradient, "gradient", "what an update holds: delta (of local PPO) | literal (one gradient, which hardly learns)", rl.Delta, rl.Literal)
	cli.Choose(cmd, &c.Gate, "gate", "which updates the server takes: none | max (the paper's words, which stall) | ema | band", rl.NoGate, rl.MaxGate, rl.EMAGate, rl.BandGate)
	flags.Float64Var(&c.Band, "band", c.Band, "how far below its running mean reward the band gate takes updates")
	flags.BoolVar(&c.Average, "average", c.Average, "average each gradient half and half with the running one")
	addFloat32(flags, &c.StepSize, "step-size", "γ of the parameter server")
	addFloat32(flags, &c.PPO.LearnRate, "learn-rate", "step of the workers' own optimiser")
	flags.IntVar(&c.PPO.Steps, "steps", c.PPO.Steps, "environment steps of an iteration, at least; whole episodes")
	flags.IntVar(&c.PPO.Epochs, "epochs", c.PPO.Epochs, "passes over an iteration's samples")
	flags.Float64Var(&c.Spread, "spread", c.Spread, "time of the slowest worker over that of the fastest")
}

// float32Value is a flag of the type that the learner computes in.
type float32Value struct{ value *float32 }

func addFloat32(flags *pflag.FlagSet, value *float32, name, usage string) {
	flags.Var(float32Value{value}, name, usage)
}

func (v float32Value) String() string {
	if v.value == nil {
		return ""
	}
	return fmt.Sprint(*v.value)
}
func (v float32Value) Type() string { return "float" }
func (v float32Value) Set(s string) error {
	x, err := olaf.ParseNumber(s)
	if err != nil || math.Abs(x) > math.MaxFloat32 {
		return &strconv.NumError{Num: s, Err: strconv.ErrSyntax}
	}
	*v.value = float32(x)
	return nil
}

func profileFlag(cmd *cobra.Command, p *engine.Profile) {
	cli.Choose(cmd, (*string)(p), "profile", "engine cycles", engine.Profiles()...)
}

// curve is the live reward curve of a training: the mean reward of successive twentieths of its updates.
type curve struct {
	mu     sync.Mutex
	done   int
	total  int
	sums   [curvePoints]float64
	counts [curvePoints]int
}

const curvePoints = 20

// Generated takes one update's reward.
func (c *curve) Generated(u *trace.Update, _ *ppo.Weights) error {
	c.add(u.Reward)
	return nil
}

func (c *curve) add(reward float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := min(c.done*curvePoints/max(c.total, 1), curvePoints-1)
	c.sums[at] += reward
	c.counts[at]++
	c.done++
}

// look is what a progress bar asks.
func (c *curve) look() (done, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done, c.total
}

// reward is the mean of the newest point; not a number before there is one.
func (c *curve) reward() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.counts) - 1; i >= 0; i-- {
		if c.counts[i] > 0 {
			return c.sums[i] / float64(c.counts[i])
		}
	}
	return math.NaN()
}

// note draws the curve in one line, from crash to landing.
func (c *curve) note() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	const bars, low, high = "▁▂▃▄▅▆▇█", -200.0, 250.0
	var line strings.Builder
	last := math.NaN()
	for i, n := range c.counts {
		if n == 0 {
			continue
		}
		last = c.sums[i] / float64(n)
		level := int((last - low) / (high - low) * 8)
		line.WriteRune([]rune(bars)[min(max(level, 0), 7)])
	}
	if math.IsNaN(last) {
		return ""
	}
	return fmt.Sprintf("reward %.0f %s", last, line.String())
}
