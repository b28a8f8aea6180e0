package engine

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAddLanesIsTheSlowWay holds the unrolled sum against 64-bit arithmetic, at every length and with many edges.
func TestAddLanesIsTheSlowWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lane := rapid.OneOf(rapid.Int32(), rapid.SampledFrom([]int32{0, 1, -1, math.MaxInt32, math.MinInt32}))
		n := rapid.IntRange(0, 50).Draw(t, "lanes")
		dst := rapid.SliceOfN(lane, n, n).Draw(t, "dst")
		src := rapid.SliceOfN(lane, n, n+3).Draw(t, "src")
		want, saturated := make([]int32, n), uint64(0)
		for i := range want {
			sum := int64(dst[i]) + int64(src[i])
			want[i] = int32(min(max(sum, math.MinInt32), math.MaxInt32))
			if sum != int64(want[i]) {
				saturated++
			}
		}
		if got := addLanes(dst, src); got != saturated || !slices.Equal(dst, want) {
			t.Fatalf("%v with %d saturations; want %v with %d", dst, got, want, saturated)
		}
	})
}

// TestEveryLaneSaturates lets one lane after the other of two blocks of eight overflow, alone, at either end.
func TestEveryLaneSaturates(t *testing.T) {
	for i := range 16 {
		for _, edge := range []int32{math.MaxInt32, math.MinInt32} {
			dst, src := make([]int32, 16), make([]int32, 16)
			dst[i], src[i] = edge, edge
			if n := addLanes(dst, src); n != 1 || dst[i] != edge {
				t.Errorf("lane %d: %d, with %d saturations", i, dst[i], n)
			}
		}
	}
}

// TestNS3RoundsHalvesUp takes a time that ends on half a nanosecond in every digit: one bit at 1,024 bit/s.
func TestNS3RoundsHalvesUp(t *testing.T) {
	if got := ns3Time(1, 1024); got != 976_563_000 {
		t.Errorf("%d ps, want 976,562.5 ns rounded up", got)
	}
}
