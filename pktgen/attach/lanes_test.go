package attach

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestLanesRoundToEven compares lanes with the rule in words: scaled, rounded to the nearest even integer, and cut to
// the range. What changes a value is counted.
func TestLanesRoundToEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]float64{1, 0.5, 1e6, 1e8, 3.7e9}).Draw(t, "scale")
		edges := rapid.SampledFrom([]float32{0, 0.5, 1.5, -2.5, 21.474836, 21.474837, -21.474838, 1e-9, 1 << 31, -1 << 31, 3e38})
		value := rapid.OneOf(edges, rapid.Float32Range(-30, 30), rapid.Float32()).Draw(t, "value")
		if value-value != 0 {
			return
		}
		var want Numbers
		v := math.RoundToEven(float64(float64(value) * scale))
		switch {
		case v > math.MaxInt32:
			v, want.Clipped = math.MaxInt32, 1
		case v < -math.MaxInt32:
			v, want.Clipped = -math.MaxInt32, 1
		case v == 0 && value != 0:
			want.Vanished = 1
		}
		var n Numbers
		got := n.appendLanes(nil, AppendFloats(nil, []float32{value}), scale)
		if int32(got[0]) != int32(v) || n != want {
			t.Errorf("%v at scale %g is lane %d with %+v, want %v with %+v", value, scale, int32(got[0]), n, v, want)
		}
	})
}

// TestOnlyFiniteValuesAreFinite checks the search for NaN and infinities in every place of a short vector.
func TestOnlyFiniteValuesAreFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for length := range 6 {
			for at := range length {
				v := []float32{math.MaxFloat32, -math.MaxFloat32, 0, -1, 5e-45, 1}[:length]
				if !allFinite(AppendFloats(nil, v)) {
					t.Errorf("%v is not taken as finite", v)
				}
				if v[at] = bad; allFinite(AppendFloats(nil, v)) {
					t.Errorf("%v is taken as finite", v)
				}
			}
		}
	}
}
