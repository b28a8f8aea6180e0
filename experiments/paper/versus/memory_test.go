package versus

import (
	"context"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

// TestMemory checks that memory is held longer the later the slowest worker is, and that under loss only iSwitch's
// published frames give wrong sums.
func TestMemory(t *testing.T) {
	r, err := runMemory(context.Background(), system.All(), experiments.Options{Runs: 1})
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	blocks := r.(*result.Result).Blocks
	held, inexact := blocks[2], blocks[len(blocks)-1]
	for i, w := range waitings {
		if w.system == "ps" {
			continue
		}
		if none, late := held.Rows[0].Cells[i].Mean, held.Rows[len(held.Rows)-1].Cells[i].Mean; !(late > none) {
			t.Errorf("%s: memory × time is %g without a straggler, %g with", w.name, float64(none), float64(late))
		}
		for _, line := range inexact.Rows {
			if line.Cells[i].Mean != 0 && i != 0 {
				t.Errorf("%s, %s: %g inexact packets", line.Name, w.name, float64(line.Cells[i].Mean))
			}
		}
	}
}
