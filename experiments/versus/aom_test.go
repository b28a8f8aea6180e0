package versus

import (
	"context"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
)

// What was expected before the first run holds with few seeds as well, and the same seeds give the same ages.
func TestAoM(t *testing.T) {
	report, err := runAoM(context.Background(), system.All(), experiments.Options{Runs: 2})
	if err != nil {
		t.Fatal(err)
	}
	table := report.(*experiments.Table)
	said := 0
	for _, s := range table.Statements[:2] {
		if slices.Contains([]string{"it is so"}, s[max(0, len(s)-len("it is so")):]) {
			said++
		}
	}
	if said != 2 {
		t.Errorf("said %q", table.Statements[:2])
	}
	for i := range table.Blocks {
		b := &table.Blocks[i]
		for _, line := range b.Rows {
			if len(line.Cells) != len(b.Columns) {
				t.Errorf("%s, %s: %d cells in %d columns", b.Name, line.Name, len(line.Cells), len(b.Columns))
			}
			for k := range line.Cells {
				if !line.Cells[k].Known() {
					t.Errorf("%s, %s, %s: %s", b.Name, line.Name, b.Columns[k], line.Cells[k].Reason)
				}
			}
		}
	}
	again, err := runAoM(context.Background(), system.All(), experiments.Options{Runs: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, first := table.Table()
	_, second := again.Table()
	if !slices.EqualFunc(first, second, slices.Equal) {
		t.Error("the same seeds gave other ages")
	}
}

// Both loads offer what they say, in order of time.
func TestLoads(t *testing.T) {
	for _, load := range Loads() {
		all, err := load.arrivals(1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(all, func(a, b arrival) int { return int(min(1, max(-1, a.at-b.at))) }) {
			t.Errorf("%s is out of order", load.Name)
		}
		bits := float64(len(all)) * float64(frame+overhead) * 8
		rate := bits / (float64(all[len(all)-1].at) / float64(olaf.Second))
		if load.Name == "poisson" && (rate < 0.9*float64(offered) || rate > 1.02*float64(offered)) {
			t.Errorf("%s offers %g bit/s", load.Name, rate)
		}
	}
}
