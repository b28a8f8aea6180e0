package sheets_test

import (
	"strings"
	"testing"

	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// formulas counts the formulas of a sheet and returns the first.
func formulas(b *table.Book, name string) (n int, first string) {
	for _, s := range b.Sheets {
		if s.Name != name {
			continue
		}
		for _, row := range s.Rows {
			for _, v := range row {
				if v.Formula != "" {
					if n++; n == 1 {
						first = v.Formula
					}
				}
			}
		}
	}
	return n, first
}

// TestStatisticsAreComputedFromRuns checks that formulas leave out invalid runs, that a number without matching runs
// has none, and that the summary refers to the statistics.
func TestStatisticsAreComputedFromRuns(t *testing.T) {
	r := example.Result(4)
	all, first := formulas(sheets.Book(r), "Statistics")
	if all < 200 || first != "AVERAGE(Runs!F2:F5)" {
		t.Errorf("%d formulas, %s", all, first)
	}
	if n, first := formulas(sheets.Book(r), "Summary"); n < 20 || !strings.HasPrefix(first, "Statistics!F") && !strings.HasPrefix(first, "100*(") {
		t.Errorf("%d formulas in the summary, %s", n, first)
	}
	r.Bench.Rows[0].Stats[0].Mean *= 1.001
	if n, _ := formulas(sheets.Book(r), "Statistics"); n != all-6 && n != all-5 {
		t.Errorf("%d formulas, %d where a number was changed", all, n)
	}
	r = example.Result(4)
	r.Runs[1].Invalid = []string{"left out"}
	r.Bench.Rows[0].Stats[0].N = 3 // for three equal runs
	if _, first := formulas(sheets.Book(r), "Statistics"); first != "AVERAGE(Runs!F2:F2,Runs!F4:F5)" {
		t.Errorf("with a run left out: %s", first)
	}
}
