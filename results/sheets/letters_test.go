package sheets

import (
	"testing"

	"github.com/olafctl/olaf/results"
)

// TestColumnNames checks column names beyond Z, with two and three letters.
func TestColumnNames(t *testing.T) {
	for column, want := range map[int]string{0: "A", 1: "B", 25: "Z", 26: "AA", 27: "AB", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA", 703: "AAB"} {
		if have := letters(column); have != want {
			t.Errorf("column %d is %s, want %s", column, have, want)
		}
	}
}

// TestFormulasGiveTheirNumbers checks that a cell has a formula only if the formula gives its number, to nine digits,
// over as many runs and with the same minimum and maximum.
func TestFormulasGiveTheirNumbers(t *testing.T) {
	values := []float64{1, 2, 3}
	for _, c := range []struct {
		n              int
		mean, min, max results.Float
		want           bool
	}{
		{3, 2, 1, 3, true}, {3, 2 * (1 + 0.995e-9), 1, 3, true}, {3, 2 * (1 - 0.995e-9), 1, 3, true}, {3, 2 * (1 + 1.005e-9), 1, 3, false}, {3, 2 * (1 - 1.005e-9), 1, 3, false},
		{2, 2, 1, 3, false}, {3, 2, 1.5, 3, false}, {3, 2, 1, 3.5, false},
	} {
		if have := computes(values, &results.Statistic{N: c.n, Mean: c.mean, Min: c.min, Max: c.max}); have != c.want {
			t.Errorf("%+v: %t", c, have)
		}
	}
	if computes(nil, &results.Statistic{}) {
		t.Error("nothing is computed of nothing")
	}
}
