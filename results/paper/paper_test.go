package paper

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// stat is a result of runs: mean, half-width and number. The spread is the one that gives such a half-width.
func stat(mean, half float64, n int) results.Statistic {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
	sd := half * math.Sqrt(float64(n)) / t.Quantile(0.975)
	return results.Statistic{Mean: results.Float(mean), SD: results.Float(sd), CI95: results.Float(half), Min: results.Float(mean - sd), Max: results.Float(mean + sd), N: n}
}

// single is a result of one run, which has no interval.
func single(v float64) results.Statistic {
	return results.Describe([]results.Float{results.Float(v)}, "")
}

// TestClaimsAreComplete reads every claim: what it says of itself before anything runs, and that nothing is said twice.
func TestClaimsAreComplete(t *testing.T) {
	byID := map[string]Claim{}
	for _, c := range Claims() {
		if _, twice := byID[c.ID]; twice {
			t.Errorf("%s is there twice", c.ID)
		}
		byID[c.ID] = c
	}
	for id, c := range byID {
		for _, rule := range []struct {
			what string
			ok   bool
		}{
			{"source, row and column", c.Source != "" && c.Row != "" && c.Column != ""},
			{"a basis", slices.Contains(Bases(), c.Basis)},
			{"a kind", orders[c.Kind] != nil},
			{"a printed number, unless it is a trend", (c.Printed == "") == (c.Kind == Trend) && math.IsNaN(c.Value) == (c.Kind == Trend)},
			{"the paper's rounding, where it prints a number", math.IsNaN(c.Rounding) == (c.Kind == Trend) && c.Rounding != 0},
			{"a side, if it is a bound or a trend", (c.Side != "") == (c.Kind != Value) && slices.Contains([]Side{"", Above, Below}, c.Side)},
			{"no neighbour where a bound says what is claimed", c.Kind != Bound || c.Neighbour == nil},
			{"why it can't be tested, or how it is taken", c.Untestable != "" || c.Why != ""},
			{"runs, where something runs", (c.Seeds > 0) == (c.Untestable == "" && c.Basis != Arithmetic)},
			{"what arithmetic gives", (c.Follows != 0) == (c.Basis == Arithmetic)},
			{"an expectation of its kind", expectable(&c)},
			{"a heading that shows what moves it, where no match is expected", c.Cause != "" || !moves(&c)},
		} {
			if !rule.ok {
				t.Errorf("%s declares not %s", id, rule.what)
			}
		}
		if c.Kind != Bound && c.Untestable == "" && !(c.Neighbour != nil && (c.Neighbour.ID == "" || byID[c.Neighbour.ID].ID != "")) {
			t.Errorf("%s declares no neighbour that is there", id)
		}
	}
}

// expectable says whether a claim expects a word that can come out.
func expectable(c *Claim) bool {
	switch {
	case c.Contradiction != "":
		return c.Expect == Contradiction
	case c.Untestable != "":
		return c.Expect == NotTestable
	}
	return slices.Contains(orders[c.Kind], c.Expect)
}

// moves says whether a claim expects less than the best of its kind.
func moves(c *Claim) bool {
	return c.Expect != NotTestable && c.Expect != Contradiction && c.Expect != orders[c.Kind][0]
}

// TestNoClaimIsDerived holds that no number is there twice, once as it is printed and once computed from others: of Table 1's
// ten numbers each is one claim.
func TestNoClaimIsDerived(t *testing.T) {
	if rows := Compare(nil, "olaf/table1", "olaf/aom"); len(rows) != 12 {
		t.Errorf("Table 1 prints 10 numbers and the text 2, of which %d are claims", len(rows))
	}
	for _, c := range Claims() {
		if value, rounding := printed(c.Printed); c.Printed != "" && (value != c.Value || !(rounding > 0)) {
			t.Errorf("%s is printed as %q", c.ID, c.Printed)
		}
	}
}

func TestRoundingIsThePapers(t *testing.T) {
	for text, want := range map[string][2]float64{"6109": {6109, .5}, "55.8": {55.8, .05}, "0.90": {.9, .005}, "3.52": {3.52, .005}} {
		if v, r := printed(text); v != want[0] || math.Abs(r-want[1]) > 1e-15 {
			t.Errorf("%s is %v ± %v", text, v, r)
		}
	}
}

// TestContradictionsFollow computes from printed numbers what excludes others.
func TestContradictionsFollow(t *testing.T) {
	by := map[string]Claim{}
	for _, c := range Claims() {
		by[c.ID] = c
	}
	const sent = 27 * 500
	for _, rate := range []string{"40g", "20g"} {
		received, lost := by["olaf/table1.fifo."+rate+".received"], by["olaf/table1.fifo."+rate+".lost_pct"]
		left := 100 * (1 - received.Value/sent)
		if off := math.Abs(left-lost.Value) > lost.Rounding+100*received.Rounding/sent; off != (lost.Contradiction != "") {
			t.Errorf("%s: %v %% follow from what was received, %v are printed, contradiction %q", rate, left, lost.Value, lost.Contradiction)
		}
	}
	for _, size := range []int{1500, 9036} {
		c := by[fmt.Sprintf("olaf/hardware.latency.%d_b", size)]
		ns := 4 * math.Ceil(float64(size)/64)
		if ns != c.Follows || (math.Abs(ns-c.Value) > c.Rounding) != (c.Contradiction != "") {
			t.Errorf("%d bytes take %v ns, %v are printed, contradiction %q", size, ns, c.Value, c.Contradiction)
		}
	}
}

// TestVerdicts has a line for each rule, on both sides of its limit.
func TestVerdicts(t *testing.T) {
	value := func(text string, than float64) Claim {
		c := Claim{Kind: Value, Neighbour: &Neighbour{Is: than}, Seeds: 5}
		c.Value, c.Rounding = printed(text)
		return c
	}
	fair := value("0.98", 0)
	fair.Unfairness = true
	bound := func(side Side) Claim { return Claim{Kind: Bound, Side: side, Value: 40, Rounding: .5, Seeds: 5} }
	trend := func(side Side, than float64) Claim {
		return Claim{Kind: Trend, Side: side, Neighbour: &Neighbour{Is: than}, Value: math.NaN(), Seeds: 5}
	}
	untestable, excluded := value("100", 0), value("100", 0)
	untestable.Untestable, excluded.Contradiction = "needs a card", "others exclude it"
	for _, c := range []struct {
		name  string
		claim Claim
		ours  Measured
		want  Verdict
	}{
		{"at the edge of 2 %", value("100", 0), Of(stat(102, 0.1, 5)), Match},
		{"below it by as much", value("100", 0), Of(stat(98, 0.1, 5)), Match},
		{"beyond 2 %, not in the interval", value("100", 0), Of(stat(102.1, 0.1, 5)), Near},
		{"beyond 2 %, in the interval", value("100", 0), Of(stat(107, 7.1, 5)), Match},
		{"in the interval only as it is rounded", value("100", 0), Of(stat(107, 6.5, 5)), Match},
		{"just not in the interval as it is rounded", value("100", 0), Of(stat(107, 6.49, 5)), Near},
		{"at the edge of 10 %", value("100", 0), Of(stat(110, 1, 5)), Near},
		{"a wide interval carries no further than 10 %", value("100", 0), Of(stat(110.1, 50, 5)), WithinTwo},
		{"one run has no interval", value("100", 0), Measured{Statistic: withRuns(single(107), 5)}, Near},
		{"twice", value("100", 0), Of(stat(200, 1, 5)), WithinTwo},
		{"half", value("100", 0), Of(stat(50, 1, 5)), WithinTwo},
		{"more than twice, on its side of 0", value("100", 0), Of(stat(201, 1, 5)), TrendOnly},
		{"less than half, on its side of 0", value("100", 0), Of(stat(49, 1, 5)), TrendOnly},
		{"less than half, not clear of 0", value("100", 0), Of(stat(23, 23.1, 5)), Differs},
		{"clear on the other side", value("100", 0), Of(stat(-30, 10, 5)), Opposite},
		{"of the other sign is never within ×2", value("100", 0), Of(stat(-90, 100, 5)), Differs},
		{"0 is never within ×2", value("100", 0), Of(stat(0, 1, 5)), Differs},
		{"negative numbers alike", value("-100", 0), Of(stat(-60, 1, 5)), WithinTwo},
		{"negative, beyond", value("-100", 0), Of(stat(-30, 1, 5)), TrendOnly},
		{"printed on no side of its neighbour", value("100", 100), Of(stat(10, 1, 5)), Differs},
		{"one run shows no side", value("100", 0), Measured{Statistic: withRuns(single(30), 5)}, Differs},
		{"fairness by what lacks to 1: twice", fair, Of(stat(0.96, 0.001, 5)), WithinTwo},
		{"fairness by what lacks to 1: more", fair, Of(stat(0.95, 0.001, 5)), TrendOnly},
		{"fairness of 1 lacks nothing", fair, Of(stat(1, 0.001, 5)), TrendOnly},
		{"bound from below cleared", bound(Above), Of(stat(41, 0.9, 5)), BoundMet},
		{"bound from below touched", bound(Above), Of(stat(41, 1, 5)), Differs},
		{"bound from below missed", bound(Above), Of(stat(38, 1.9, 5)), BoundMissed},
		{"bound from above cleared", bound(Below), Of(stat(0.05, 0.07, 5)), BoundMet},
		{"bound from above missed", bound(Below), Of(stat(3600, 1, 5)), BoundMissed},
		{"bound from above not cleared", bound(Below), Of(stat(39, 2, 5)), Differs},
		{"a gain that is a loss", trend(Above, 1), Of(stat(0.873, 0.028, 5)), Opposite},
		{"a gain", trend(Above, 1), Of(stat(1.1, 0.05, 5)), TrendOnly},
		{"neither", trend(Above, 1), Of(stat(1.03, 0.05, 5)), Differs},
		{"flat", trend(Below, FlatPct), Of(stat(3.9, 0.3, 5)), TrendOnly},
		{"not flat", trend(Below, FlatPct), Of(stat(60, 3, 5)), Opposite},
		{"a trend that a step breaks", trend(Above, 0), Measured{Statistic: stat(5, 1, 5), Breaks: "it rises"}, Differs},
		{"a broken trend that is opposite anyway", trend(Above, 0), Measured{Statistic: stat(-5, 1, 5), Breaks: "it rises"}, Opposite},
		{"fewer runs than it takes", value("100", 0), Of(stat(100, 1, 4)), TooShort},
		{"shorter runs than it takes", value("100", 0), Measured{Statistic: stat(100, 1, 5), Short: "40 of 200 iterations"}, TooShort},
		{"a shortened trend", trend(Above, 0), Measured{Statistic: stat(5, 1, 5), Short: "quick"}, TooShort},
		{"not measured", value("100", 0), Of(results.Describe(nil, "no solver")), NotTestable},
		{"not measurable, whatever is said", untestable, Of(stat(100, 1, 5)), NotTestable},
		{"excluded by other numbers, whatever comes out", excluded, Of(stat(100, 1, 5)), Contradiction},
	} {
		c.claim.ID = "a/b.c"
		rows := rowOf(&c.claim, Ours{"a/b.c": c.ours}, nil)
		if rows.Verdict != string(c.want) {
			t.Errorf("%s: %s, want %s", c.name, rows.Verdict, c.want)
		}
	}
}

// withRuns is a statistic that says it is of so many runs, without an interval.
func withRuns(s results.Statistic, n int) results.Statistic {
	s.N = n
	return s
}

// TestNeighbours has values that are far off: the interval of the difference to what the paper sets them beside decides.
func TestNeighbours(t *testing.T) {
	const fifo, merged = "olaf/table1.fifo.40g.received", "olaf/table1.olaf.40g.received" // 6109 and 4823 are printed
	for _, c := range []struct {
		name         string
		ours, beside results.Statistic
		want         Verdict
	}{
		{"above it, as printed", stat(2900, 10, 30), stat(2800, 10, 30), TrendOnly},
		{"below it", stat(2800, 10, 30), stat(2900, 10, 30), Opposite},
		{"the intervals of both count", stat(2900, 70, 30), stat(2800, 70, 30), TrendOnly},
		{"together they do not clear", stat(2900, 75, 30), stat(2800, 75, 30), Differs},
		{"of one alone it would", stat(2900, 75, 30), stat(2800, 5, 30), TrendOnly},
		{"equal without spread", stat(2900, 0, 30), stat(2900, 0, 30), Differs},
		{"other without spread", stat(2901, 0, 30), stat(2900, 0, 30), TrendOnly},
		{"not measured", stat(2900, 1, 30), results.Describe(nil, "left out"), Differs},
		{"measured once", stat(2900, 1, 30), single(2000), Differs},
	} {
		for _, row := range Compare(Ours{fifo: Of(c.ours), merged: Of(c.beside)}, "olaf/table1") {
			if row.ID == fifo && row.Verdict != string(c.want) {
				t.Errorf("%s: %s, want %s", c.name, row.Verdict, c.want)
			}
		}
	}
}

// TestDifferenceIsWelchs compares with a worked example that is widely printed: t = 1.959 on 7.03 degrees of freedom, which
// makes 0.095 ± 0.1146.
func TestDifferenceIsWelchs(t *testing.T) {
	a := results.Describe([]results.Float{30.02, 29.99, 30.11, 29.97, 30.01, 29.99}, "")
	b := results.Describe([]results.Float{29.89, 29.93, 29.72, 29.98, 30.02, 29.98}, "")
	mean, half := difference(&a, &b)
	if math.Abs(mean-0.095) > 1e-9 || math.Abs(half-0.1146) > 5e-5 {
		t.Errorf("%v ± %v", mean, half)
	}
	if back, same := difference(&b, &a); back != -mean || same != half {
		t.Errorf("the other way %v ± %v", back, same)
	}
}

// TestOtherAssumptions holds that what stands beside a number has a verdict only where one is asked for, against the neighbour
// under the same assumption.
func TestOtherAssumptions(t *testing.T) {
	ours := Ours{
		"olaf/aom.40g.reduction":      {Statistic: stat(69, .4, 30), Others: []Other{{Assumption: "both per cluster", Statistic: stat(34.7, .6, 30)}}},
		"olaf/table3.olaf_tc.jain":    {Statistic: stat(.9537, .0019, 100), Others: []Other{{Assumption: "per worker", Statistic: stat(.9313, .0041, 100), Judged: true}}},
		"olaf/table3.olaf.jain":       {Statistic: stat(.9499, .0021, 100), Others: []Other{{Assumption: "per worker", Statistic: stat(.9167, .0059, 100)}}},
		"olaf/table3.olaf_tc.aom_s1":  {Statistic: stat(216, 1, 100), Others: []Other{{Assumption: "N = senders", Statistic: stat(241.4, 1, 100), Judged: true}}},
		"olaf/table2.olaf.loss_pct":   {Statistic: stat(7.6, .1, 100), Others: []Other{{Assumption: "by updates", Statistic: stat(14.7, .1, 100), Judged: true}}},
		"olaf/table2.fifo.loss_pct":   Of(stat(89.4, .1, 100)),
		"olaf/table3.olaf_tc.aom_s2":  {Statistic: stat(325, 1, 10), Others: []Other{{Assumption: "N = senders", Statistic: stat(270, 1, 10), Judged: true}}},
		"olaf/fig10.fifo.s1_at_0.1":   Of(stat(7391, 166, 100)),
		"olaf/table1.olaf.40g.absent": Of(stat(1, 1, 30)),
	}
	want := map[string][2]Verdict{
		"olaf/aom.40g.reduction":     {Match, ""},
		"olaf/table3.olaf_tc.jain":   {TrendOnly, TrendOnly},
		"olaf/table3.olaf_tc.aom_s1": {WithinTwo, Near},
		"olaf/table2.olaf.loss_pct":  {WithinTwo, TrendOnly},
		"olaf/table3.olaf_tc.aom_s2": {TooShort, TooShort},
	}
	for _, row := range Compare(ours) {
		w, ok := want[row.ID]
		if !ok {
			continue
		}
		if len(row.Sensitivity) != 1 || row.Verdict != string(w[0]) || row.Sensitivity[0].Verdict != string(w[1]) {
			t.Errorf("%s: %s, %+v, want %v", row.ID, row.Verdict, row.Sensitivity, w)
		}
	}
}

// TestExpectations holds the order of the words and that nothing but a judged result can be below what is expected.
func TestExpectations(t *testing.T) {
	order := map[Kind]string{Value: "match, near, within ×2, trend only, differs, opposite", Trend: "trend only, differs, opposite", Bound: "bound met, differs, bound missed"}
	for kind, want := range order {
		var words []string
		for i, v := range orders[kind] {
			words = append(words, string(v))
			for k, expect := range orders[kind] {
				if c := (Claim{Kind: kind, Expect: expect}); c.worse(v) != (i > k) {
					t.Errorf("%s where %s is expected: missed %v", v, expect, c.worse(v))
				}
			}
		}
		if got := strings.Join(words, ", "); got != want {
			t.Errorf("%ss: %s", kind, got)
		}
		for _, v := range []Verdict{TooShort, NotTestable, Contradiction, "reproduced", ""} {
			if c := (Claim{Kind: kind, Expect: orders[kind][0]}); c.worse(v) {
				t.Errorf("a %s that is %q is missed", kind, v)
			}
		}
	}
	if len(Verdicts()) != 11 {
		t.Errorf("%d words are counted", len(Verdicts()))
	}
	rows := Compare(Ours{
		"olaf/aom.40g.reduction":        Of(stat(60, 1, 30)),       // match is expected
		"olaf/aom.20g.reduction":        Of(stat(60, 1, 29)),       // too short
		"olaf/fig7.speedup.smallest":    Of(stat(0.873, 0.028, 5)), // opposite is expected
		"olaf/fig10.fifo.s1_at_0.1":     Of(stat(2900, 100, 100)),  // not shown to be above
		"olaf/table1.fifo.40g.lost_pct": Of(stat(5, .1, 30)),       // a contradiction
	})
	var missed []string
	for _, r := range Misses(rows) {
		missed = append(missed, r.ID)
	}
	if got := strings.Join(missed, " "); got != "olaf/aom.40g.reduction olaf/fig10.fifo.s1_at_0.1" {
		t.Errorf("missed %s", got)
	}
}

// TestTrends has the words of trends on small curves over two seeds, whose differences are 1 apart so that their half-width is
// 12.7/2.
func TestTrends(t *testing.T) {
	const half = 12.706204736 / 2
	curve := func(points ...[2]results.Float) (values [][]results.Float) {
		for _, p := range points {
			values = append(values, p[:])
		}
		return values
	}
	for _, c := range []struct {
		name   string
		got    Measured
		mean   float64
		half   float64
		breaks bool
	}{
		{"a difference is taken seed by seed", Over([]results.Float{10, 110}, []results.Float{3, 102}), 7.5, half, false},
		{"a seed that only one has is left out", Over([]results.Float{10, 110, 5}, []results.Float{3, 102, results.Missing()}), 7.5, half, false},
		{"a fall is of the ends", Falls(curve([2]results.Float{50, 51}, [2]results.Float{40, 40}, [2]results.Float{20, 20})), 30.5, half, false},
		{"a step that rises clearly breaks it", Falls(curve([2]results.Float{50, 51}, [2]results.Float{40, 40}, [2]results.Float{48, 49}, [2]results.Float{20, 20})), 30.5, half, true},
		{"one that may not rise does not", Falls(curve([2]results.Float{50, 51}, [2]results.Float{40, 40}, [2]results.Float{44, 45}, [2]results.Float{20, 20})), 30.5, half, false},
		{"a rise is a fall below 0", Falls(curve([2]results.Float{20, 20}, [2]results.Float{50, 51})), -30.5, half, true},
		{"a spread is of the extremes, of the mean over all", Spread(curve([2]results.Float{99, 99}, [2]results.Float{100, 100}, [2]results.Float{101, 102})), 100 * 2.5 / (300.5 / 3), 100 * half / (300.5 / 3), false},
		{"of which none is the first or last", Spread(curve([2]results.Float{100, 100}, [2]results.Float{90, 90}, [2]results.Float{111, 112}, [2]results.Float{100, 100})), 100 * 21.5 / (401.5 / 4), 100 * half / (401.5 / 4), false},
		{"a gap narrows by what it was larger", Over(Gap([]results.Float{10, 30}, []results.Float{30, 10}), Gap([]results.Float{5, 10}, []results.Float{10, 4})), 14.5, half, false},
	} {
		if math.Abs(float64(c.got.Mean)-c.mean) > 1e-9 || math.Abs(float64(c.got.CI95)-c.half) > 1e-6 || (c.got.Breaks != "") != c.breaks {
			t.Errorf("%s: %v ± %v, %q; want %v ± %v", c.name, c.got.Mean, c.got.CI95, c.got.Breaks, c.mean, c.half)
		}
	}
	for name, m := range map[string]Measured{"a fall": Falls(nil), "a spread": Spread(nil)} {
		if m.Known() || m.Reason == "" {
			t.Errorf("%s of nothing is %v", name, m.Mean)
		}
	}
}

func TestFromBench(t *testing.T) {
	cdf := func(p ...results.Float) (out []results.CDFPoint) {
		for i, v := range p {
			out = append(out, results.CDFPoint{LE: i, P: v})
		}
		return out
	}
	row := func(queue string, rate int64, cdf []results.CDFPoint) results.Row {
		r := results.Row{Queue: queue, OutRateBPS: rate, CDF: cdf}
		for name, v := range map[string]float64{"received": 4823, "aggregated": 7204} {
			r.Stats = append(r.Stats, results.Stat{Metric: &metric.Metric{Name: name}, Statistic: stat(v, 10, 30)})
		}
		return r
	}
	reduction := func(queue, versus string) results.Comparison {
		return results.Comparison{Queue: queue, Versus: versus, OutRateBPS: 20e9, AoMReduction: results.AoMReduction{WorkerCluster: stat(78, 1, 30), ClusterCluster: stat(48, 1, 30), WorkerWorker: stat(58, 1, 30)}}
	}
	b := &results.Bench{
		Rows:        []results.Row{row("olaf", 40e9, cdf(.4, 1)), row("olaf", 20e9, cdf(.3, .6, 1)), row("olaf", 5e9, cdf(.35, .36, .5, 1)), row("fifo", 20e9, cdf(1))},
		Comparisons: []results.Comparison{reduction("olaf", "fifo")},
	}
	rows := map[string]results.PaperRow{}
	for _, r := range Compare(FromBench(b)) {
		rows[r.ID] = r
	}
	for id, want := range map[string]Verdict{
		"olaf/table1.olaf.40g.received": Match, "olaf/aom.20g.reduction": Match, "olaf/aom.40g.reduction": NotTestable,
		"olaf/fig6.aggregations.20g_right_of_40g": TrendOnly, "olaf/fig6.aggregations.5g_right_of_20g": Differs, // on average more, but the distributions cross
	} {
		if rows[id].Verdict != string(want) {
			t.Errorf("%s: %s, want %s", id, rows[id].Verdict, want)
		}
	}
	// 2·(1−.3) … : 0.7 + 0.4 aggregations against 0.6, and both intervals.
	if s := rows["olaf/fig6.aggregations.20g_right_of_40g"].Ours; math.Abs(float64(s.Mean)-0.5) > 1e-12 || !(s.CI95 > 0) || s.N != 30 {
		t.Errorf("%+v", s)
	}
	if s := rows["olaf/aom.20g.reduction"].Sensitivity; len(s) != 2 || s[0].Ours.Mean != 48 || s[1].Ours.Mean != 58 || s[0].Verdict+s[1].Verdict != "" {
		t.Errorf("like for like beside it: %+v", s)
	}
	for name, swapped := range map[string]results.Comparison{"what does not merge under what does": reduction("fifo", "olaf"), "two that merge": reduction("olaf", "olaf")} {
		b.Comparisons = []results.Comparison{swapped}
		if _, ok := FromBench(b)["olaf/aom.20g.reduction"]; ok {
			t.Errorf("%s is set beside the paper's reduction", name)
		}
	}
}

// TestNothingIsPassedOver asks that every claim without a value of ours has a verdict and a reason.
func TestNothingIsPassedOver(t *testing.T) {
	rows := Compare(nil)
	if len(rows) != len(Claims()) {
		t.Errorf("%d rows for %d claims", len(rows), len(Claims()))
	}
	for _, r := range rows {
		judged := r.Basis == string(Arithmetic) || r.Verdict == string(Contradiction)
		if (r.Verdict == string(NotTestable)) == judged || r.Note == "" {
			t.Errorf("%s: %s, %q", r.ID, r.Verdict, r.Note)
		}
	}
}

// TestStoredRowsAreJudgedAnew has rows as the first version of documents kept them.
func TestStoredRowsAreJudgedAnew(t *testing.T) {
	stored := func(id string, s results.Statistic) results.PaperRow {
		return results.PaperRow{ID: id, Ours: s, Verdict: "reproduced", Than: results.Missing()}
	}
	b := &results.Bench{Comparisons: []results.Comparison{}}
	got := map[string]string{}
	for _, r := range Rejudged([]results.PaperRow{
		stored("table2.olaf.aom_s1", stat(233, 1, 100)),
		stored("table2.olaf.aom_s2", stat(234, 1, 10)),
		stored("table3.fifo.jain", stat(.71, .01, 100)),
		stored("table3.olaf_tc.gap_narrows", single(1)),
		stored("table1.olaf_40g.lost", stat(1518, 20, 30)),
	}, b) {
		got[r.ID] = r.Verdict
	}
	want := map[string]string{"olaf/table2.olaf.aom_s1": string(Near), "olaf/table2.olaf.aom_s2": string(TooShort), "olaf/table3.fifo.jain": string(NotTestable), "olaf/table3.olaf_tc.gap_narrows": string(NotTestable)}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestOldNamesLast holds that every claim and experiment of the time before papers had names is found by the name it had.
func TestOldNamesLast(t *testing.T) {
	for was, now := range map[string]string{
		"table1":                           "olaf/table1",
		"table1-trace":                     "olaf/table1-trace",
		"table1.olaf_40g.received":         "olaf/table1.olaf.40g.received",
		"table1.fifo_20g.lost_pct":         "olaf/table1.fifo.20g.lost_pct",
		"aom.40g.reduction":                "olaf/aom.40g.reduction",
		"aom.40g.reduction_literal":        "aom.40g.reduction_literal", // no claim any more
		"fig10.fifo.s1_at_0.1":             "olaf/fig10.fifo.s1_at_0.1",
		"table3.olaf_tc.gap_narrows":       "olaf/table3.olaf_tc.gap_narrows",
		"iswitch.sync_speedup_over_ps.dqn": "iswitch/table3.sync_speedup_over_ps.dqn",
		"xagg.over_tcp.throughput":         "xagg/text.over_tcp.throughput",
		"p4inc-aoi.heuristic_time.about":   "p4inc-aoi/text.heuristic_time.about",
		"olaf/table1":                      "olaf/table1",
		"bench":                            "bench",
		"nothing.of.ours":                  "nothing.of.ours",
	} {
		if got := Canonical(was); got != now {
			t.Errorf("%s is %s, want %s", was, got, now)
		}
	}
	for name, file := range map[string]string{"olaf/table1": "table1", "iswitch/table4": "iswitch-table4", "bench": "bench", "iswitch/table1": "iswitch-table1"} {
		if got := FileName(name); got != file {
			t.Errorf("files of %s are named %s, want %s", name, got, file)
		}
	}
	old := 0
	for _, c := range Claims() {
		if c.Was != "" {
			old++
		}
		if Canonical(c.Was) != c.ID && c.Was != "" || Canonical(c.ID) != c.ID {
			t.Errorf("%s was %s", c.ID, c.Was)
		}
		if !strings.HasPrefix(c.ID, ExperimentOf(c.ID)+".") || !strings.Contains(ExperimentOf(c.ID), "/") {
			t.Errorf("%s is of %s", c.ID, ExperimentOf(c.ID))
		}
	}
	if old != 80 {
		t.Errorf("%d claims have an old name, want 80: 84, less 4 that were derived from others", old)
	}
}
