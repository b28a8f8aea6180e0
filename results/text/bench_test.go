package text

import (
	"fmt"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results"
)

func TestRounded(t *testing.T) {
	for _, c := range []struct {
		mean, half results.Float
		want       string
	}{
		{7000, 0, "7000 ± 0"}, {0.51, 0, "0.5100 ± 0"}, {45.9, 5.4003, "45.9 ± 5.4"}, {-8.68e-6, 4.7e-5, "−0.000009 ± 0.000047"},
		{907.678, 153.04, "908 ± 153"}, {89.4000123, 0.00033, "89.400 ± 0.000"}, {0, 1.25, "0.0 ± 1.2"}, {1, 0.0021, "1.0000 ± 0.0021"},
		{42, results.Missing(), "42"}, {4.25, results.Missing(), "4.250"}, {results.Missing(), results.Missing(), "–"},
	} {
		if got := Rounded(&results.Statistic{Mean: c.mean, CI95: c.half, N: 2}, 1); got != c.want {
			t.Errorf("%v ± %v prints as %q, want %q", c.mean, c.half, got, c.want)
		}
	}
}

// TestPaperTellsItsTolerance holds that a verdict says how far it reaches, where there is a number to judge.
func TestPaperTellsItsTolerance(t *testing.T) {
	ours := results.Describe([]results.Float{4.6, 4.6}, "")
	rows := []results.PaperRow{
		{Verdict: "reproduced", Ours: ours, Published: 4.5, TolerancePct: 100, Note: "packets or constituents"},
		{Verdict: "reproduced", Ours: ours, Published: 4.5, TolerancePct: 5},
		{Verdict: "not testable here", Ours: results.Describe(nil, "not measured"), Published: 1, TolerancePct: 5, Note: "measured by fig6"},
	}
	var b strings.Builder
	if err := Paper(&b, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[1] counts as reproduced within ±100 %: packets or constituents\n", "[2] counts as reproduced within ±5 %\n", "[3] measured by fig6\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestInvalidRunsAreToldOnce holds that many runs with one fault do not fill the screen.
func TestInvalidRunsAreToldOnce(t *testing.T) {
	row := results.Row{Queue: "olaf", OutRateBPS: 40e9, InvalidRuns: 300}
	for i := range row.InvalidRuns {
		row.Reasons = append(row.Reasons, fmt.Sprintf("run %d: no frame came back", i))
	}
	b := &results.Bench{Rows: []results.Row{row, {Queue: "fifo", OutRateBPS: 40e9, Runs: 300, Valid: true}}}
	const invalid = "INVALID: 300 of 600 runs are left out:\n  olaf 40Gbps, runs 0, 1, 2 and 297 more: no frame came back\n"
	for _, partial := range []bool{false, true} {
		b.Partial = partial
		var out strings.Builder
		if err := Bench(&out, b); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), invalid) || strings.Contains(out.String(), "PARTIAL") != partial {
			t.Error(out.String())
		}
	}
}
