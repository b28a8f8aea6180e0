package exactmath

import "math"

// Mean returns the mean, or NaN if x is empty.
func Mean(x []float64) float64 { return sum(x) / float64(len(x)) }

// MeanStdDev returns the mean and the sample standard deviation.
func MeanStdDev(x []float64) (mean, sd float64) {
	mean, squares := meanSquares(x)
	return mean, math.Sqrt(squares / float64(len(x)-1))
}

// PopMeanVariance returns the mean and the variance of a complete population.
func PopMeanVariance(x []float64) (mean, variance float64) {
	mean, squares := meanSquares(x)
	return mean, squares / float64(len(x))
}

// meanSquares returns the mean and the sum of the squared deviations from it, corrected for rounding of the mean.
func meanSquares(x []float64) (mean, squares float64) {
	mean = Mean(x)
	var drift float64
	for _, v := range x {
		d := v - mean
		squares += float64(d * d)
		drift += d
	}
	return mean, squares - float64(drift*drift)/float64(len(x))
}

// sum adds the values in four pairs of lanes, in the same order as gonum's assembly for amd64.
func sum(x []float64) float64 {
	var lanes [8]float64
	add := func(n int) {
		for i := range n {
			lanes[i] += x[i]
		}
		x = x[n:]
	}
	fold := func(into, from int) {
		lanes[into] += lanes[from]
		lanes[into+1] += lanes[from+1]
	}
	for len(x) >= 8 {
		add(8)
	}
	fold(0, 6)
	fold(2, 4)
	if len(x) >= 4 {
		add(4)
	}
	fold(0, 2)
	if len(x) >= 2 {
		add(2)
	}
	total := lanes[0] + lanes[1]
	if len(x) == 1 {
		total += x[0]
	}
	return total
}

// SortedQuantile returns the p-quantile of sorted values, by linear interpolation.
func SortedQuantile(p float64, sorted []float64) float64 {
	at := float64(p * float64(len(sorted)))
	i := max(int(math.Ceil(at)), 1) - 1
	if i == 0 {
		return sorted[0]
	}
	share := float64(i+1) - at
	return float64(share*sorted[i-1]) + float64((1-share)*sorted[i])
}
