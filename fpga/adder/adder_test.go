package adder

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const top, bottom = math.MaxInt32, math.MinInt32

// sums lists, for every lane, a plain computation of the sum, which also reports whether the lane was held at a limit.
var sums = map[string]func(have, more int32) (sum int64, kept int32){
	"wrapping": func(have, more int32) (int64, int32) { return int64(have + more), have + more },
	"saturating": func(have, more int32) (int64, int32) {
		sum := int64(have) + int64(more)
		return sum, int32(min(max(sum, bottom), top))
	},
	"sticky": func(have, more int32) (int64, int32) {
		sum := int64(have) + int64(more)
		if have == top || have <= -top {
			return sum, have
		}
		return sum, int32(min(max(sum, bottom), top))
	},
}

// adders lists the adders that are compared with sums; held is 0 for adders that do not count.
var adders = map[string]func(dst, src []int32) (held uint64){
	"wrapping":   func(dst, src []int32) uint64 { AddWrapping(dst, src); return 0 },
	"saturating": AddSaturating[int32],
	"sticky":     func(dst, src []int32) uint64 { AddSticky(asWords(dst), asWords(src)); return 0 },
}

// TestIntegers checks that every adder agrees with adding lanes one by one, at every length and with many edge cases.
// Lanes that only one side has stay unchanged.
func TestIntegers(t *testing.T) {
	for name, add := range adders {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				lane := rapid.OneOf(rapid.Int32(), rapid.Int32Range(-9, 9),
					rapid.SampledFrom([]int32{top, top - 1, bottom, bottom + 1, bottom + 2}))
				if rapid.Bool().Draw(t, "tame") {
					lane = rapid.Int32Range(-1000, 1000)
				}
				dst := rapid.SliceOfN(lane, 0, 50).Draw(t, "dst")
				src := rapid.SliceOfN(lane, max(len(dst)-3, 0), len(dst)+3).Draw(t, "src")
				want, held := slices.Clone(dst), uint64(0)
				for i := range min(len(dst), len(src)) {
					var sum int64
					if sum, want[i] = sums[name](dst[i], src[i]); sum != int64(want[i]) && name == "saturating" {
						held++
					}
				}
				if got := add(dst, src); got != held || !slices.Equal(dst, want) {
					t.Fatalf("%v with %d held; want %v with %d", dst, got, want, held)
				}
			})
		})
	}
}

// TestEveryLaneSaturatesAlone checks lanes at either limit: each lane of three blocks in turn reaches a limit while the
// others do not.
func TestEveryLaneSaturatesAlone(t *testing.T) {
	for name, add := range adders {
		for i := range 3 * block {
			for _, edge := range []int32{top, bottom, bottom + 1} {
				dst, src, want := make([]int32, 3*block), make([]int32, 3*block), make([]int32, 3*block)
				for k := range dst {
					dst[k], src[k], want[k] = int32(k), 100, int32(100+k)
				}
				dst[i] = edge
				src[i] = edge / 2
				_, want[i] = sums[name](dst[i], src[i])
				if add(dst, src); !slices.Equal(dst, want) {
					t.Errorf("%s, lane %d at %d: %v", name, i, edge, dst)
				}
			}
		}
	}
}

// TestLanesSaturate checks that lanes at a limit stay there, and that sums that would exceed a limit end at it.
func TestLanesSaturate(t *testing.T) {
	for _, c := range []struct{ have, more, want int32 }{
		{1, 2, 3}, {top - 1, 1, top}, {top - 1, 2, top}, {top, -5, top}, {bottom, 5, bottom}, {bottom + 1, 5, bottom + 1},
		{bottom + 2, 5, bottom + 7},
		{-5, bottom + 4, bottom}, {-5, bottom + 5, bottom}, {-5, bottom + 6, bottom + 1}, {top - 1, 0, top - 1},
	} {
		for _, place := range []int{0, block - 1, block} {
			dst, src := make([]uint32, block+2), make([]uint32, block+2)
			dst[place], dst[block+1], src[place] = uint32(c.have), 9, uint32(c.more)
			if AddSticky(dst, src); int32(dst[place]) != c.want || dst[block+1] != 9 {
				t.Errorf("%d and %d in lane %d: %d, want %d", c.have, c.more, place, int32(dst[place]), c.want)
			}
		}
	}
}

// TestFloats checks that sums equal Go's bit for bit, except for which NaN results.
func TestFloats(t *testing.T) {
	odd := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.MaxFloat32, math.SmallestNonzeroFloat32}
	rapid.Check(t, func(t *rapid.T) {
		lane := rapid.OneOf(rapid.Float32(), rapid.SampledFrom(odd))
		dst := rapid.SliceOfN(lane, 0, 50).Draw(t, "dst")
		src := rapid.SliceOfN(lane, max(len(dst)-3, 0), len(dst)+3).Draw(t, "src")
		have, more := bits(dst), bits(src)
		for i := range min(len(dst), len(src)) {
			dst[i] += src[i]
		}
		AddFloats(have, more)
		for i, want := range bits(dst) {
			if have[i] != want && !(dst[i] != dst[i] && math.IsNaN(float64(math.Float32frombits(have[i])))) {
				t.Fatalf("lane %d is %v, want %v", i, math.Float32frombits(have[i]), dst[i])
			}
		}
	})
}

func bits(lanes []float32) []uint32 {
	out := make([]uint32, len(lanes))
	for i, v := range lanes {
		out[i] = math.Float32bits(v)
	}
	return out
}

// BenchmarkAdd adds the lanes of one frame of each system: 366 floats, 64 wrapping words, 48 saturating words, and 62
// sticky words.
func BenchmarkAdd(b *testing.B) {
	for _, c := range []struct {
		name  string
		lanes int
		add   func(dst, src []uint32)
	}{
		{"floats", 366, AddFloats}, {"wrapping", 64, AddWrapping[uint32]},
		{"saturating", 48, func(dst, src []uint32) { AddSaturating(dst, src) }}, {"sticky", 62, AddSticky},
	} {
		b.Run(fmt.Sprintf("%s/lanes=%d", c.name, c.lanes), func(b *testing.B) {
			dst, src := make([]uint32, c.lanes), make([]uint32, c.lanes)
			for b.Loop() {
				c.add(dst, src)
			}
		})
	}
}
