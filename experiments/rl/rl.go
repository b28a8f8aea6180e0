// Package rl trains LunarLander pilots by asynchronous PPO with many workers and one parameter server per cluster, like
// the workloads in the paper (§2.1, §8.2). It can record traces and train through an emulated network. Workers fly and
// learn in separate goroutines. A cost model determines in virtual time when their updates are ready, so that the same
// configuration produces the same bytes on any number of processors (for one GOARCH and GOAMD64). Training can also use
// a wall clock, to record the behaviour of a real machine.
//
// A learner flies the World of LunarLander and improves with proximal policy optimisation (Schulman et al., 2017). Its
// network is small enough for one frame: 8-40-40 tanh units, followed by four action logits and a value on the shared
// trunk. Its data are flat float32 slices, and no sample allocates memory. Products are rounded before they are added,
// so that compilers for machines with fused multiply-add produce the same bits. The package has its own tanh and exp
// for the same reason. The Box2D port does not guarantee this, so results are bit-identical only for one GOARCH and
// GOAMD64.
package rl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen"
)

// ErrConfig is matched by errors in the configuration of a training run.
var ErrConfig = olaf.NewError(olaf.Usage, "cannot train")

// Values of Config, in the order in which help lists them.
const (
	// Async answers each update immediately (paper §2.1).
	Async = "async"
	// Periodic averages Threshold updates and then sends the new weights to all workers. No worker waits, as in
	// iSwitch.
	Periodic = "periodic"
	// Sync averages one update from each worker. All workers wait for the result, as in SwitchML.
	Sync = "sync"

	// Delta interprets the paper's g as (weights after local PPO − weights before)/γ. Training with this interpretation
	// learns.
	Delta = "delta"
	// Literal interprets the paper's g as one PPO gradient, which is applied by plain SGD with the rate γ. Training
	// with this interpretation does not learn within the paper's 200 iterations.
	Literal = "literal"

	// NoGate accepts every update.
	NoGate = "none"
	// MaxGate accepts an update only if its reward exceeds the highest reward accepted so far. This is the literal
	// reading of the paper, with which training stalls.
	MaxGate = "max"
	// EMAGate accepts an update if its reward exceeds a running mean of the received rewards.
	EMAGate = "ema"
	// BandGate is like EMAGate, but lowers the running mean by Config.Band.
	BandGate = "band"

	// CommonStart gives all workers of a cluster and its server the same initial weights.
	CommonStart = "common"
	// FirstStart lets every worker draw and send its own initial weights. The server starts from the weights that
	// arrive first, which are the fastest worker's, and discards the others (paper §2.1).
	FirstStart = "first"

	// Ideal is a network that delivers every update immediately.
	Ideal = "ideal"
)

var (
	// modes, gradients, gates and starts list the valid names of the choices.
	modes     = []string{Async, Periodic, Sync}
	gradients = []string{Delta, Literal}
	gates     = []string{NoGate, MaxGate, EMAGate, BandGate}
	starts    = []string{CommonStart, FirstStart}
)

// Networks returns the names of the kinds of networks.
func Networks() []string { return append([]string{Ideal}, engine.DisciplineNames()...) }

// Network configures the bottleneck between the workers and the parameter servers.
type Network struct {
	Kind    string    `json:"kind"`               // Ideal or an engine
	OutRate olaf.Rate `json:"out_rate,omitempty"` // rate of the bottleneck
	// Rate is the mean rate that all workers offer together. Their periods are normalised to it, because episodes
	// grow fivefold during training and would turn an overload into idleness or back.
	Rate  olaf.Rate `json:"rate,omitempty"`
	Slots int       `json:"slots,omitempty"`
	Frame olaf.Size `json:"frame,omitempty"` // 0 uses the minimum for the network's weights
	// Lanes is the number of values per packet if an update takes several packets. Each is queued, merged, lost and
	// stepped separately, and the number of slots is multiplied accordingly. 0 puts an update into one frame.
	Lanes int `json:"lanes,omitempty"`
	// Profile is the profile of the engine's cycles, engine.Calibrated or engine.Ideal.
	Profile engine.Profile `json:"profile,omitempty"`
	// RewardFilter compares the rewards of an arrival and of the waiting update before they merge (paper §3).
	// RewardThreshold is the maximum difference in reward for merging.
	RewardFilter    bool    `json:"reward_filter,omitempty"`
	RewardThreshold float64 `json:"reward_threshold,omitempty"`
}

// Through returns n with another kind of queue. It removes the reward filter if that kind does not support one.
func (n Network) Through(kind string) Network {
	n.Kind = kind
	if k, _ := engine.FindDiscipline(kind); !k.FiltersReward {
		n.RewardFilter, n.RewardThreshold = false, 0
	}
	return n
}

// Cost is a model of the duration of an iteration for a worker with speed 1.
type Cost struct {
	StepNS   int64 `json:"step_ns"`   // one step of the environment with inference
	SampleNS int64 `json:"sample_ns"` // one sample in one epoch
}

// Config is the configuration of a training run.
type Config struct {
	pktgen.Placement
	Iterations int `json:"iterations"` // per worker
	// Until ends the training at this instant of virtual time, so that slow workers make fewer iterations; 0 means
	// no limit.
	Until     olaf.Duration `json:"until,omitempty"`
	Seed      uint64        `json:"seed"`
	Start     string        `json:"start,omitempty"` // empty: CommonStart
	Mode      string        `json:"mode"`
	Threshold int           `json:"threshold,omitempty"` // updates of a cluster, for Periodic
	Gradient  string        `json:"gradient"`
	Gate      string        `json:"gate"`
	Band      float64       `json:"band,omitempty"` // in reward, for BandGate
	// Average mixes each gradient in equal parts with the running gradient (paper §2.1); otherwise, the newest gradient
	// is used alone.
	Average bool `json:"average"`
	// WeighByCount multiplies the step of a merged update by its number of updates. It is not in the paper, where
	// merging turns k steps into one.
	WeighByCount bool          `json:"weigh_by_count,omitempty"`
	StepSize     float32       `json:"step_size"`    // γ of the parameter server
	Spread       float64       `json:"spread"`       // ratio of the slowest worker's time to the fastest's; others are spaced geometrically
	StepsSpread  float64       `json:"steps_spread"` // workers' PPO.Steps differ by up to this fraction in both directions
	PPO          LearnerConfig `json:"ppo"`
	Cost         Cost          `json:"cost"`
	Network      Network       `json:"network"`
	// Control is the workers' transmission control; nil to send every update. Through an emulated queue, N counts the
	// clusters with an update in the last mean period of the slowest worker. A card's register, and so its ACKs, count
	// the clusters with an update inside the queue.
	Control *tc.Control `json:"control,omitempty"`
}

// Defaults returns the configuration of a training run with eight workers in one job on an ideal network. It learns to
// land within 200 iterations.
func Defaults() Config {
	return Config{
		Placement: pktgen.Placement{Workers: 8, Clusters: 1}, Iterations: 200, Seed: 1,
		Mode: Async, Threshold: 4, Gradient: Delta, Gate: NoGate, Band: 50, Average: true, StepSize: 0.001,
		Spread: 2.5, StepsSpread: 0.3, PPO: learnerDefaults(), Cost: Cost{StepNS: 30_000, SampleNS: 3_000},
		Network: Network{Kind: Ideal, OutRate: 20 * olaf.Gbps, Rate: 60 * olaf.Gbps, Slots: 8, Profile: engine.Calibrated},
	}
}

// ParseConfig parses the configuration of a training run from the configuration alone or from the JSON output of a
// training run. The error matches ErrConfig.
func ParseConfig(text []byte) (*Config, error) {
	var document struct {
		Config json.RawMessage `json:"config"`
	}
	c := new(Config)
	err := json.Unmarshal(text, &document)
	if document.Config != nil {
		text = document.Config
	}
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return c, nil
}

// Check returns an error if c is invalid. The error matches ErrConfig.
func (c *Config) Check() error {
	for _, choice := range []struct {
		what, value string
		names       []string
	}{{"mode", c.Mode, modes}, {"gradient", c.Gradient, gradients}, {"gate", c.Gate, gates}, {"start", cmp.Or(c.Start, CommonStart), starts}, {"network", c.Network.Kind, Networks()}} {
		if !slices.Contains(choice.names, choice.value) {
			return fmt.Errorf("%w: unknown %s %q; there are %s", ErrConfig, choice.what, choice.value, strings.Join(choice.names, ", "))
		}
	}
	say := ""
	switch {
	case c.Workers < 1 || c.Workers > 1<<16:
		say = fmt.Sprintf("%d workers; there are 1 to 65536", c.Workers)
	case c.Clusters < 1 || c.Clusters > c.Workers:
		say = fmt.Sprintf("%s for %s; every cluster needs a worker: set --clusters to at most %d, or use more --workers",
			olaf.Plural(c.Clusters, "cluster"), olaf.Plural(c.Workers, "worker"), c.Workers)
	case c.Iterations < 1:
		say = fmt.Sprintf("%d iterations; at least 1", c.Iterations)
	case c.Until < 0:
		say = fmt.Sprintf("until %v; an instant is not negative", c.Until)
	case c.Mode == Periodic && c.Threshold < 1:
		say = fmt.Sprintf("a threshold of %d updates; at least 1", c.Threshold)
	case !(c.StepSize > 0) || math.IsInf(float64(c.StepSize), 0):
		say = fmt.Sprintf("a step size of %g; it must be positive", c.StepSize)
	case !(c.Spread >= 1 && c.Spread <= 1000):
		say = fmt.Sprintf("a spread of %g; it is slowest over fastest, 1 to 1000", c.Spread)
	case !(c.StepsSpread >= 0 && c.StepsSpread < 1):
		say = fmt.Sprintf("a spread of steps of %g; it is a fraction, 0 to 1", c.StepsSpread)
	case math.IsNaN(c.Band) || c.Band < 0:
		say = fmt.Sprintf("a band of %g; it must not be negative", c.Band)
	case c.Cost.StepNS < 1 || c.Cost.SampleNS < 0:
		say = fmt.Sprintf("a cost of %d ns a step and %d ns a sample", c.Cost.StepNS, c.Cost.SampleNS)
	case !(c.longestIterationNS() <= longestNS):
		say = fmt.Sprintf("an iteration of %d steps and %d epochs at %d ns a step and %d ns a sample takes the slowest worker %.3g s; at most %g s are told",
			c.PPO.Steps, c.PPO.Epochs, c.Cost.StepNS, c.Cost.SampleNS, c.longestIterationNS()/1e9, longestNS/1e9)
	}
	if say != "" {
		return fmt.Errorf("%w: %s", ErrConfig, say)
	}
	if err := c.PPO.Check(); err != nil {
		return fmt.Errorf("%w: %v", ErrConfig, err)
	}
	return c.checkNetwork()
}

// longestNS limits the duration of an iteration to eleven days. Times in picoseconds have 63 bits, which is 106 days.
const longestNS = 1e15

// longestIterationNS returns an upper bound on the duration of an iteration, including the time to complete its last
// episode.
func (c *Config) longestIterationNS() float64 {
	steps := float64(c.PPO.Steps)*(1+c.StepsSpread) + maxSteps
	return steps * (float64(c.Cost.StepNS) + float64(c.PPO.Epochs)*float64(c.Cost.SampleNS)) * c.Spread
}

func (c *Config) checkNetwork() error {
	n := &c.Network
	if n.Frame != 0 {
		if lanes := int(n.Frame-olaf.HeaderBytes) / olaf.LaneBytes; n.Frame > olaf.MaxFrame || lanes < Params {
			return fmt.Errorf("%w: a frame of %v cannot hold the network's %d weights; the widest network for it has %d units a layer, %d need %v to %v",
				ErrConfig, n.Frame, Params, widestFor(min(lanes, olaf.MaxLanes)), Hidden, olaf.FrameSize(Params), olaf.MaxFrame)
		}
	}
	switch {
	case n.Lanes < 0 || n.Lanes > Params:
		return fmt.Errorf("%w: packets of %d values; an update has %d", ErrConfig, n.Lanes, Params)
	case n.Lanes > 0 && n.Frame != 0:
		return fmt.Errorf("%w: packets of %d values, and frames of %v; an update is in one frame or in several packets", ErrConfig, n.Lanes, n.Frame)
	}
	if err := n.checkFilter(); err != nil {
		return err
	}
	if c.Control != nil {
		if _, err := c.Control.Build(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if n.Kind == Ideal {
		if c.Control != nil {
			return fmt.Errorf("%w: transmission control through network %s, which sends no queue status", ErrConfig, Ideal)
		}
		return nil
	}
	if c.Mode != Async {
		return fmt.Errorf("%w: mode %s through a %s queue; only %s goes through one", ErrConfig, c.Mode, n.Kind, Async)
	}
	if n.Rate <= 0 || n.Rate > engine.Line.Rate() {
		return fmt.Errorf("%w: an offered rate of %v; the link carries up to %v", ErrConfig, n.Rate, engine.Line.Rate())
	}
	return nil
}

func (n *Network) checkFilter() error {
	_, err := engine.FixedReward(n.RewardThreshold)
	k, _ := engine.FindDiscipline(n.Kind)
	switch {
	case n.RewardFilter && !k.FiltersReward:
		return fmt.Errorf("%w: network %s has no reward filter, unlike %s; leave the filter out", ErrConfig, n.Kind,
			strings.Join(engine.FilteringNames(), ", "))
	case n.RewardThreshold != 0 && !n.RewardFilter:
		return fmt.Errorf("%w: a reward threshold does nothing without the reward filter; switch it on (--reward-filter), or leave the threshold out", ErrConfig)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// packets returns the number of packets per update.
func (n *Network) packets() int {
	if n.Lanes == 0 {
		return 1
	}
	return (Params + n.Lanes - 1) / n.Lanes
}

// update returns the size of an update on the wire, including all its packets.
func (n *Network) update() (sum olaf.Size) {
	if n.Lanes == 0 {
		return n.frame()
	}
	for left := Params; left > 0; left -= n.Lanes {
		sum += olaf.FrameSize(min(left, n.Lanes))
	}
	return sum
}

// frame returns the size of a frame that contains a whole update.
func (n *Network) frame() olaf.Size { return cmp.Or(n.Frame, olaf.FrameSize(Params)) }

// Speed returns the ratio between the iteration times of worker k and of the fastest worker.
func (c *Config) Speed(k int) float64 {
	if c.Workers == 1 {
		return 1
	}
	return roundTo30(math.Exp(math.Log(c.Spread) * float64(k) / float64(c.Workers-1)))
}

// roundTo30 removes the last bits of v, in which results of math.Exp differ between processors.
func roundTo30(v float64) float64 { return math.Round(v*(1<<30)) / (1 << 30) }

// steps returns the number of steps per iteration for worker k, which replaces PPO.Steps. The workers' order by steps
// differs from their order by speed.
func (c *Config) steps(k int) int {
	if c.Workers == 1 {
		return c.PPO.Steps
	}
	position := float64(k*5%c.Workers)/float64(c.Workers-1)*2 - 1
	return max(1, int(math.Round(float64(c.PPO.Steps)*(1+c.StepsSpread*position))))
}
