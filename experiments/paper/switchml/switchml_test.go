package switchml

import (
	"context"
	"math"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

// TestPool checks that a pool's speed is its slots per round trip, up to the line's.
func TestPool(t *testing.T) {
	r, err := runPool(context.Background(), system.All(), &experiments.Options{})
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	for _, b := range r.(*result.Result).Blocks {
		for _, line := range b.Rows {
			if off := float64(line.Cells[2].Mean); math.IsNaN(off) || math.Abs(off) > 1 {
				t.Errorf("%s, %s: off by %g %%", b.Name, line.Name, off)
			}
		}
	}
}
