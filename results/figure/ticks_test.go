package figure

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1.03, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{0, 77.7, "0 20 40 60"},
		{0, 2650, "0 500 1000 1500 2000 2500"},
		{0, 16700, "0 5000 10000 15000"},
		{-3, 3, "-3 -2 -1 0 1 2 3"},
		{0.0012, 0.0041, "0.0015 0.0020 0.0025 0.0030 0.0035 0.0040"},
		{5, 5, ""},
		{0, math.Inf(1), ""},
		{math.NaN(), 1, ""},
	} {
		var labels []string
		for _, m := range (ticks{1}).Ticks(c.low, c.high) {
			labels = append(labels, m.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// TestLongNumbersOfNanoseconds checks that long times are printed in the unit in which they have at most five digits.
func TestLongNumbersOfNanoseconds(t *testing.T) {
	for _, c := range []struct {
		title string
		high  float64
		want  string
		label string
	}{
		{"AoM [ns]", 9999, "AoM [ns]", "8000"}, {"AoM [ns]", 4e5, "AoM [µs]", "400"}, {"AoM [ns]", 4e8, "AoM [ms]",
			"400"}, {"time [ns]", 3e10, "time [s]", "30"},
		{"updates", 4e8, "updates", "400000000"},
	} {
		axis := plot.New().Y
		axis.Label.Text, axis.Max, axis.Tick.Marker = c.title, c.high, ticks{1}
		inUnits(&axis)
		marks := axis.Tick.Marker.Ticks(0, c.high)
		last := marks[len(marks)-1]
		if axis.Label.Text != c.want || last.Label != c.label || last.Value > c.high*(1+1e-9) || last.Value < 0.8*c.high {
			t.Errorf("%s to %v: %s, last mark %+v", c.title, c.high, axis.Label.Text, last)
		}
	}
}
