package sheets

import (
	"math"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/table"
)

// TestSheetOfTwinAges checks the sheet of ages beside the twin's, and that it is empty without any.
func TestSheetOfTwinAges(t *testing.T) {
	age := results.Stat{Metric: &metric.Metric{Name: "aom_cluster_ns", Unit: "ns"}, Statistic: results.Describe([]results.Float{110}, "")}
	b := &results.Bench{Rows: []results.Row{{Queue: "olaf", OutRateBPS: 3e6, Stats: results.Stats{age}}}}
	if s := twinSheet(b); len(s.Rows) != 0 {
		t.Errorf("%+v", s.Rows)
	}
	b.Rows[0].Stats[0].TwinComparison = &results.TwinComparison{Plan: 90, Twin: 100, Measured: 110}
	s := twinSheet(b)
	if len(s.Rows) != 1 || len(s.Rows[0]) != len(s.Columns) || s.Rows[0][5].Number != 110 || math.Abs(s.Rows[0][6].Number-10) > 1e-9 {
		t.Errorf("%+v", s.Rows)
	}
	for _, c := range s.Columns[3:] {
		if c.Format != table.Fixed1 {
			t.Errorf("%q is printed as %v", c.Header, c.Format)
		}
	}
	b.Rows[0].Withheld, b.Rows[0].Stats[0].TwinComparison.Measured = &results.Withheld{Runs: 1, Reason: "late"}, results.Missing()
	if c := twinSheet(b).Rows[0]; c[5].Text != "late" || c[6].Text != "late" || c[4].Number != 100 {
		t.Errorf("%+v", c)
	}
}
