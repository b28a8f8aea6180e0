package versus

import (
	"context"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

// TestMultiHop checks that both tables are complete, except for ages of single workers whose sums do not name them, and
// that FIFO's and OLAF's numbers equal those of Table 2's own network.
func TestMultiHop(t *testing.T) {
	last := [2]int{}
	r, err := runMultiHop(context.Background(), system.All(),
		experiments.Options{Runs: 1, Progress: func(done, total int) { last = [2]int{done, total} }})
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	if last[0] != last[1] || last[0] == 0 {
		t.Errorf("its progress ended with %d of %d", last[0], last[1])
	}
	table := r.(*result.Result)
	for _, b := range table.Blocks {
		for _, line := range b.Rows {
			for i, c := range line.Cells {
				nameless := strings.Contains(b.Columns[i], "async") && strings.Contains(line.Name, "worker")
				if c.Known() == nameless {
					t.Errorf("%s, %s, %s: %v", b.Name, line.Name, b.Columns[i], c)
				}
			}
		}
	}
	if loss := float64(table.Blocks[3].Rows[0].Cells[0].Mean); loss < 88 || loss > 91 {
		t.Errorf("FIFO loses %.1f %%, not as in Table 2", loss)
	}
}
