package realtime

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestQuantiles checks the histogram against the sorted durations.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var h histogram
		all := make([]int64, 1+rng.IntN(500))
		for i := range all {
			all[i] = rng.Int64() >> rng.IntN(63)
			h.add(all[i])
		}
		slices.Sort(all)
		for _, share := range []float64{0.5, 0.9, 0.99, 1} {
			want := all[max(int(share*float64(len(all)))-1, 0)]
			got := h.quantile(share)
			if got < want || float64(got) > float64(want)*(1+1.0/16)+1 {
				t.Fatalf("%v of %d: %d, want %d", share, len(all), got, want)
			}
		}
		if h.max != all[len(all)-1] {
			t.Fatalf("max %d of %v", h.max, all)
		}
	}
}

// TestWithheldAges checks when ages are reported and when they are withheld.
func TestWithheldAges(t *testing.T) {
	for _, c := range []struct {
		name   string
		late   []int64 // lateness of frames of 1,000,000 ns each; other frames are on time
		frames int
		says   string
	}{
		{"nothing", nil, 0, ""},
		{"in time", nil, 1000, ""},
		{"a quarter is not too late", slices.Repeat([]int64{250_000}, 1000), 1000, ""},
		{"the p99 is late", slices.Repeat([]int64{270_000}, 20), 1000, "late: one frame in a hundred by 270µs"},
		{"few stalls", []int64{5_000_000}, 1000, ""},
		{"one long stall", []int64{21_000_000}, 1000, "stalled: for 21ms in total, which is more than 2 % of the 1s"},
	} {
		var p pacing
		for i := range c.frames {
			late := int64(0)
			if i < len(c.late) {
				late = c.late[i]
			}
			due := 7e9 + int64(i)*1_000_000
			p.recordSent(1_000_000, due, due+late)
		}
		told := p.report(6e9)
		if c.frames > 0 && told.DueNS != 1e9+float64(c.frames-1)*500_000 {
			t.Errorf("%s: due at %v on the average", c.name, told.DueNS)
		}
		area := 0.0
		for _, late := range c.late {
			if late > 250_000 {
				area += float64(late) * float64(late) / 2
			}
		}
		if told.StallAreaNS2 != area {
			t.Errorf("%s: an area of %v, want %v", c.name, told.StallAreaNS2, area)
		}
		if got := told.Withheld; (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
