package results

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/olafctl/olaf/internal/exactmath"
)

// confidence is the confidence level of all intervals.
const confidence = 0.95

// KnownValues returns the values that are not missing.
func KnownValues(values []Float) (known []float64) {
	for _, v := range values {
		if v.Known() {
			known = append(known, float64(v))
		}
	}
	return known
}

// Describe returns a statistic of values, with Student's t interval. Missing values are skipped. If no value remains,
// the statistic is missing for the given reason. A single value has no spread and no interval.
func Describe(values []Float, reason string) Statistic {
	known := KnownValues(values)
	s := Statistic{Mean: Missing(), SD: Missing(), CI95: Missing(), Min: Missing(), Max: Missing(), N: len(known)}
	if len(known) < len(values) || len(known) == 0 {
		s.Reason = reason
	}
	if len(known) == 0 {
		return s
	}
	mean, sd := exactmath.MeanStdDev(known)
	s.Mean, s.Min, s.Max = Float(mean), Float(slices.Min(known)), Float(slices.Max(known))
	if len(known) < 2 {
		return s
	}
	s.SD = Float(sd)
	t := exactmath.StudentQuantile(float64(len(known)-1), 1-(1-confidence)/2)
	s.CI95 = Float(t * sd / math.Sqrt(float64(len(known))))
	return s
}

// Exactly returns a statistic for a single number that does not depend on chance.
func Exactly(v float64) Statistic {
	return Statistic{Mean: Float(v), Min: Float(v), Max: Float(v), N: 1}
}

// Scale multiplies a statistic by a factor, to convert it to another unit.
func Scale(s Statistic, by Float) Statistic {
	s.Mean, s.SD, s.CI95, s.Min, s.Max = s.Mean*by, s.SD*by, s.CI95*by, s.Min*by, s.Max*by
	return s
}

// Bootstrap returns the 95 % percentile interval of the mean, computed by resampling values the given number of times
// with seed. ok is false if there are fewer than two values.
func Bootstrap(values []float64, resamples int, seed uint64) (low, high float64, ok bool) {
	if len(values) < 2 || resamples < 1 {
		return 0, 0, false
	}
	random := rand.New(rand.NewPCG(seed, 0x6f6c6166))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[random.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	tail := (1 - confidence) / 2
	return exactmath.SortedQuantile(tail, means), exactmath.SortedQuantile(1-tail, means), true
}
