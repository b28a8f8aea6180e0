package figure

import (
	"math"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{0, 77.7, "0 20 40 60"},
		{0, 2650, "0 1000 2000"},
		{0, 16700, "0 5000 10000 15000"},
		{-3, 3, "-2 0 2"},
		{0.0012, 0.0041, "0.002 0.003 0.004"},
		{5, 5, ""},
		{0, math.Inf(1), ""},
		{math.NaN(), 1, ""},
	} {
		var labels []string
		for _, m := range (ticks{}).Ticks(c.low, c.high) {
			labels = append(labels, m.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}
