package inference

import (
	"math"
	"testing"
)

// both checks P and the least P of a result.
func both(t *testing.T, what string, got Result, p, least float64) {
	t.Helper()
	near(t, what+", P", got.P, p, 1e-12)
	near(t, what+", least P", got.Least, least, 1e-12)
}

// tail returns the two-sided tail probability of the normal distribution beyond z.
func tail(z float64) float64 { return math.Erfc(z / math.Sqrt2) }

// signed returns n differences, of which those at multiples of k are negative.
func signed(n, k int) (d []float64, positive float64) {
	for i := 1; i <= n; i++ {
		v := float64(i)
		if i%k == 0 {
			v = -v
		} else {
			positive += v
		}
		d = append(d, v)
	}
	return d, positive
}

// TestSignedRankAroundTheLimit checks that the exact distribution is used for 120 differences, and the normal one for
// 121.
func TestSignedRankAroundTheLimit(t *testing.T) {
	d, positive := signed(120, 3)
	ways := make([]float64, 120*121/2+1)
	ways[0] = 1
	for r := 1; r <= 120; r++ {
		for s := len(ways) - 1; s >= 0; s-- {
			ways[s] /= 2
			if s >= r {
				ways[s] += ways[s-r] / 2
			}
		}
	}
	above := 0.0
	for s := int(positive); s < len(ways); s++ {
		above += ways[s]
	}
	both(t, "120", SignedRank(d), 2*above, math.Pow(2, -119))
	d, positive = signed(121, 3)
	mean, variance := 121*122/4.0, 121*122*243/24.0
	both(t, "121", SignedRank(d), tail((positive-mean-0.5)/math.Sqrt(variance)), math.Pow(2, -120))
	even := make([]float64, 0, 124)
	for i := 1; i <= 62; i++ {
		even = append(even, float64(i), -float64(i))
	}
	both(t, "124 that cancel", SignedRank(even), 1, math.Pow(2, -123))
}

func TestSignedRankOfFewValues(t *testing.T) {
	both(t, "none", SignedRank(nil), math.NaN(), 1)
	both(t, "one 0", SignedRank([]float64{0}), 1, 1)
	both(t, "two 0", SignedRank([]float64{0, 0}), 1, 0.5)
	both(t, "one", SignedRank([]float64{-4}), 1, 1)
	both(t, "0 beside two", SignedRank([]float64{0, 1, 2}), 0.5, 0.5)
	both(t, "ties", SignedRank([]float64{1, 1, -1, 1}), 10.0/16, 2.0/16)
	both(t, "fractions", SignedRank([]float64{-0.25, 0.5, 0.75}), 0.5, 0.25)
}

// TestRankSumAroundTheLimit compares one value with 119 and with 120 others.
func TestRankSumAroundTheLimit(t *testing.T) {
	others := func(n int) (b []float64) {
		for i := range n {
			b = append(b, float64(i))
		}
		return b
	}
	for rank := 1; rank <= 120; rank += 7 {
		one := []float64{float64(rank) - 1.5}
		p := min(1, 2*float64(min(rank, 121-rank))/120)
		both(t, "among 119", RankSum(one, others(119)), p, 2.0/120)
		both(t, "119 and one", RankSum(others(119), one), p, 2.0/120)
		distance := math.Abs(float64(rank)-61) - 0.5
		p = min(1, tail(max(0, distance)/math.Sqrt(120*122/12.0)))
		both(t, "among 120", RankSum(one, others(120)), p, 2.0/121)
		both(t, "120 and one", RankSum(others(120), one), p, 2.0/121)
	}
	same := make([]float64, 100)
	if got := RankSum(same, same); got.P != 1 {
		t.Errorf("200 equal values: %v", got)
	}
}

func TestRankSumOfFewValues(t *testing.T) {
	both(t, "nothing and one", RankSum(nil, []float64{1}), math.NaN(), 1)
	both(t, "one and nothing", RankSum([]float64{1}, nil), math.NaN(), 1)
	both(t, "one and one", RankSum([]float64{1}, []float64{2}), 1, 1)
	both(t, "one and two", RankSum([]float64{1}, []float64{2, 3}), 2.0/3, 2.0/3)
	both(t, "ties", RankSum([]float64{1, 2}, []float64{2, 3}), 4.0/6, 2.0/6)
}

func TestPairedTOfFewValues(t *testing.T) {
	both(t, "none", PairedT(nil), math.NaN(), 1)
	both(t, "one", PairedT([]float64{3}), 1, 1)
	both(t, "one that is no number", PairedT([]float64{math.NaN()}), math.NaN(), 1)
	both(t, "two equal", PairedT([]float64{3, 3}), 0.5, 0.5)
	both(t, "two zeros", PairedT([]float64{0, 0}), 1, 0.5)
	// Student's t with one degree of freedom is Cauchy's: t = mean/(sd/√2) = 2 for 1 and 3.
	both(t, "two", PairedT([]float64{1, 3}), 1-2*math.Atan(2)/math.Pi, 0)
}

// TestHolmByHand checks adjustments of ties, of NaN, and of values that would exceed 1.
func TestHolmByHand(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{
		{nil, nil},
		{[]float64{0.01}, []float64{0.01}},
		{[]float64{0.04, 0.01, math.NaN(), 0.01}, []float64{0.04, 0.03, math.NaN(), 0.03}},
		{[]float64{0.3, 0.02, 0.5}, []float64{0.6, 0.06, 0.6}},
		{[]float64{0.9, 0.8}, []float64{1, 1}},
	} {
		got := Holm(c.p)
		for i := range c.want {
			near(t, "Holm", got[i], c.want[i], 1e-15)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		n, k int
		want float64
	}{{0, 0, 1}, {5, 0, 1}, {5, 5, 1}, {5, 2, 10}, {22, 10, 646646}} {
		if got := binomial(c.n, c.k); got != c.want {
			t.Errorf("%d over %d: %v", c.n, c.k, got)
		}
	}
}
