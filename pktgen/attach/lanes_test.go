package attach

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLanesRoundToEven compares lanes with the documented rule: scaled, rounded to the nearest even integer, and
// clipped to the range. It checks that values that change are counted.
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
		at, after := rapid.IntRange(0, 9).Draw(t, "at"), rapid.IntRange(0, 9).Draw(t, "after") // zeros around it
		vector := make([]float32, at+1+after)
		vector[at] = value
		var n Numbers
		got := n.appendLanes(nil, AppendFloats(nil, vector), scale)
		if int32(got[at]) != int32(v) || n != want {
			t.Errorf("%v at scale %g is lane %d with %+v, want %v with %+v", value, scale, int32(got[at]), n, v, want)
		}
	})
}

// TestValuesAreQuotients checks that values equal lanes divided by the scale, and that lanes at an end of the range are
// counted.
func TestValuesAreQuotients(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]float64{1, 0.5, 1e6, 1e8, 3.7e9}).Draw(t, "scale")
		ends := rapid.SampledFrom([]int32{0, math.MaxInt32, math.MaxInt32 - 1, -math.MaxInt32, 1 - math.MaxInt32, math.MinInt32})
		lanes := rapid.SliceOf(rapid.OneOf(rapid.Int32(), ends)).Draw(t, "lanes")
		words, want := []uint32{}, []float32{}
		var counted, n Numbers
		for _, v := range lanes {
			words, want = append(words, uint32(v)), append(want, float32(float64(v)/scale))
			if v == math.MaxInt32 || v <= -math.MaxInt32 {
				counted.Saturated++
			}
		}
		got, err := Floats(n.appendValues(nil, words, scale))
		if err != nil || !slices.Equal(got, want) || n != counted {
			t.Errorf("lanes %d at scale %g are %v with %+v, want %v with %+v", lanes, scale, got, n, want, counted)
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
