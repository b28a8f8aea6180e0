package sheets_test

import (
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// TestRealRuns checks that README and Runs show the quality of runs on real wires, and only for those.
func TestRealRuns(t *testing.T) {
	r := example.Result(3)
	columns := len(sheets.Runs(r.Runs).Columns)
	if list := sheets.Real(r.Bench); len(list) > 0 {
		t.Errorf("%q", list)
	}
	r.Bench.Rows[1].Decisions, r.Bench.Rows[1].LatenessNS = &olaf.Decisions{Checked: 9, Equal: 9}, &olaf.Quantiles{P50: 100, P99: 14_000, Max: 2_400_000}
	r.Bench.Rows[1].Withheld, r.Bench.Rows[1].BurstRate = &results.Withheld{Runs: 1, Reason: "the pacer was late"}, new(results.Describe([]results.Float{143.4e6}, ""))
	run := &r.Runs[3]
	run.Decisions, run.LatenessNS, run.BurstRate, run.Withheld = r.Bench.Rows[1].Decisions, r.Bench.Rows[1].LatenessNS, 143.4e6, "the pacer was late"
	var readme strings.Builder
	for _, row := range sheets.Readme(r).Rows {
		readme.WriteString(row[0].Text + ": " + row[1].Text + "\n")
	}
	name := r.Bench.Rows[1].Queue + " " + olaf.Rate(r.Bench.Rows[1].OutRateBPS).String()
	for _, want := range []string{
		"decisions, " + name + ": 9 of 9 decisions as the engine's\n", "lateness, " + name + ": frames left late by 100ns (p50), 14µs (p99), 2.4ms at most\n",
		"bursts, " + name + ": updates came at 143Mbps inside bursts\n", "withheld, " + name + ": ages of 1 run withheld, counts are valid: the pacer was late\n",
	} {
		if !strings.Contains(readme.String(), want) {
			t.Errorf("no %q in\n%s", want, readme.String())
		}
	}
	r.Runs[4].BurstRate = 1
	s := sheets.Runs(r.Runs)
	if s.Rows[4][10] != table.N(1) {
		t.Errorf("the least rate is %+v", s.Rows[4][10])
	}
	if len(s.Columns) != columns+7 {
		t.Fatalf("%d columns, %d before", len(s.Columns), columns)
	}
	for i, row := range s.Rows {
		if len(row) != len(s.Columns) {
			t.Errorf("run %d has %d cells of %d", i, len(row), len(s.Columns))
		}
	}
	got := s.Rows[3][5:12]
	for i, want := range []table.Cell{table.I(9), table.I(9), table.I(100), table.I(14_000), table.I(2_400_000), table.N(143.4e6), table.S("the pacer was late")} {
		if got[i] != want {
			t.Errorf("%s: %+v, want %+v", s.Columns[5+i].Header, got[i], want)
		}
	}
	for i, want := range []table.Format{table.Integer, table.Integer, table.Integer, table.Integer, table.Integer, table.General, table.Text} {
		if c := s.Columns[5+i]; c.Format != want || c.Format != table.Text && s.Rows[0][5+i].Kind != table.Empty {
			t.Errorf("%s has format %d, and of a run that was not on wires %+v", c.Header, c.Format, s.Rows[0][5+i])
		}
	}
}
