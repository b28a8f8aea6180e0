package inference

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > within {
		t.Errorf("%s: %.10g, want %.10g", what, got, want)
	}
}

// darwin contains the differences of heights, in eighths of an inch, of Darwin's 15 pairs of maize plants (Fisher, The
// Design of Experiments, §17), for which t = 2.148 with 14 degrees of freedom.
var darwin = []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}

func TestPublishedExamples(t *testing.T) {
	near(t, "Darwin, t", PairedT(darwin).P, 0.0497, 0.0001)
	near(t, "Darwin, signed rank", SignedRank(darwin).P, 0.0413, 0.0001)
	// Student's sleep data: extra hours of ten patients under two drugs.
	sleep := []float64{1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4}
	near(t, "Student, t", PairedT(sleep).P, 0.002833, 0.000001)
	// From Wilcoxon's table: n = 6 reaches 1/32 with rank sum 0; n = 10 has P(T ≤ 8) = 25/1024 per side.
	near(t, "signed rank, n = 6", SignedRank([]float64{1, 2, 3, 4, 5, 6}).P, 1.0/32, 1e-15)
	near(t, "signed rank, n = 10, T = 8", SignedRank([]float64{-1, -3, -4, 2, 5, 6, 7, 8, 9, 10}).P, 50.0/1024, 1e-15)
	// Mann and Whitney's table: n = m = 4, U = 0 and 1.
	near(t, "rank sum, U = 0", RankSum([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}).P, 2.0/70, 1e-15)
	near(t, "rank sum, U = 1", RankSum([]float64{1, 2, 3, 5}, []float64{4, 6, 7, 8}).P, 4.0/70, 1e-15)
	// All values are tied within their group: only one of C(22,10) ways divides them like this, on each side.
	a, b := slices.Repeat([]float64{7400}, 12), slices.Repeat([]float64{7399}, 10)
	near(t, "all tied", RankSum(a, b).P, 2.0/646646, 1e-15)
	near(t, "all tied, swapped", RankSum(b, a).P, 2.0/646646, 1e-15)
}

func TestPairedTWithoutSpread(t *testing.T) {
	for _, c := range []struct {
		name string
		d    []float64
		p    float64
	}{
		{"nothing", nil, math.NaN()},
		{"all 0", []float64{0, 0, 0}, 1},
		{"a constant", []float64{2, 2, 2, 2, 2, 2}, 1.0 / 32},
		{"one value", []float64{3}, 1},
	} {
		near(t, c.name, PairedT(c.d).P, c.p, 1e-15)
	}
}

func TestTooFew(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      Result
		toofew bool
	}{
		{"signs of 5", PairedT([]float64{1, 1, 1, 1, 1}), true},
		{"signs of 6", PairedT([]float64{1, 1, 1, 1, 1, 1}), false},
		{"t of 2", PairedT([]float64{1, 1.001}), false},
		{"t of 1", PairedT([]float64{1}), true},
		{"t of what is no number", PairedT([]float64{1, math.NaN(), 2}), true},
		{"ranks of 5", SignedRank([]float64{1, 2, 3, 4, 5}), true},
		{"3 against 3", RankSum([]float64{1, 2, 3}, []float64{4, 5, 6}), true},
		{"1 against 39", Result{0.05, 0.05}, true}, // 2 of 40 ways are 0.05, which is not below 0.05
		{"1 against 40", Result{2.0 / 41, 2.0 / 41}, false},
		{"4 against 4", RankSum([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}), false},
	} {
		if c.r.TooFew(0.05) != c.toofew {
			t.Errorf("%s: %+v", c.name, c.r)
		}
	}
}

// TestRankSumByEnumeration compares the test with an enumeration of all divisions of small tied samples.
func TestRankSumByEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64Range(0, 3)
		whole := rapid.Custom(func(t *rapid.T) float64 { return math.Floor(value.Draw(t, "v")) })
		a := rapid.SliceOfN(whole, 1, 6).Draw(t, "a")
		b := rapid.SliceOfN(whole, 1, 6).Draw(t, "b")
		all := slices.Concat(a, b)
		rank := func(v float64) (r float64) {
			for _, w := range all {
				switch {
				case w < v:
					r += 1
				case w == v:
					r += 0.5
				}
			}
			return r
		}
		sum := func(mask uint) (s float64) {
			for i, v := range all {
				if mask>>i&1 == 1 {
					s += rank(v)
				}
			}
			return s
		}
		observed := sum(1<<len(a) - 1)
		below, above, ways := 0.0, 0.0, 0.0
		for mask := range uint(1) << len(all) {
			if bits.OnesCount(mask) != len(a) {
				continue
			}
			ways++
			if s := sum(mask); s <= observed {
				below++
			}
			if s := sum(mask); s >= observed {
				above++
			}
		}
		want := min(1, 2*min(below, above)/ways)
		if got := RankSum(a, b).P; math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v against %v: %v, enumeration says %v", a, b, got, want)
		}
		if got := RankSum(b, a).P; math.Abs(got-want) > 1e-12 {
			t.Fatalf("swapped: %v, want %v", got, want)
		}
	})
}

// TestSignedRankByEnumeration compares the test with an enumeration of all signs of small tied differences.
func TestSignedRankByEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(-4, 4).Draw(t, "v")) })
		d := rapid.SliceOfN(whole, 1, 10).Draw(t, "d")
		var sizes []float64
		observed := 0.0
		for _, v := range d {
			if v != 0 {
				sizes = append(sizes, math.Abs(v))
			}
		}
		rank := func(v float64) (r float64) {
			r = 0.5
			for _, w := range sizes {
				switch {
				case w < v:
					r += 1
				case w == v:
					r += 0.5
				}
			}
			return r
		}
		for _, v := range d {
			if v > 0 {
				observed += rank(v)
			}
		}
		below, above := 0.0, 0.0
		for mask := range uint(1) << len(sizes) {
			s := 0.0
			for i, v := range sizes {
				if mask>>i&1 == 1 {
					s += rank(v)
				}
			}
			if s <= observed {
				below++
			}
			if s >= observed {
				above++
			}
		}
		want := min(1, 2*min(below, above)/float64(uint(1)<<len(sizes)))
		if got := SignedRank(d).P; math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v: %v, enumeration says %v", d, got, want)
		}
	})
}

// TestLargeSamplesAreNormal compares the approximation with the exact count just below the size from which the
// approximation is used.
func TestLargeSamplesAreNormal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sample := func(n int, shift float64) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = math.Round(20*random.NormFloat64()) + shift
		}
		return s
	}
	a, b := sample(60, 0), sample(60, 9)
	exact := RankSum(a, b).P
	larger := RankSum(append(a, a...), append(b, b...)).P
	if !(larger < exact) || larger <= 0 {
		t.Errorf("twice the data: %v after %v", larger, exact)
	}
	d := sample(121, 3)
	if approximate, counted := SignedRank(d).P, SignedRank(d[:120]).P; approximate > 3*counted+0.05 ||
		counted > 3*approximate+0.05 {
		t.Errorf("121 differences: %v, 120 of them: %v", approximate, counted)
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, math.NaN(), 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, math.NaN(), 0.06, 0.02} {
		near(t, "adjusted", got[i], want, 1e-15)
	}
	if got := Holm([]float64{0.6, 0.7}); got[0] != 1 || got[1] != 1 {
		t.Errorf("%v", got)
	}
}

func BenchmarkRankSum(b *testing.B) {
	x, y := make([]float64, 30), make([]float64, 30)
	for i := range x {
		x[i], y[i] = float64(i%7), float64(i%11)
	}
	for b.Loop() {
		RankSum(x, y)
	}
}
