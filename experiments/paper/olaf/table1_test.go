package olaf

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

func measured(t *testing.T, s bench.Spec) *bench.Measurement {
	t.Helper()
	report, err := bench.MeasureSpec(t.Context(), s, bench.Options{ComparePaper: Experiments(system.All()).CompareBench})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestTable1 checks the numbers that README promises: FIFO received within 2.5 %, Olaf received and aggregated within 8
// %, lost within 10 %, reductions within 6 %.
func TestTable1(t *testing.T) {
	report := measured(t, Table1(system.All()))
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	limits := map[string]float64{"received": 8, "aggregated": 8, "lost_pct": 10, "reduction": 6}
	checked := 0
	for _, row := range report.Paper() {
		limit, ok := limits[row.Column]
		if !ok {
			continue
		}
		if strings.HasPrefix(row.Row, "fifo") {
			limit = 2.5
		}
		checked++
		if off := math.Abs(float64(row.DeviationPct)); !(off <= limit) {
			t.Errorf("%s: ours %.1f, paper %.1f: %.1f %% off, at most %.1f %% promised", row.ID, row.Ours.Mean, row.Published, off, limit)
		}
		if row.Ours.N != 30 || !row.Ours.CI95.Known() {
			t.Errorf("%s has no 95 %% interval over 30 runs", row.ID)
		}
	}
	if checked != 12 {
		t.Errorf("%d published numbers compared, want 12", checked)
	}
	if err := experiments.CheckExpected(report.Paper()); err != nil {
		t.Error(err)
	}
	report.Bench.Paper[0].Verdict = string(paper.Near) // a match is expected
	if err := experiments.CheckExpected(report.Paper()); !errors.Is(err, experiments.ErrMissed) || !strings.HasSuffix(err.Error(), ": "+report.Bench.Paper[0].ID) {
		t.Errorf("a verdict below what is expected: %v", err)
	}
	literal := report.Bench.Comparisons[0].AoMReduction.ClusterCluster.Mean
	if literal > 50 {
		t.Errorf("the literal reading gives %.0f %%; it is known to stay far below the paper's 69 %%", literal)
	}
}

// TestFig6Order checks that the distribution of aggregations moves right as the output shrinks.
func TestFig6Order(t *testing.T) {
	s := Fig6(system.All())
	s.Runs = 6
	rows := measured(t, s).Bench.Rows
	share := func(r *results.Row, n int) float64 {
		p := 1.0
		if n < len(r.CDF) {
			p = float64(r.CDF[n].P)
		}
		return p
	}
	for i := 1; i < len(rows); i++ {
		for n := range 20 {
			if slow, fast := share(&rows[i], n), share(&rows[i-1], n); slow > fast {
				t.Errorf("at most %d aggregations: %.3f at %d bps, %.3f at %d bps", n, slow, rows[i].OutRateBPS, fast, rows[i-1].OutRateBPS)
			}
		}
	}
}

// TestTwoTwinsEqualOne checks that the generator of one twin and the queue of another, connected by a cable, give the
// rows of a bench to the last digit.
func TestTwoTwinsEqualOne(t *testing.T) {
	rows := func(generator string) string {
		report, err := bench.MeasureSpec(t.Context(), Table1(system.All()), bench.Options{Access: testbed.Access{Generator: generator}})
		if err != nil {
			t.Fatal(err)
		}
		if at := report.Outcome.Device.Address; strings.Contains(at, "generator of twin:") != (generator != "") {
			t.Errorf("with the generator %q, the device is %q", generator, at)
		}
		text, err := json.Marshal(report.Bench.Rows)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if d := cmp.Diff(rows(""), rows("twin:")); d != "" {
		t.Errorf("Table 1 on one twin (-) and on two that are joined (+):\n%s", d)
	}
}
