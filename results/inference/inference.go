// Package inference tests whether numbers differ. It has tests for paired differences and for independent samples,
// which are exact where ties or small samples make approximations wrong, and a correction for multiple tests. All tests
// are two-sided and symmetric in their arguments. They also return the smallest p that the sample sizes allow, so that
// an insignificant result of only two runs is not mistaken for equality.
package inference

import (
	"cmp"
	"math"
	"slices"

	"github.com/olafctl/olaf/internal/exactmath"
)

// Result is the result of a test.
type Result struct {
	P     float64 // NaN if nothing can be tested
	Least float64 // smallest P that the sample sizes allow
}

// TooFew reports whether the samples are so small that no data could have had a P below alpha.
func (r Result) TooFew(alpha float64) bool { return r.Least >= alpha || math.IsNaN(r.P) }

// PairedT performs Student's t test of the hypothesis that the mean of paired differences is 0. If all differences are
// equal, their spread cannot be estimated. P is then 1 if they are 0, and otherwise the probability that all signs
// agree.
func PairedT(differences []float64) Result {
	n := len(differences)
	if n == 0 {
		return Result{math.NaN(), 1}
	}
	signs := 2 * exactmath.Pow(0.5, float64(n))
	mean, sd := exactmath.MeanStdDev(differences)
	switch {
	case !slices.ContainsFunc(differences, func(d float64) bool { return d != differences[0] }):
		if differences[0] == 0 {
			return Result{1, signs}
		}
		return Result{signs, signs}
	case n < 2:
		return Result{math.NaN(), 1}
	}
	t := math.Abs(mean) / (sd / math.Sqrt(float64(n)))
	return Result{2 * exactmath.StudentSurvival(float64(n-1), t), 0}
}

// exactTo is the largest sample size for which distributions are enumerated. For larger samples, the normal
// approximation is accurate to many digits.
const exactTo = 120

// SignedRank performs Wilcoxon's signed-rank test for paired differences. Differences of 0 are dropped, and ties share
// their mean rank. For up to 120 differences, the distribution of the rank sum over all signs is exact.
func SignedRank(differences []float64) Result {
	var sizes []float64
	for _, d := range differences {
		if d != 0 {
			sizes = append(sizes, math.Abs(d))
		}
	}
	n := len(sizes)
	if n == 0 {
		if len(differences) == 0 {
			return Result{math.NaN(), 1}
		}
		return Result{1, 2 * exactmath.Pow(0.5, float64(len(differences)))}
	}
	ranks := doubleRanks(sizes)
	positive, total := 0, 0
	i := 0
	for _, d := range differences {
		if d == 0 {
			continue
		}
		total += ranks[i]
		if d > 0 {
			positive += ranks[i]
		}
		i++
	}
	least := 2 * exactmath.Pow(0.5, float64(n))
	if n > exactTo {
		variance := 0.0
		for _, r := range ranks {
			variance += float64(float64(r) * float64(r) / 4)
		}
		return Result{normalTail(math.Abs(float64(positive)-float64(float64(total)/2))-1, variance), least}
	}
	ways := make([]float64, total+1) // probability of each sum
	ways[0] = 1
	for _, r := range ranks {
		for s := total; s >= 0; s-- {
			ways[s] /= 2
			if s >= r {
				ways[s] += float64(ways[s-r] / 2)
			}
		}
	}
	return Result{twoSided(ways, positive), least}
}

// RankSum performs the permutation test of the rank sum of two independent samples. This is the Mann-Whitney test
// without the assumption that there are no ties. For up to 120 values in total, the distribution over all partitions is
// exact.
func RankSum(a, b []float64) Result {
	if len(a) == 0 || len(b) == 0 {
		return Result{math.NaN(), 1}
	}
	if len(a) > len(b) { // equivalent, with fewer values to count
		a, b = b, a
	}
	all := slices.Concat(a, b)
	ranks := doubleRanks(all)
	observed, total := 0, 0
	for i, r := range ranks {
		total += r
		if i < len(a) {
			observed += r
		}
	}
	n, m := len(a), len(b)
	least := 2 / binomial(n+m, n)
	if n+m > exactTo {
		mean := float64(total) * float64(n) / float64(n+m)
		variance := 0.0
		centre := float64(total) / float64(n+m)
		for _, r := range ranks {
			variance += float64((float64(r) - centre) * (float64(r) - centre))
		}
		variance *= float64(n) * float64(m) / (float64(n+m) * float64(n+m-1))
		return Result{normalTail(math.Abs(float64(observed)-mean)-1, variance), least}
	}
	return Result{twoSided(subsetSums(ranks, n), observed), least}
}

// subsetSums returns the probability of each possible sum of n of the ranks, if all choices are equally likely.
func subsetSums(ranks []int, n int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	// chosen[k][s] is the probability that, after the ranks so far, k of them are chosen and sum to s.
	chosen := make([][]float64, n+1)
	for k := range chosen {
		chosen[k] = make([]float64, total+1)
	}
	chosen[0][0] = 1
	for seen, r := range ranks {
		left := float64(len(ranks) - seen)
		for k := min(n, seen+1); k >= 0; k-- {
			stay := 1 - float64(n-k)/left // probability that this rank is not chosen, if k are chosen already
			for s := total; s >= 0; s-- {
				p := 0.0
				if stay > 0 {
					p = chosen[k][s] * stay
				}
				if k > 0 && s >= r {
					p += chosen[k-1][s-r] * float64(n-k+1) / left
				}
				chosen[k][s] = p
			}
		}
	}
	return chosen[n]
}

// twoSided returns the probability of a sum that is at least as extreme as the observed sum, on either side. Sums with
// the same probability are included even if rounding makes their probabilities differ.
func twoSided(probability []float64, observed int) float64 {
	below, above := 0.0, 0.0
	for s, p := range probability {
		if s <= observed {
			below += p
		}
		if s >= observed {
			above += p
		}
	}
	return min(1, 2*min(below, above))
}

// normalTail returns the probability that a normally distributed value is at least distance away from its mean, on
// either side. It is 1 if variance is 0.
func normalTail(distance, variance float64) float64 {
	if variance == 0 {
		return 1
	}
	return 2 * exactmath.NormalSurvival(max(0, distance)/math.Sqrt(variance))
}

// doubleRanks returns twice the rank of each value. Ties share their mean rank, and doubled mean ranks are integers.
func doubleRanks(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	// ties share a rank, so their order does not matter
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	ranks := make([]int, len(values))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to
		}
		from = to
	}
	return ranks
}

func binomial(n, k int) float64 {
	ways := 1.0
	for i := 1; i <= k; i++ {
		ways *= float64(n-k+i) / float64(i)
	}
	return ways
}

// Holm returns the p values of simultaneous tests adjusted by Holm's method, in the same order, so that each can be
// compared with the level of a single test. NaN values are kept and do not count as tests.
func Holm(p []float64) []float64 {
	order := make([]int, 0, len(p))
	adjusted := slices.Clone(p)
	for i := range p {
		if !math.IsNaN(p[i]) {
			order = append(order, i)
		}
	}
	// equal values get the same adjustment, so their order does not matter
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, p[i]*float64(len(order)-rank)))
		adjusted[i] = highest
	}
	return adjusted
}
