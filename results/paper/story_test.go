package paper

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results"
)

// TestVerdictStories checks the text for results that are near, far and on the other side of numbers printed in the
// first paper and in iSwitch's, with few runs and many, shortened or broken, and under other assumptions.
func TestVerdictStories(t *testing.T) {
	var b strings.Builder
	for _, f := range []float64{-1, 0.4, 0.7, 0.95, 0.999, 1, 1.004, 1.06, 1.4, 2.1} {
		ours := Ours{}
		for i, c := range ListClaims() {
			v := c.Value
			if math.IsNaN(v) {
				v = 10 * (f - 1)
			}
			m := Of(stat(v*f, math.Abs(v)*[]float64{0.001, 0.05, 0.6}[i%3]+1e-6, []int{2, 5, 40}[i%3]))
			switch i % 11 {
			case 3:
				m.Short = "two runs instead of five"
			case 5:
				m.Breaks = "a step goes the other way"
			case 7:
				m.Others = []Other{{Assumption: "under another one", Statistic: stat(v, math.Abs(v)/50+1e-6, 6),
					Judged: true}, {Assumption: "and a third", Statistic: stat(2*v, math.Abs(v)+1e-6, 6), Breaks: "it breaks"}}
			case 9:
				m = Of(single(v * f))
			}
			if i%13 != 12 {
				ours[c.ID] = m
			}
		}
		fmt.Fprintf(&b, "== %v times what was printed\n", f)
		rows := Compare(ours)
		for i := range rows {
			r := &rows[i]
			if s := SystemOf(r.ID); s != "olaf" && s != "iswitch" || i%2 > 0 {
				continue
			}
			fmt.Fprintf(&b, "%s %s %s than %v (%s), ours %.4g ± %.4g of %d: %s, %.4g %% off, expected %q: %.50s\n", r.ID,
				r.Kind, r.Side, r.Than, r.Neighbour, float64(r.Ours.Mean), float64(r.Ours.CI95), r.Ours.N, r.Verdict,
				float64(r.DeviationPct), r.Expected, r.Note)
			for _, s := range r.Sensitivity {
				fmt.Fprintf(&b, "  %s: %s\n", s.Assumption, s.Verdict)
			}
		}
		missed := 0
		for _, r := range FindMisses(rows) {
			if s := SystemOf(r.ID); s == "olaf" || s == "iswitch" {
				missed++
			}
		}
		fmt.Fprintf(&b, "%d misses\n", missed)
		again := 0
		for _, r := range JudgeAgain(rows, &results.Bench{}) {
			if s := SystemOf(r.ID); s == "olaf" || s == "iswitch" {
				again++
			}
		}
		fmt.Fprintf(&b, "%d judged anew\n", again)
	}
	golden.Equal(t, "verdicts.txt", []byte(b.String()))
}

// TestTrendStories checks series that fall, spread and separate, with missing values.
func TestTrendStories(t *testing.T) {
	var b strings.Builder
	none := results.Missing()
	for _, values := range [][][]results.Float{
		{}, {{}}, {{1}}, {{1, 2, 3}}, {{3, 2, 1}}, {{3, 2, 2}, {5, 4, 1}}, {{3, 2, 1}, {1, 2, 3}},
		{{3, none, 1}, {5, 4, none}}, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {{9, 5, 4}, {8, 5, 3}, {9, 6, 6}},
	} {
		fmt.Fprintf(&b, "%v falls %s, spread %s\n", values, told(Falls(values)), told(Spread(values)))
	}
	for _, pair := range [][2][]results.Float{{{1, 2, 3}, {1, 1, 1}}, {{1, none, 3}, {2, 2, 2}}, {{}, {}},
		{{1, 2}, {1, 2}}} {
		fmt.Fprintf(&b, "%v over %v: %s, gap %v\n", pair[0], pair[1], told(Over(pair[0], pair[1])), Gap(pair[0], pair[1]))
	}
	golden.Equal(t, "trends.txt", []byte(b.String()))
}

func told(m Measured) string {
	return fmt.Sprintf("%v SD %v CI95 %v, %v to %v of %d %s, short %q, breaks %q, others %v", m.Mean, m.SD, m.CI95,
		m.Min, m.Max, m.N, m.Reason, m.Short, m.Breaks, m.Others)
}

// TestTrendWithoutASide checks the reasons for which a trend is not judged: no neighbour was measured, or the paper prints both numbers
// alike, however many were measured.
func TestTrendWithoutASide(t *testing.T) {
	zero := results.Statistic{Mean: 0, SD: 0, CI95: 0, N: 5}
	ours := &Measured{Statistic: zero}
	for _, c := range []struct {
		beside *reference
		why    string
	}{
		{nil, "the result to compare it with was not measured"},
		{&reference{side: 1, ours: results.Statistic{Mean: results.Missing()}}, "the result to compare it with was not " +
			"measured"},
		{&reference{side: 0, ours: zero}, "the paper's number equals its neighbour's"},
	} {
		if v, why := c.beside.judgeTrend(ours); v != Differs || why != c.why {
			t.Errorf("%+v is %q because %q, want %q because %q", c.beside, v, why, Differs, c.why)
		}
	}
}

// TestEqualNumbersCountOnce checks that a row names the first row of its artefact with the same number of ours, to nine
// digits, and that arithmetic, other units and other artefacts do not count as repeats.
func TestEqualNumbersCountOnce(t *testing.T) {
	row := func(id, unit string, mean float64, basis Basis) results.PaperRow {
		return results.PaperRow{ID: id, Unit: unit, Basis: string(basis), Note: "noted", Ours: results.Statistic{Mean: results.Float(mean), SD: 1, N: 3}}
	}
	rows := []results.PaperRow{
		row("p/fig7.a", "s", 1.5, Predicted), row("p/fig7.b", "s", 1.5+1e-12, Predicted), row("p/fig7.c", "s", 1.500001, Predicted), row("p/fig7.d", "%", 1.5, Predicted),
		row("p/fig7.e", "s", 1.5, Arithmetic), row("p/fig8.a", "s", 1.5, Predicted), row("p/fig7.f", "s", 1.5, Calibrated),
	}
	markRepeats(rows)
	for i, want := range []string{"", "p/fig7.a", "", "", "", "", "p/fig7.a"} {
		if rows[i].SameAs != want {
			t.Errorf("%s is the same as %q, want %q", rows[i].ID, rows[i].SameAs, want)
		}
		if note := strings.HasPrefix(rows[i].Note, "same number as "); note != (want != "") {
			t.Errorf("the note of %s is %q", rows[i].ID, rows[i].Note)
		}
	}
}
