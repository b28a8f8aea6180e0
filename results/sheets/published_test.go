package sheets_test

import (
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

func over(values ...results.Float) results.Statistic { return results.Describe(values, "none") }

// TestPairsWithoutSpeedupAreOmitted checks that a pair of queues without a speed-up is left out.
func TestPairsWithoutSpeedupAreOmitted(t *testing.T) {
	of := func(queue string, rate int64, values ...results.Float) results.Comparison {
		return results.Comparison{Queue: queue, Versus: "fifo", OutRateBPS: rate, Speedup: over(values...)}
	}
	s := sheets.Speedup(&results.Bench{Comparisons: []results.Comparison{of("olaf", 2e9, 3, 5), of("taildrop", 1e9), of("olaf", 1e9), of("olaf", 5e8, 1, 2)}})
	if len(s.Columns) != 3 || len(s.Rows) != 2 || s.Rows[0][0] != table.N(0.5) || s.Rows[0][1] != table.N(1.5) || s.Rows[1][0] != table.N(2) || s.Rows[1][1] != table.N(4) {
		t.Errorf("%+v, %v", s.Columns, s.Rows)
	}
}

// TestPublishedPanels checks that numbers in one column share a panel, that numbers under other assumptions are next to
// the number with a verdict, and that a bound is not drawn as a point.
func TestPublishedPanels(t *testing.T) {
	s := sheets.PublishedSheet(&results.Bench{Paper: []results.PaperRow{
		{Row: "fifo", Column: "lost_pct", Unit: "%", Kind: "value", Published: 55, Ours: over(54, 55, 56)},
		{Row: "olaf", Column: "lost_pct", Unit: "%", Published: 11, Ours: over(10, 11)}, // from a result before kinds existed
		{Row: "not measured", Column: "lost_pct", Unit: "%", Kind: "value", Published: 12, Ours: over()},
		{Row: "40G", Column: "reduction", Unit: "%", Kind: "value", Published: 69, Ours: over(68, 69, 70), Sensitivity: []results.Sensitivity{{Assumption: "both per cluster", Ours: over(33, 34, 35)}}},
		{Row: "20G", Column: "reduction", Unit: "%", Kind: "value", Published: 60, Ours: over(58, 59, 60)},
		{Row: "fifo", Column: "s1", Unit: "ms", Kind: "bound", Published: 2900, Ours: over(7000, 7001, 7002)},
		{Row: "fifo", Column: "falls", Kind: "trend", Published: results.Missing(), Ours: over(1, 2, 3)},
	}})
	if len(s.Charts) != 2 || s.Charts[0].YTitle != "lost [%]" || s.Charts[0].Title != "Lost" || len(s.Rows) != 4 {
		t.Fatalf("%+v, %d rows", s.Charts, len(s.Rows))
	}
	lost, reduction := s.Charts[0].Series, s.Charts[1].Series
	if len(lost) != 1 || lost[0].Name != "ours" || len(reduction) != 2 || reduction[0].Name != "ours, as judged" || reduction[1].Name != "both per cluster" || reduction[1].PaperColumn != 0 {
		t.Fatalf("%+v %+v", lost, reduction)
	}
	at := func(row, column int) table.Cell { return s.Rows[row][column] }
	if at(0, lost[0].Column) != table.N(55) || at(0, lost[0].PaperColumn) != table.N(55) || at(2, reduction[0].PaperColumn) != table.N(69) || at(2, reduction[1].Column) != table.N(34) {
		t.Errorf("%v", s.Rows)
	}
	if at(0, lost[0].ErrorColumn).Kind != table.Number || at(1, lost[0].ErrorColumn).Kind != table.Empty {
		t.Errorf("intervals of three and of two runs: %v and %v", at(0, lost[0].ErrorColumn), at(1, lost[0].ErrorColumn))
	}
	for i, row := range s.Rows {
		if len(row) != len(s.Columns) {
			t.Errorf("row %d has %d cells for %d columns", i, len(row), len(s.Columns))
		}
	}
}
