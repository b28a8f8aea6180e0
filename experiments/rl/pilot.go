package rl

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl/ppo"
)

// Pilot is one worker's learner for a caller that carries gradients and weights around itself.
type Pilot struct {
	config *Config
	worker *worker
}

// Pilot makes the learner of worker k. The error matches ErrConfig.
func (c *Config) Pilot(k int) (*Pilot, error) {
	w, err := c.newWorker(k)
	if err != nil {
		return nil, err
	}
	return &Pilot{c, w}, nil
}

// Usual is how long an iteration takes, as the cost model has it for the steps that the worker is to fly.
func (p *Pilot) Usual() olaf.Duration {
	cost := p.config.costNS(ppo.Iteration{Steps: p.config.steps(p.worker.id)})
	return olaf.Duration(float64(cost)*p.worker.speed) * olaf.Nanosecond
}

// Fly is one iteration from the given weights: its gradient, which is valid until the next, and its reward. Pilots fly side
// by side.
func (p *Pilot) Fly(from *ppo.Weights) (gradient *ppo.Weights, reward float64) {
	p.worker.start = *from
	p.worker.fly(p.config)
	return &p.worker.gradient, p.worker.result.Reward
}
