package rl

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// Pilot computes one worker's gradients. It is for callers that transfer gradients and weights themselves.
type Pilot struct {
	config     *Config
	worker     *worker
	iterations uint32
	diverged   error // since the first iteration that was not finite
}

// Pilot returns the Pilot of worker k. The error matches ErrConfig.
func (c *Config) Pilot(k int) (*Pilot, error) {
	w, err := c.newWorker(k)
	if err != nil {
		return nil, err
	}
	return &Pilot{config: c, worker: w}, nil
}

// IterationTime returns the duration of an iteration according to the cost model, for the worker's number of steps.
func (p *Pilot) IterationTime() olaf.Duration {
	cost := p.config.costNS(Iteration{Steps: p.config.steps(p.worker.id)})
	return olaf.Duration(float64(cost)*p.worker.speed) * olaf.Nanosecond
}

// Offers returns an error if all workers together cannot offer Network.Rate with updates of the given size. The error
// matches ErrConfig.
func (c *Config) Offers(update olaf.Size) error {
	if c.Network.Rate < 1 {
		return fmt.Errorf("%w: an offered rate of %v; it must be positive", ErrConfig, c.Network.Rate)
	}
	if longest := c.meanPeriodNS(update) * c.Spread * longestPeriod; longest > longestNS {
		return fmt.Errorf("%w: an offered rate of %v; %d workers would wait up to %.3g s between updates, of which at most %g are told",
			ErrConfig, c.Network.Rate, c.Workers, longest/1e9, longestNS/1e9)
	}
	return nil
}

// Fly runs one iteration, beginning with the given weights. It returns the iteration's gradient, which is valid until
// the next call, and its reward. Pilots may fly concurrently.
func (p *Pilot) Fly(from *Weights) (gradient *Weights, reward float64) {
	p.worker.start = *from
	p.worker.fly(p.config)
	if p.diverged == nil {
		p.diverged = p.worker.checkFinite(gradientNorm(&p.worker.gradient), p.iterations)
	}
	p.iterations++
	return &p.worker.gradient, p.worker.result.Reward
}

// CheckFinite returns an error that matches ErrDiverged if the weights or the gradient of an iteration were not finite.
func (p *Pilot) CheckFinite() error { return p.diverged }

// Period returns the duration of the last iteration, normalised so that all workers together offer Network.Rate with
// updates of the given size. It must be called exactly once per iteration.
func (p *Pilot) Period(update olaf.Size) olaf.Duration {
	p.worker.cost = p.config.costNS(p.worker.result)
	return olaf.Duration(p.worker.period(p.config.meanPeriodNS(update))) * olaf.Nanosecond
}

// OfFixedPoint returns the mean of count values from their sum in Q16.16.
func OfFixedPoint(sum int32, count int) float32 {
	return float32(float64(sum) / (float64(count) * (1 << fractionBits)))
}

// Keeper is the parameter server of a cluster. It is for callers that transfer gradients and weights themselves, in
// parts that arrive and are applied separately.
type Keeper struct {
	weights Weights
	part    int // values per part; the last one may be shorter
	parts   []*server
}

// Keeper returns the parameter server of a cluster. Gradients arrive in parts with the given number of values.
func (c *Config) Keeper(cluster, part int) *Keeper {
	k := &Keeper{weights: *c.Initial(cluster), part: part}
	first, end := c.Members(cluster)
	for at := 0; at < len(k.weights); at += part {
		k.parts = append(k.parts, newServer(c, k.weights[at:min(at+part, len(k.weights))], end-first))
	}
	return k
}

// Take steps part i of the weights by the mean gradient of count updates with the given mean reward. It returns the
// weights of the part. The returned slice still belongs to the Keeper.
func (k *Keeper) Take(i int, gradient []float32, reward float64, count int) []float32 {
	k.parts[i].receive(gradient, reward, count)
	return k.parts[i].weights
}

// Weights returns the current weights of all parts.
func (k *Keeper) Weights() *Weights { return &k.weights }

// Inside returns the number of updates that were received for each part.
func (k *Keeper) Inside() []uint64 {
	return olaf.Map(k.parts, func(p *server) uint64 { return p.stats.Inside })
}

// AddPlaces adds the numbers of two keepers, place by place.
func AddPlaces(sum, more []uint64) []uint64 {
	if sum == nil {
		return more
	}
	for i, n := range more {
		sum[i] += n
	}
	return sum
}

// Stats returns the statistics, summed over all parts.
func (k *Keeper) Stats() (s ServerStats) {
	for _, p := range k.parts {
		s.Received += p.stats.Received
		s.Inside += p.stats.Inside
		s.Accepted += p.stats.Accepted
		s.Versions += p.stats.Versions
	}
	return s
}
