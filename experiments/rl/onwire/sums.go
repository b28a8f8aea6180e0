package onwire

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// Learner is a worker that waits for the integer sum of all workers' gradients and steps its weights by their mean. All
// workers therefore have the same weights, bit for bit.
type Learner struct {
	config  *rl.Config
	pilot   *rl.Pilot
	weights rl.Weights
	fixed   []uint32
	begun   time.Time
	curve   []rl.Point
}

// NewLearner returns worker k for training with sums. The error matches rl.ErrConfig.
func NewLearner(c *rl.Config, k int) (*Learner, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	p, err := c.Pilot(k)
	if err != nil {
		return nil, err
	}
	return &Learner{config: c, pilot: p, weights: *c.Initial(0), fixed: make([]uint32, rl.Params), begun: time.Now()},
		nil
}

// Compute implements process.Work. It returns the gradient of one iteration in Q16.16.
func (l *Learner) Compute(context.Context, uint32) process.Computed {
	gradient, reward := l.pilot.Fly(&l.weights)
	l.curve = append(l.curve, rl.Point{AtNS: time.Since(l.begun).Nanoseconds(), Reward: reward})
	for i, v := range gradient {
		l.fixed[i] = uint32(rl.FixedPoint(v))
	}
	return process.Computed{Values: l.fixed}
}

// Apply implements process.Work. It steps the weights by the mean of all workers' gradients.
func (l *Learner) Apply(a *endpoint.Aggregate) {
	for i, v := range a.Values {
		l.weights[i] += float32(l.config.StepSize * rl.OfFixedPoint(int32(v), l.config.Workers))
	}
}

// Learned is the report that a learner makes at the end of training.
type Learned struct {
	Curve  []rl.Point `json:"curve"`
	Greedy float64    `json:"greedy_reward"` // reward of the weights, without exploration
	Digest string     `json:"weights_sha256"`
	// Diverged is the reason why the training diverged; empty if it did not.
	Diverged string `json:"diverged,omitempty"`
}

// Report returns the final report of the learner.
func (l *Learner) Report() Learned {
	h := sha256.New()
	for _, v := range l.weights {
		_ = binary.Write(h, binary.BigEndian, v) // a hash never fails
	}
	return Learned{Curve: l.curve, Greedy: rl.Evaluate(&l.weights, rl.Flights), Digest: hex.EncodeToString(h.Sum(nil)),
		Diverged: describe(cmp.Or(l.pilot.CheckFinite(), l.config.CheckWeights(0, &l.weights)))}
}

// Summed is the result of training with sums. All workers have the same policy.
type Summed struct {
	Curves [][]rl.Point
	Greedy float64
	Digest string            // digest of the weights
	Kernel map[string]uint64 // counters of the program
	// Diverged is the reason why the training diverged; empty if it did not.
	Diverged string
}

// sumLanes is the number of values per packet in training with sums.
const sumLanes = 256

// SumJob returns the settings that workers and server have in common in training with sums.
func SumJob(c *rl.Config) process.Job {
	return process.Job{ID: olaf.ClusterID(1), Workers: c.Workers, Values: rl.Params, Lanes: sumLanes,
		Vectors: c.Iterations}
}

// Sums configures a comparison of training with sums on a device with training in a simulated job.
type Sums struct {
	Mode     string // hook of the program in the kernel; empty for native
	Simulate func(context.Context, rl.Config) (curves [][]rl.Point, greedy float64, err error)
}

// RunSums carries out all training runs of one system whose workers wait for sums. An invalid run on a device makes the
// report invalid and is not included in the curves.
func (c *Comparison) RunSums(ctx context.Context, s *Sums) (*Report, error) {
	r := &Report{}
	name := c.Systems[0]
	for _, seed := range c.Seeds {
		simulated, err := c.simulateSums(ctx, s, seed)
		if err != nil {
			return nil, err
		}
		r.Trainings = append(r.Trainings, simulated)
		if c.Device == "" {
			continue
		}
		t := c.Of(rl.Ideal, seed)
		c.Progress("%s, seed %d: %d workers and a server as processes on %s, as fast as they fly", name, seed, t.Workers,
			c.Device)
		real := &Training{System: name, Seed: seed, Real: true}
		out, err := TrainSums(ctx, t, s.Mode, c.options())
		switch {
		case errors.Is(err, ErrInvalid):
			real.Invalid = invalidBy(err)
		case err != nil:
			return nil, err
		default:
			real.Curves, real.Greedy, real.Counts, real.Weights = out.Curves, out.Greedy, out.Kernel, out.Digest
			if out.Diverged != "" {
				real.Invalid = []string{out.Diverged}
			}
		}
		r.Trainings = append(r.Trainings, real)
	}
	r.Result = c.figure(r.Trainings)
	return r, nil
}

// simulateSums carries out one training run with sums on simulated hosts.
func (c *Comparison) simulateSums(ctx context.Context, s *Sums, seed uint64) (*Training, error) {
	curves, greedy, err := s.Simulate(ctx, c.Of(rl.Ideal, seed)) // the system defines the network
	if err != nil && !errors.Is(err, rl.ErrDiverged) {
		return nil, err
	}
	return &Training{System: c.Systems[0], Seed: seed, Curves: curves, Greedy: greedy, Invalid: invalidBy(err)}, nil
}

// saySums adds statements to f about training with sums.
func (c *Comparison) saySums(f *result.Result, curves []*curve) {
	f.Say("%d workers wait for the sum of all gradients before they continue; %s; each iteration's mean over all "+
		"workers, ± the 95 %% interval over seeds", c.Training.Workers, olaf.Plural(len(c.Seeds), "seed"))
	for _, k := range curves {
		greedy := k.over(func(t *Training) float64 { return t.Greedy })
		f.Say("%s: without exploring %s", k.name, text.FormatRounded(&greedy, 1))
	}
	for _, k := range curves {
		if !k.trainings[0].Real {
			continue
		}
		completed, duplicate := uint64(0), uint64(0)
		for _, t := range k.trainings {
			completed, duplicate = completed+t.Counts["completed"], duplicate+t.Counts["duplicate"]
		}
		f.Say("real packets: the kernel completed %d sums of packets of %d values and dropped %d duplicates; all workers ended with the same weights, to the last bit; integers are Q16.16, simulated the published 10⁸",
			completed, sumLanes, duplicate)
	}
}
