package paper

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf/results"
)

// The quantities of trends. Each has one definition for all papers, over values of the same seeds: values[i][s] is
// the value of seed s at point i. Differences are taken seed by seed, and every interval is Student's.

// FlatPct is the largest spread of a flat curve's means, in percent of its mean over all points: what a paper calls
// flat, stable, alike or identical.
const FlatPct = 5

// Over returns the amount by which a exceeds b.
func Over(a, b []results.Float) Measured { return Of(pairedDifference(a, b)) }

// Falls returns the fall of a curve from its first point to its last. A step that is shown to rise breaks the trend.
func Falls(values [][]results.Float) Measured {
	if len(values) < 2 {
		return Of(results.Describe(nil, "fewer than two points"))
	}
	m := Over(values[0], values[len(values)-1])
	for i := 1; i < len(values); i++ {
		step := pairedDifference(values[i], values[i-1])
		if step.Mean-step.CI95 > 0 {
			m.Breaks = fmt.Sprintf("it rises by %.3g ± %.2g from point %d to %d", float64(step.Mean), float64(step.CI95), i, i+1)
		}
	}
	return m
}

// Spread returns the difference between a curve's highest and lowest mean, in percent of its mean over all points. The
// curve is flat if this is below FlatPct.
func Spread(values [][]results.Float) Measured {
	low, high := -1, -1
	sum, known := 0.0, 0.0
	means := make([]float64, len(values))
	for i, v := range values {
		s := results.Describe(v, "")
		if means[i] = float64(s.Mean); math.IsNaN(means[i]) {
			continue
		}
		if low < 0 || means[i] < means[low] {
			low = i
		}
		if high < 0 || means[i] > means[high] {
			high = i
		}
		sum += means[i]
		known++
	}
	if low < 0 {
		return Of(results.Describe(nil, "no point has a value"))
	}
	return Of(scaleStatistic(pairedDifference(values[high], values[low]), 100*known/sum))
}

// Gap returns the distance between two values, seed by seed; a gap narrows by the difference of two gaps.
func Gap(a, b []results.Float) []results.Float {
	gap := make([]results.Float, min(len(a), len(b)))
	for s := range gap {
		gap[s] = results.Float(math.Abs(float64(a[s] - b[s])))
	}
	return gap
}

// pairedDifference describes a − b over the seeds that have both.
func pairedDifference(a, b []results.Float) results.Statistic {
	differences := make([]results.Float, min(len(a), len(b)))
	for s := range differences {
		differences[s] = a[s] - b[s]
	}
	return results.Describe(differences, "no seed has both")
}

// scaleStatistic returns a statistic in another unit.
func scaleStatistic(s results.Statistic, by float64) results.Statistic {
	for _, v := range []*results.Float{&s.Mean, &s.SD, &s.CI95, &s.Min, &s.Max} {
		*v *= results.Float(by)
	}
	return s
}
