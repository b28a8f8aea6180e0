package pace

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf"
)

// TestGrid checks that in a grid filled many times over, instants stay equidistant from the start and returned elements
// do not change.
func TestGrid(t *testing.T) {
	const end, limit = olaf.Time(1 << 20), 8
	g := NewGrid[olaf.Time](end)
	var handed, then []olaf.Time
	for g.Next() < end {
		g.Add(g.Next(), limit)
		if len(g.Instants) >= limit {
			t.Fatalf("%d instants of %d at most", len(g.Instants), limit)
		}
		for i, at := range g.Instants {
			if i > 0 && at != olaf.Time(i)*g.Instants[1] {
				t.Fatalf("%v", g.Instants)
			}
		}
		if !slices.Equal(handed, then) {
			t.Fatalf("what was handed out is %v, and was %v", handed, then)
		}
		handed = g.Instants
		then = slices.Clone(handed)
	}
	if len(g.Instants) < limit/2 || g.Next() < end {
		t.Errorf("%d instants, the next at %v", len(g.Instants), g.Next())
	}
}
