package text

import (
	"fmt"
	"math"
	"regexp"
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
		{907.678, 153.04, "910 ± 150"}, {89.4000123, 0.00033, "89.40 ± 0.00"}, {624.602893, 0.000012, "624.6 ± 0.0"}, {1, 0.00000066, "1.000 ± 0.000"}, {1e6, 0.66, "1000000 ± 1"}, {624.602893, 0.012, "624.60 ± 0.01"}, {1028.41, 1.23, "1028.4 ± 1.2"}, {123456, 0.3, "123456 ± 0"}, {-0.000624602893, 1e-12, "−0.0006246 ± 0.0000000"}, {0, 1.25, "0.0 ± 1.2"},
		{8.302, 0.0996, "8.30 ± 0.10"}, {9067, 1400, "9100 ± 1400"}, {0.0004413, 0.001, "0.0004 ± 0.0010"}, {54.814814, 1e-14, "54.81 ± 0"}, {-0.0001, 0.04, "0.000 ± 0.040"},
		{1e9 + 0.5, 12345678, "1000000000 ± 12000000"}, {1, 0.0021, "1.0000 ± 0.0021"},
		{42, results.Missing(), "42"}, {4.25, results.Missing(), "4.250"}, {results.Missing(), results.Missing(), "–"},
	} {
		if got := FormatRounded(&results.Statistic{Mean: c.mean, CI95: c.half, N: 2}, 1); got != c.want {
			t.Errorf("%v ± %v prints as %q, want %q", c.mean, c.half, got, c.want)
		}
	}
	// Arithmetic has an interval of 0, but is not a sample.
	if got := FormatRounded(&results.Statistic{Mean: 78.016, CI95: 0, N: 1}, 1); got != "78.02" {
		t.Errorf("one number prints as %q", got)
	}
}

// TestPaperLineHasBasisAndVerdict checks that a line has our number's basis and the paper's claim, and below it the
// number under other assumptions.
func TestPaperLineHasBasisAndVerdict(t *testing.T) {
	ours := results.Describe([]results.Float{4.6, 4.6}, "")
	missing := results.Missing()
	rows := []results.PaperRow{
		{ID: "olaf/table2.a.b", Basis: "calibrated", Verdict: "near", Ours: ours, Published: 4.5, Than: missing, DeviationPct: 2.2, Note: "by packets", Sensitivity: []results.Sensitivity{
			{Assumption: "by updates", Ours: ours, Verdict: "trend only"}, {Assumption: "per worker", Ours: ours}, {Assumption: "by bytes", Ours: ours, Verdict: "near"}}},
		{ID: "olaf/fig7.a.b", Basis: "predicted", Verdict: "opposite", Side: "above", Ours: ours, Published: missing, Than: 1, DeviationPct: missing},
		{ID: "olaf/fig10.a.b", Basis: "predicted", Verdict: "bound met", Side: "below", Ours: ours, Published: 40, Than: missing, DeviationPct: missing, Note: "by packets"},
	}
	var b strings.Builder
	page := NewPage(&b, View{Width: 120, Explain: true})
	if page.Paper(rows); page.Err() != nil {
		t.Fatal(page.Err())
	}
	squeezed := regexp.MustCompile(" +").ReplaceAllString(b.String(), " ")
	for _, want := range []string{"\nolaf/table2; calibrated\n", "4.600 ± 0 4.5 +2.2 % near [1]\n", " by updates 4.600 ± 0 trend only\n", " per worker 4.600 ± 0\n", " by bytes 4.600 ± 0 near\n",
		"\nolaf/fig7; predicted\n", "> 1 – opposite\n", "< 40 – bound met [1]\n", "\n[1] by packets\n"} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, squeezed)
		}
	}
	b.Reset()
	page = NewPage(&b, View{Width: 120})
	if page.Paper(rows); page.Err() != nil || strings.Contains(b.String(), "by bytes") || !strings.Contains(b.String(), "per worker") {
		t.Errorf("an assumption that changes nothing is told, or one without a verdict is not: %v\n%s", page.Err(), b.String())
	}
}

// TestRepeatedFaultsPrintOnce checks that many runs with one fault do not fill the screen.
func TestRepeatedFaultsPrintOnce(t *testing.T) {
	row := results.Row{Queue: "olaf", OutRateBPS: 40e9, InvalidRuns: 300}
	for i := range row.InvalidRuns {
		row.Reasons = append(row.Reasons, fmt.Sprintf("run %d: no frame came back", i))
	}
	b := &results.Bench{Rows: []results.Row{row, {Queue: "fifo", OutRateBPS: 40e9, Runs: 300, Valid: true}}}
	const invalid = "INVALID: 300 of 600 runs are excluded:\n  olaf 40Gbps, runs 0, 1, 2 and 297 more: no frame came back\n"
	for _, partial := range []bool{false, true} {
		b.Partial = partial
		var out strings.Builder
		if err := Bench(&out, View{}, b); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), invalid) || strings.Contains(out.String(), "PARTIAL") != partial {
			t.Error(out.String())
		}
	}
}

// TestScaleOf checks that a column has the unit of its largest known number.
func TestScaleOf(t *testing.T) {
	of := func(mean float64) *results.Statistic { return &results.Statistic{N: 1, Mean: results.Float(mean)} }
	for _, c := range []struct {
		unit   string
		column []*results.Statistic
		by     float64
		want   string
	}{
		{"ns", []*results.Statistic{of(999), of(-1000), new(results.Statistic)}, 1e-3, "µs"}, {"ns", []*results.Statistic{of(1e6)}, 1e-6, "ms"}, {"ns", []*results.Statistic{of(999)}, 1, "ns"},
		{"bit/s", []*results.Statistic{of(33105378), of(5)}, 1e-6, "Mbit/s"}, {"bit/s", []*results.Statistic{of(1e9)}, 1e-9, "Gbit/s"}, {"bit/s", []*results.Statistic{of(1e3)}, 1e-3, "kbit/s"},
		{"frames", []*results.Statistic{of(1e12)}, 1, "frames"}, {"ns", nil, 1, "ns"},
	} {
		if by, unit := ScaleOf(c.unit, c.column...); unit != c.want || math.Abs(by/c.by-1) > 1e-12 {
			t.Errorf("%s: times %g in %s, want %g in %s", c.unit, by, unit, c.by, c.want)
		}
	}
}
