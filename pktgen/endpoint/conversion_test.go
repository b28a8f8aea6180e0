package endpoint

import (
	"math"
	"testing"
)

// TestChangedValuesAreCounted checks the counts of values that conversions clip or make 0, and of values in a sum at
// the end of the range.
func TestChangedValuesAreCounted(t *testing.T) {
	words := func(values ...float32) (w []uint32) {
		for _, v := range values {
			w = append(w, math.Float32bits(v))
		}
		return w
	}
	own, other := words(1, 30, -30, 1e-9, 0, 1e-5, 0, 0), words(0, 0, 1000, 0, 0, 0, 0, 0)
	for name, c := range map[string]struct {
		conversion        Conversion
		clipped, vanished int
		saturated         int // of the sums 21.48, −21.48 and 1
	}{
		"floats":                   {Conversion{}, 0, 0, 0},
		"a scale of 1e8":           {Conversion{Fixed: Fixed{Scale: 1e8}}, 2, 1, 2},
		"a scale of 1e8, wrapping": {Conversion{Fixed: Fixed{Scale: 1e8}, Wrapping: true}, 2, 1, 0},
		"ATP":                      {Conversion{Fixed: Fixed{Scale: 1e6}, Escapes: true}, 0, 1, 0},
		"ATP with a scale of 1":    {Conversion{Fixed: Fixed{Scale: 1}, Escapes: true}, 0, 2, 0},
		"a scale for every packet": {Conversion{Block: true}, 0, 1, 0},
	} {
		clipped, vanished := c.conversion.CountChanged(0, [][]uint32{own, other})
		if clipped != c.clipped || vanished != c.vanished {
			t.Errorf("%s: %d clipped and %d vanished, want %d and %d", name, clipped, vanished, c.clipped, c.vanished)
		}
		if got := c.conversion.CountSaturated(words(21.48, -21.48, 1)); got != c.saturated {
			t.Errorf("%s: %d saturated, want %d", name, got, c.saturated)
		}
	}
	if escapes := (Conversion{Fixed: Fixed{Scale: 1}, Escapes: true}); !escapes.IsExact() {
		if clipped, vanished := escapes.CountChanged(1, [][]uint32{own, other}); clipped+vanished != 0 {
			t.Errorf("a packet that travels as float32 has %d clipped and %d vanished", clipped, vanished)
		}
	}
}
