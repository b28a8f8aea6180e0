package engine

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
)

// TestActivity checks that the queue status counts the clusters that the port saw recently.
func TestActivity(t *testing.T) {
	a := NewActivity(100, 4)
	for _, step := range []struct {
		at      int64
		cluster olaf.ClusterID
		want    uint32
	}{{0, 0, 1}, {10, 0, 1}, {20, 1, 2}, {110, 0, 2}, {199, 0, 2}, {200, 2, 2}, {250, 0, 2}, {320, 3, 3}, {1000, 1, 1}} {
		a.Record(step.at, step.cluster, 1)
		if got := a.Count(step.at); got != step.want {
			t.Errorf("at %d after cluster %d: %d active, want %d", step.at, step.cluster, got, step.want)
		}
	}
	if got := a.Count(5000); got != 0 {
		t.Errorf("%d active after a long silence", got)
	}
}

// TestActivityAgainstAList compares a port's count of recent clusters, and the weight of each, with a count from a
// complete list.
func TestActivityAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 100
		a := NewActivity(window, 5)
		weight := []uint32{1, 2, 7, 10, 300}
		seen := map[olaf.ClusterID]int64{}
		at := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at += rapid.SampledFrom([]int64{0, 1, 30, 99, 100, 101, 199, 200, 250}).Draw(t, "gap")
			if rapid.Bool().Draw(t, "sees") {
				c := olaf.ClusterID(rapid.IntRange(0, 4).Draw(t, "cluster"))
				a.Record(at, c, weight[c])
				seen[c] = at
			}
			want := uint32(0)
			for c, last := range seen {
				if last/window >= at/window-1 {
					want += weight[c]
				}
			}
			if got := a.Count(at); got != want {
				t.Fatalf("at %d: %d, want %d of %v", at, got, want, seen)
			}
		}
	})
}
