package olaf

import (
	"math"
	"slices"

	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// correlateAges returns Spearman's correlation, over seeds, between the mean age in a seed's training runs and the time
// until they reach a reward. The paper uses the age as a proxy for that time (§§1, 2.2). The reward is the lowest final
// reward of any of these runs. A server that weights updates by their count changes the time but not the age, so that
// scheme is left out.
func (f *fig8Trainings) correlateAges() (results.Statistic, error) {
	var all []float64
	for seed := range f.done[0] {
		var ages, times []float64
		target, weighted := math.Inf(1), 0
		for i := range f.schemes {
			if f.schemes[i].Config.WeighByCount {
				weighted++
			} else if l := f.done[i][seed]; l != nil {
				target = min(target, f.finalReward(l))
			}
		}
		for i := range f.schemes {
			l := f.done[i][seed]
			if l == nil || f.schemes[i].Config.WeighByCount {
				continue
			}
			c := f.schemes[i].Config
			age, err := rl.MeanAge(&c, l.Curves)
			if err != nil {
				return results.Statistic{}, err
			}
			ages, times = append(ages, age), append(times, findTimeTo(rl.Periods(l.Curves, fig8Spans, f.untilNS), target))
		}
		if rho := correlateRanks(ages, times); len(ages) == len(f.schemes)-weighted && rho == rho {
			all = append(all, rho)
		}
	}
	return result.Describe(all), nil
}

// findTimeTo returns the position at which a curve first reaches a value, in spans and fractions of a span. The curve's
// last point must reach the value.
func findTimeTo(curve []float64, value float64) float64 {
	for i, v := range curve {
		if v < value {
			continue
		}
		if i == 0 || curve[i] == curve[i-1] {
			return float64(i)
		}
		return float64(i) - (v-value)/(v-curve[i-1])
	}
	return float64(len(curve))
}

// correlateRanks returns Spearman's correlation between two samples of equal length, or NaN if one of them is constant.
func correlateRanks(a, b []float64) float64 {
	ra, rb := rankValues(a), rankValues(b)
	mean := float64(len(a)+1) / 2
	var ab, aa, bb float64
	for i := range ra {
		x, y := ra[i]-mean, rb[i]-mean
		ab, aa, bb = ab+float64(x*y), aa+float64(x*x), bb+float64(y*y)
	}
	return ab / math.Sqrt(aa*bb)
}

// rankValues returns the ranks of values, counted from 1. Equal values share their mean rank.
func rankValues(values []float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	out := make([]float64, len(values))
	for i, v := range values {
		first, _ := slices.BinarySearch(sorted, v)
		last := first
		for last+1 < len(sorted) && sorted[last+1] == v {
			last++
		}
		out[i] = float64(first+last)/2 + 1
	}
	return out
}
