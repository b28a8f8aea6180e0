package olaf

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

// TestCycles checks that two read ports cost frames of whole beats nothing, and that one affects only merges.
func TestCycles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	report, err := runCycles(t.Context(), system.All(), experiments.Options{Runs: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	table := report.(*result.Result)
	rows := map[string][]float64{}
	for _, line := range table.Blocks[0].Rows {
		for i := range line.Cells {
			rows[line.Name] = append(rows[line.Name], float64(line.Cells[i].Mean))
		}
	}
	ideal, two, one := rows["ideal"], rows["measured"], rows["measured-shared"]
	if !slices.Equal(ideal, two) {
		t.Errorf("two ports: %v; nothing: %v", two, ideal)
	}
	if !slices.Equal(one[:2], two[:2]) {
		t.Errorf("FIFO with one port: %v; with two: %v", one[:2], two[:2])
	}
	if one[2] >= two[2] || one[4] >= two[4] {
		t.Errorf("one port delivers %v, two %v", one, two)
	}
	if len(table.Statements) < 10 || len(table.Blocks) != 9 {
		t.Errorf("%d statements, %d blocks", len(table.Statements), len(table.Blocks))
	}
}
