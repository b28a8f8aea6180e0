package paper

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf/results"
)

// Quantities by which trends are measured. Each has one definition for all papers, over values with the same seeds:
// values[i][s] is the value for seed s at point i. Differences are taken seed by seed, and every interval is Student's.

// FlatPct is the largest difference between the means of a curve that counts as flat, in percent of the mean over all
// points. Papers call such curves flat, stable, alike or identical.
const FlatPct = 5

// Over returns the amount by which a exceeds b, seed by seed.
func Over(a, b []results.Float) Measured { return Of(pairedDifference(a, b)) }

// Falls returns the amount by which a curve falls from its first point to its last. If the curve significantly rises
// between two points, Breaks is set.
func Falls(values [][]results.Float) Measured {
	if len(values) < 2 {
		return Of(results.Describe(nil, "fewer than two points"))
	}
	m := Over(values[0], values[len(values)-1])
	for i := 1; i < len(values); i++ {
		step := pairedDifference(values[i], values[i-1])
		if step.Mean-step.CI95 > 0 {
			m.Breaks = fmt.Sprintf("it increases by %.3g ± %.2g from point %d to %d", float64(step.Mean),
				float64(step.CI95), i, i+1)
		}
	}
	return m
}

// Spread returns the difference between the highest and the lowest mean of a curve, in percent of its mean over all
// points. The curve is flat if this is less than FlatPct.
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

// Gap returns the distance between a and b, seed by seed. The difference of two gaps is the amount by which a gap
// narrows.
func Gap(a, b []results.Float) []results.Float {
	gap := make([]results.Float, min(len(a), len(b)))
	for s := range gap {
		gap[s] = results.Float(math.Abs(float64(a[s] - b[s])))
	}
	return gap
}

// pairedDifference returns a statistic of a − b over the seeds for which both are known.
func pairedDifference(a, b []results.Float) results.Statistic {
	differences := make([]results.Float, min(len(a), len(b)))
	for s := range differences {
		differences[s] = a[s] - b[s]
	}
	return results.Describe(differences, "no seed has both values")
}

// scaleStatistic returns a statistic with all its values multiplied by a factor, to convert it to another unit.
func scaleStatistic(s results.Statistic, by float64) results.Statistic {
	for _, v := range []*results.Float{&s.Mean, &s.SD, &s.CI95, &s.Min, &s.Max} {
		*v *= results.Float(by)
	}
	return s
}
