package rl

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// LearnerConfig contains the hyper-parameters of a learner.
type LearnerConfig struct {
	Steps       int     `json:"steps"`     // an iteration runs complete episodes until it has at least this many steps
	Epochs      int     `json:"epochs"`    // passes over an iteration's samples
	Minibatch   int     `json:"minibatch"` // samples per step of the optimiser
	LearnRate   float32 `json:"learn_rate"`
	Gamma       float32 `json:"gamma"`        // discount per step
	Lambda      float32 `json:"lambda"`       // parameter of the generalised advantage estimate
	Clip        float32 `json:"clip"`         // maximum distance of the probability ratio from 1
	Entropy     float32 `json:"entropy"`      // weight of the entropy bonus
	ValueWeight float32 `json:"value_weight"` // weight of the value loss, half a squared error
	MaxNorm     float32 `json:"max_norm"`     // maximum gradient length per minibatch
	RewardScale float32 `json:"reward_scale"` // keeps value targets from dominating the policy on the shared trunk
}

// learnerDefaults returns hyper-parameters with which asynchronous workers learn.
func learnerDefaults() LearnerConfig {
	return LearnerConfig{Steps: 512, Epochs: 4, Minibatch: 64, LearnRate: 1e-4, Gamma: 0.995, Lambda: 0.98, Clip: 0.2,
		Entropy: 0.003, ValueWeight: 0.5, MaxNorm: 0.5, RewardScale: 0.01}
}

// Check returns an error if c is invalid.
func (c *LearnerConfig) Check() error {
	switch {
	case c.Steps < 1:
		return fmt.Errorf("ppo: steps per iteration %d, must be at least 1", c.Steps)
	case c.Epochs < 1 || c.Minibatch < 2:
		return fmt.Errorf("ppo: %d epochs with minibatches of %d, need at least 1 and 2", c.Epochs, c.Minibatch)
	case !isPositive(c.LearnRate) || !isPositive(c.Clip) || !isPositive(c.MaxNorm) || !isPositive(c.RewardScale):
		return fmt.Errorf("ppo: learn rate %g, clip %g, max norm %g and reward scale %g must be positive and finite",
			c.LearnRate, c.Clip, c.MaxNorm, c.RewardScale)
	case !(c.Gamma >= 0 && c.Gamma <= 1) || !(c.Lambda >= 0 && c.Lambda <= 1):
		return fmt.Errorf("ppo: gamma %g and lambda %g must be within 0 and 1", c.Gamma, c.Lambda)
	}
	return nil
}

// isPositive reports whether v is finite and greater than 0.
func isPositive[T float32 | float64](v T) bool { return v > 0 && v-v == 0 }

// Iteration is the result of one iteration of a learner.
type Iteration struct {
	Reward   float64 // mean return of its episodes, unscaled
	Episodes int
	Steps    int // environment steps, summed over episodes
}

// Learner is one worker with its world, its experience, and an optimiser whose state persists between iterations. It is
// not safe for concurrent use. Different learners share nothing.
type Learner struct {
	config  LearnerConfig
	random  *rand.Rand
	world   World
	policy  Policy
	local   Weights // after the last iteration
	grad    Weights
	memory  adam
	scene   []Observation // one per sample
	samples []sample
	rewards []float32
	values  []float32
	order   []int32
}

// newLearner returns the learner for the worker with the given number in a job. Its world and its choices depend only
// on seed and worker.
func newLearner(config LearnerConfig, seed uint64, worker int) (*Learner, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	l := &Learner{config: config, random: rand.New(rand.NewPCG(seed, uint64(worker)))}
	l.world.Seed(seed<<16 + uint64(worker))
	l.policy.Load(&l.local)
	return l, nil
}

// Improve runs one iteration with the weights start and then optimises the weights for LearnerConfig.Epochs epochs.
func (l *Learner) Improve(start *Weights) Iteration {
	l.local = *start
	it := l.collect()
	ws, g := l.local.layers(), l.grad.layers()
	for range l.config.Epochs {
		l.random.Shuffle(len(l.order), func(i, j int) { l.order[i], l.order[j] = l.order[j], l.order[i] })
		for at := 0; at < len(l.order); at += l.config.Minibatch {
			l.gradient(&ws, &g, l.order[at:min(at+l.config.Minibatch, len(l.order))])
			limitNorm(&l.grad, l.config.MaxNorm)
			l.memory.step(&l.local, &l.grad, l.config.LearnRate)
		}
	}
	return it
}

// Gradient runs one iteration with the weights start and stores the ascent gradient of the objective over all samples
// in into. This is the literal reading of the paper's g, without local steps and without an optimiser.
func (l *Learner) Gradient(start, into *Weights) Iteration {
	l.local = *start
	it := l.collect()
	ws, g := l.local.layers(), l.grad.layers()
	l.gradient(&ws, &g, l.order)
	limitNorm(&l.grad, l.config.MaxNorm)
	*into = l.grad
	return it
}

// gradient stores the mean ascent gradient over a minibatch in l.grad. It normalises the advantages within the
// minibatch.
func (l *Learner) gradient(ws, g *layers, batch []int32) {
	l.grad = Weights{}
	mean, sd := l.advantageMoments(batch)
	scale := 1 / float32(len(batch))
	p := &l.policy.pass
	for _, i := range batch {
		s := &l.samples[i]
		p.forward(ws, &l.scene[i])
		p.backward(ws, g, s, (s.advantage-mean)/sd, scale, &l.config)
	}
}

func (l *Learner) advantageMoments(batch []int32) (mean, sd float32) {
	var sum, squares float64
	for _, i := range batch {
		sum += float64(l.samples[i].advantage)
	}
	m := sum / float64(len(batch))
	for _, i := range batch {
		d := float64(l.samples[i].advantage) - m
		squares += float64(d * d)
	}
	return float32(m), float32(math.Sqrt(squares/float64(len(batch)))) + 1e-8
}

// collect runs complete episodes with the weights l.local until there are enough steps.
func (l *Learner) collect() Iteration {
	l.scene, l.samples, l.order = l.scene[:0], l.samples[:0], l.order[:0]
	l.rewards, l.values = l.rewards[:0], l.values[:0]
	var it Iteration
	var total float64
	for it.Steps < l.config.Steps {
		total += l.episode()
		it.Episodes++
		it.Steps = len(l.samples)
	}
	it.Reward = total / float64(it.Episodes)
	for i := range l.samples {
		l.order = append(l.order, int32(i))
	}
	return it
}

// episode runs one episode, appends its samples, and returns the sum of its unscaled rewards.
func (l *Learner) episode() (total float64) {
	first := len(l.samples)
	s := l.world.Reset()
	for {
		action, logProb, value := l.policy.Sample(&s, l.random)
		l.samples = append(l.samples, sample{action: uint8(action), logProb: logProb})
		l.scene = append(l.scene, s)
		next, reward, terminated, truncated := l.world.Step(action)
		s = next
		total += reward
		l.rewards = append(l.rewards, float32(reward)*l.config.RewardScale)
		l.values = append(l.values, value)
		if !terminated && !truncated {
			continue
		}
		var beyond float32 // the value estimates the rest of a truncated episode
		if !terminated {
			_, _, beyond = l.policy.Sample(&s, l.random)
		}
		l.advantages(first, beyond)
		return total
	}
}

// advantages computes the generalised advantage estimates (Schulman et al., 2016) for the samples from index first on.
// beyond is the value of the state after the last sample, or 0 if the episode terminated.
func (l *Learner) advantages(first int, beyond float32) {
	var running float32
	next := beyond
	for i := len(l.samples) - 1; i >= first; i-- {
		delta := l.rewards[i] + float32(l.config.Gamma*next) - l.values[i]
		running = delta + float32(float32(l.config.Gamma*l.config.Lambda)*running)
		l.samples[i].advantage = running
		l.samples[i].target = running + l.values[i]
		next = l.values[i]
	}
}
