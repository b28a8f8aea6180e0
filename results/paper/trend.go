package paper

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf/results"
)

// The words of trends. Each has one definition, wherever a paper says it, over values of the same seeds: values[i][s] is that of
// seed s at point i. Differences are taken seed by seed, and every interval is Student's.

// FlatPct is how far the mean of a flat curve may move, in per cent of its mean over all points: what a paper calls flat, stable,
// alike or identical.
const FlatPct = 5

// Over is by how much a exceeds b.
func Over(a, b []results.Float) Measured { return Of(paired(a, b)) }

// Falls is how far a curve falls from its first point to its last. A step that is shown to rise breaks it.
func Falls(values [][]results.Float) Measured {
	if len(values) < 2 {
		return Of(results.Describe(nil, "fewer than two points"))
	}
	m := Over(values[0], values[len(values)-1])
	for i := 1; i < len(values); i++ {
		step := paired(values[i], values[i-1])
		if step.Mean-step.CI95 > 0 {
			m.Breaks = fmt.Sprintf("it rises by %.3g ± %.2g from point %d to %d", float64(step.Mean), float64(step.CI95), i, i+1)
		}
	}
	return m
}

// Spread is how far a curve's highest mean lies above its lowest, in per cent of its mean over all points. It is flat where this
// is below FlatPct.
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
	return Of(scaled(paired(values[high], values[low]), 100*known/sum))
}

// Gap is how far two values lie apart, seed by seed; a gap narrows by what it is smaller than before.
func Gap(a, b []results.Float) []results.Float {
	gap := make([]results.Float, min(len(a), len(b)))
	for s := range gap {
		gap[s] = results.Float(math.Abs(float64(a[s] - b[s])))
	}
	return gap
}

// paired describes a − b over the seeds that have both.
func paired(a, b []results.Float) results.Statistic {
	differences := make([]results.Float, min(len(a), len(b)))
	for s := range differences {
		differences[s] = a[s] - b[s]
	}
	return results.Describe(differences, "no seed has both")
}

// scaled is a statistic in another unit.
func scaled(s results.Statistic, by float64) results.Statistic {
	for _, v := range []*results.Float{&s.Mean, &s.SD, &s.CI95, &s.Min, &s.Max} {
		*v *= results.Float(by)
	}
	return s
}
