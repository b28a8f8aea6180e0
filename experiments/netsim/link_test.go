package netsim

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"pgregory.net/rapid"
)

// TestLinkOrder checks that a link returns its frames and their contributors in order, however its rings wrap and grow.
func TestLinkOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l link
		var want [][]olaf.Contributor
		next := uint32(0)
		for step := range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(want) > 0 && rapid.IntRange(0, 2).Draw(t, "drop") == 0 {
				l.dropFirst()
				want = want[1:]
			} else {
				var inside []olaf.Contributor
				for range rapid.IntRange(0, 9).Draw(t, "inside") {
					inside = append(inside, olaf.Contributor{Seq: next})
					next++
				}
				l.pushFrame(inside).at = int64(step)
				if rapid.IntRange(0, 9).Draw(t, "lose") == 0 {
					f := l.at(l.len() - 1)
					f.inside, f.place, inside = 0, lost, nil
				}
				want = append(want, inside)
			}
			if l.len() != len(want) {
				t.Fatalf("step %d: %d frames, want %d", step, l.len(), len(want))
			}
			for i, w := range want {
				if got := l.contributorsOf(l.at(i)); !slices.Equal(got, w) {
					t.Fatalf("step %d: frame %d holds %v, want %v", step, i, got, w)
				}
			}
		}
	})
}
