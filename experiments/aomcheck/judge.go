package aomcheck

import (
	"fmt"
	"math/big"

	"github.com/olafctl/olaf"
)

// ClusterResult contains the counts and ages of one cluster on one path.
type ClusterResult struct {
	Name      string         `json:"name"`
	First     olaf.Duration  `json:"first_arrival"`
	Sent      int            `json:"sent"`
	Delivered int            `json:"delivered"`
	Merged    int            `json:"merged"`
	Lost      int            `json:"lost"`
	MaxPeak   *olaf.Duration `json:"max_peak,omitempty"`  // rounded to a picosecond; nil without a peak
	MeanPeak  *olaf.Duration `json:"mean_peak,omitempty"` // over the updates that the objective selects
	MeanAoM   *olaf.Duration `json:"mean_aom,omitempty"`  // time average of the sawtooth, first to last delivery
}

// Judgement contains the objective's violations on one path, and the results of its clusters.
type Judgement struct {
	Broken   []string        // one sentence per violation; empty for a satisfied objective
	Clusters []ClusterResult // in the order of the problem
}

// Judge evaluates the objective on a run, with exact arithmetic.
func (p *Problem) Judge(run *Run) Judgement {
	var j Judgement
	means := make([]*big.Rat, len(p.Clusters))
	for u := range p.Clusters {
		means[u] = p.meanPeak(run, u)
		j.Clusters = append(j.Clusters, p.clusterResult(run, u, means[u]))
	}
	breaks := func(format string, args ...any) { j.Broken = append(j.Broken, fmt.Sprintf(format, args...)) }
	for u, c := range p.Clusters {
		if p.Objective.Kind == LossFree {
			if lost := j.Clusters[u].Lost; lost > 0 {
				breaks("%s loses %d updates to a full queue", c.Name, lost)
			}
			continue
		}
		maxPeak, meanBound := p.boundsOf(u)
		bounded := maxPeak > 0 || meanBound > 0 || p.Objective.Kind == Fairness
		if bounded && len(run.Deliveries[u]) < 2 {
			breaks("%s is starved: it delivers %d frames", c.Name, len(run.Deliveries[u]))
			continue
		}
		if maxPeak > 0 {
			if worst := run.worst(u); worst.Peak > p.inSteps(run, maxPeak) {
				breaks("%s has a peak AoM of %v at %v, above %v", c.Name, Tidy(p.span(run, worst.Peak)), Tidy(p.span(run, worst.At)), maxPeak)
			}
		}
		if meanBound > 0 && means[u].Cmp(new(big.Rat).SetInt64(p.inSteps(run, meanBound))) > 0 {
			breaks("%s has a mean peak AoM of %v, above %v", c.Name, Tidy(p.spanRat(run, means[u])), meanBound)
		}
	}
	if p.Objective.Kind == Fairness && len(j.Broken) == 0 {
		p.judgeFairness(run, means, breaks)
	}
	return j
}

func (p *Problem) judgeFairness(run *Run, means []*big.Rat, breaks func(string, ...any)) {
	epsilon := new(big.Rat).SetInt64(p.inSteps(run, p.Objective.Bound))
	for u := range means {
		for v := range means[:u] {
			difference := new(big.Rat).Sub(means[u], means[v])
			if difference.Abs(difference).Cmp(epsilon) > 0 {
				breaks("mean peak AoM of %s (%v) and %s (%v) are %v apart, more than %v", p.Clusters[v].Name, Tidy(p.spanRat(run, means[v])),
					p.Clusters[u].Name, Tidy(p.spanRat(run, means[u])), Tidy(p.spanRat(run, difference)), p.Objective.Bound)
			}
		}
	}
}

// boundsOf returns the bounds that the objective sets for cluster u. A bound of 0 means that there is none.
func (p *Problem) boundsOf(u int) (maxPeak, mean olaf.Duration) {
	switch p.Objective.Kind {
	case MaxPeak:
		return p.Objective.Bound, 0
	case MeanPeak:
		return 0, p.Objective.Bound
	case PerCluster:
		return p.Clusters[u].MaxPeak, p.Clusters[u].Mean
	}
	return 0, 0
}

// meanPeak returns the mean peak of cluster u in steps, or nil if the cluster has no peak.
func (p *Problem) meanPeak(run *Run, u int) *big.Rat {
	count := len(run.Deliveries[u]) - 1
	if count < 1 {
		return nil
	}
	sum := new(big.Int)
	for _, d := range run.Deliveries[u][1:] {
		sum.Add(sum, big.NewInt(d.Peak))
	}
	if p.Objective.Mean == AllUpdates {
		count = p.Clusters[u].Updates
	}
	return new(big.Rat).SetFrac(sum, big.NewInt(int64(count)))
}

func (r *Run) worst(u int) Delivery {
	worst := r.Deliveries[u][0]
	for _, d := range r.Deliveries[u][1:] {
		if d.Peak > worst.Peak {
			worst = d
		}
	}
	return worst
}

func (p *Problem) clusterResult(run *Run, u int, mean *big.Rat) ClusterResult {
	out := ClusterResult{Name: p.Clusters[u].Name, First: p.span(run, run.Path.Arrivals[u][0]), Delivered: len(run.Deliveries[u])}
	for _, f := range run.Fates[u] {
		switch f {
		case Merged:
			out.Merged++
		case Lost:
			out.Lost++
		}
		if f != Unsent {
			out.Sent++
		}
	}
	if mean == nil {
		return out
	}
	worst, average := p.span(run, run.worst(u).Peak), p.spanRat(run, mean)
	aom := p.spanRat(run, meanAoM(run.Deliveries[u]))
	out.MaxPeak, out.MeanPeak, out.MeanAoM = &worst, &average, &aom
	return out
}

// meanAoM returns the time average of the sawtooth from the first delivery to the last, in steps.
func meanAoM(deliveries []Delivery) *big.Rat {
	area := new(big.Rat)
	for i := 1; i < len(deliveries); i++ {
		from, to := deliveries[i-1], deliveries[i]
		// The area of a trapezoid of width To−From between the ages at its ends, times two.
		area.Add(area, product(to.At-from.At, from.At-from.Generated+to.At-from.Generated))
	}
	length := deliveries[len(deliveries)-1].At - deliveries[0].At
	return area.Quo(area, new(big.Rat).SetInt64(2*length))
}

func product(a, b int64) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)))
}

func (p *Problem) inSteps(run *Run, d olaf.Duration) int64 {
	return int64(d/p.tick()) * run.Path.PerTick
}

func (p *Problem) span(run *Run, steps int64) olaf.Duration {
	return p.spanRat(run, new(big.Rat).SetInt64(steps))
}

// spanRat converts steps to a duration, rounded down to a picosecond.
func (p *Problem) spanRat(run *Run, steps *big.Rat) olaf.Duration {
	v := new(big.Rat).Mul(steps, new(big.Rat).SetFrac64(int64(p.tick()), run.Path.PerTick))
	return olaf.Duration(new(big.Int).Quo(v.Num(), v.Denom()).Int64())
}
