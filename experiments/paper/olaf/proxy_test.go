package olaf

import (
	"math"
	"testing"
)

func TestRankCorrelation(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 30, 500}, 1},
		{[]float64{1, 2, 3}, []float64{5, 4, 3}, -1},
		{[]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8},
		{[]float64{1, 1, 2, 2}, []float64{1, 2, 1, 2}, 0}, // equal values share their rank
		{[]float64{1, 1}, []float64{1, 2}, math.NaN()},
	} {
		if got := correlateRanks(c.a, c.b); math.Abs(got-c.want) > 1e-12 || (got == got) != (c.want == c.want) {
			t.Errorf("%v and %v correlate by %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestTimeToAReward(t *testing.T) {
	curve := []float64{-200, -100, -150, 0}
	for value, want := range map[float64]float64{-250: 0, -200: 0, -150: 0.5, -100: 1, -75: 2.5, 0: 3} {
		if got := findTimeTo(curve, value); got != want {
			t.Errorf("the curve reaches %v after %v spans, want %v", value, got, want)
		}
	}
}
