package paper

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

// stat returns the result of several runs with the given mean, half-width and number. The spread is the one with this
// half-width.
func stat(mean, half float64, n int) results.Statistic {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
	sd := half * math.Sqrt(float64(n)) / t.Quantile(0.975)
	return results.Statistic{Mean: results.Float(mean), SD: results.Float(sd), CI95: results.Float(half),
		Min: results.Float(mean - sd), Max: results.Float(mean + sd), N: n}
}

// single returns the result of one run, which has no interval.
func single(v float64) results.Statistic {
	return results.Describe([]results.Float{results.Float(v)}, "")
}

// TestClaimsAreComplete checks the fields of every claim, and that there are no duplicates.
func TestClaimsAreComplete(t *testing.T) {
	byID := map[string]Claim{}
	for _, c := range ListClaims() {
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
			{"a basis", slices.Contains(AllBases(), c.Basis)},
			{"a kind", orders[c.Kind] != nil},
			{"a printed number, unless it is a trend", (c.Printed == "") == (c.Kind == Trend) &&
				math.IsNaN(c.Value) == (c.Kind == Trend)},
			{"the paper's rounding, where it prints a number", math.IsNaN(c.Rounding) == (c.Kind == Trend) && c.Rounding != 0},
			{"a side, if it is a bound or a trend", (c.Side != "") == (c.Kind != Value) &&
				slices.Contains([]Side{"", Above, Below}, c.Side)},
			{"no neighbour where a bound says what is claimed", c.Kind != Bound || c.Neighbour == nil},
			{"why it can't be tested, or how it is taken", c.Untestable != "" || c.Explanation != ""},
			{"runs, where something runs", (c.Seeds > 0) == (c.Untestable == "" && c.Basis != Arithmetic)},
			{"what arithmetic gives", c.Follows == 0 || c.Basis == Arithmetic},
			{"an expectation of its kind", expectable(&c)},
			{"a heading that shows what moves it, where no match is expected", c.Cause != "" || !moves(&c)},
		} {
			if !rule.ok {
				t.Errorf("%s declares not %s", id, rule.what)
			}
		}
		if c.Kind != Bound && c.Untestable == "" && !(c.Neighbour != nil && (c.Neighbour.ID == "" ||
			byID[c.Neighbour.ID].ID != "")) {
			t.Errorf("%s declares no neighbour that is there", id)
		}
	}
}

// expectable reports whether a claim expects a verdict that is possible for it.
func expectable(c *Claim) bool {
	switch {
	case c.Contradiction != "":
		return c.Expect == Contradiction
	case c.Untestable != "":
		return c.Expect.IsUnmeasured()
	}
	return slices.Contains(orders[c.Kind], c.Expect)
}

// moves reports whether a claim expects less than the best verdict of its kind.
func moves(c *Claim) bool {
	return !c.Expect.IsUnmeasured() && c.Expect != Contradiction && c.Expect != orders[c.Kind][0]
}

// TestNoClaimIsDerived checks that no number is claimed twice, once as printed and once as computed from others. Each
// of Table 1's ten numbers is one claim.
func TestNoClaimIsDerived(t *testing.T) {
	if rows := Compare(nil, "olaf/table1", "olaf/aom"); len(rows) != 12 {
		t.Errorf("Table 1 prints 10 numbers and the text 2, of which %d are claims", len(rows))
	}
	for _, c := range ListClaims() {
		if value, rounding := parsePrinted(c.Printed); c.Printed != "" && (value != c.Value || !(rounding > 0)) {
			t.Errorf("%s is printed as %q", c.ID, c.Printed)
		}
	}
}

func TestRoundingMatchesPapers(t *testing.T) {
	for text, want := range map[string][2]float64{"6109": {6109, .5}, "55.8": {55.8, .05}, "0.90": {.9, .005},
		"3.52": {3.52, .005}} {
		if v, r := parsePrinted(text); v != want[0] || math.Abs(r-want[1]) > 1e-15 {
			t.Errorf("%s is %v ± %v", text, v, r)
		}
	}
}

// TestContradictionsAreComputed checks contradictions by computing from printed numbers what excludes others.
func TestContradictionsAreComputed(t *testing.T) {
	by := map[string]Claim{}
	for _, c := range ListClaims() {
		by[c.ID] = c
	}
	const sent = 27 * 500
	for _, rate := range []string{"40g", "20g"} {
		received, lost := by["olaf/table1.fifo."+rate+".received"], by["olaf/table1.fifo."+rate+".lost_pct"]
		left := 100 * (1 - received.Value/sent)
		if off := math.Abs(left-lost.Value) > lost.Rounding+100*received.Rounding/sent; off != (lost.Contradiction != "") {
			t.Errorf("%s: %v %% follow from what was received, %v are printed, contradiction %q", rate, left, lost.Value,
				lost.Contradiction)
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

// TestVerdicts has a line for each rule, with values on both sides of its limit.
func TestVerdicts(t *testing.T) {
	value := func(text string, than float64) Claim {
		c := Claim{Kind: Value, Neighbour: &Neighbour{Is: than}, Seeds: 5}
		c.Value, c.Rounding = parsePrinted(text)
		return c
	}
	fair := value("0.98", 0)
	fair.Unfairness = true
	bound := func(side Side) Claim { return Claim{Kind: Bound, Side: side, Value: 40, Rounding: .5, Seeds: 5} }
	trend := func(side Side, than float64) Claim {
		return Claim{Kind: Trend, Side: side, Neighbour: &Neighbour{Is: than}, Value: math.NaN(), Seeds: 5}
	}
	untestable, machine, excluded := value("100", 0), value("100", 0), value("100", 0)
	untestable.Untestable, untestable.Expect, excluded.Contradiction = "needs a card", NotTestable, "others exclude it"
	machine.Untestable, machine.Expect = "the time of their solver", TheirMachine
	for _, c := range []struct {
		name  string
		claim Claim
		ours  Measured
		want  Verdict
	}{
		{"at the edge of 2 %", value("100", 0), Of(stat(102, 0.1, 5)), Match},
		{"below it by as much", value("100", 0), Of(stat(98, 0.1, 5)), Match},
		{"off by a precise interval and what was rounded away, to the digit", value("10.0", 0),
			Of(stat(10.23, 0.18, 5)), Match},
		{"half of it, but for the last bit", value("0.3", 0), Of(stat(math.Nextafter(0.15, 0), 0.001, 5)), WithinTwo},
		{"off by a little more", value("10.0", 0), Of(stat(10.23, 0.1799, 5)), Near},
		{"beyond 2 %, not in the interval", value("100", 0), Of(stat(102.01, 0.1, 5)), Near},
		{"beyond 2 %, in an interval that is too wide for a match", value("100", 0), Of(stat(107, 7.1, 5)), Near},
		{"in a precise interval only as it is rounded", value("100", 0), Of(stat(102.4, 1.9, 5)), Match},
		{"just not in the interval as it is rounded", value("100", 0), Of(stat(102.4, 1.89, 5)), Near},
		{"at the value, with an interval as wide as a match", value("100", 0), Of(stat(100, 2, 5)), Match},
		{"at the value, with a wider interval", value("100", 0), Of(stat(100, 2.01, 5)), Near},
		{"near, but on the other side of its neighbour", value("0.95", 1), Of(stat(1.02, 0.001, 5)), Opposite},
		{"within 2 %, but on the other side of its neighbour", value("0.99", 1), Of(stat(1.005, 0.001, 5)), Opposite},
		{"printed on its neighbour, and near", value("100", 100), Of(stat(105, 1, 5)), Near},
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
		{"nor where both are small", value("0.90", 0), Of(stat(-0.6, 0.1, 5)), Opposite},
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
		{"a gain", trend(Above, 1), Of(stat(1.1, 0.05, 5)), Holds},
		{"neither", trend(Above, 1), Of(stat(1.03, 0.05, 5)), Differs},
		{"flat", trend(Below, FlatPct), Of(stat(3.9, 0.3, 5)), Holds},
		{"not flat", trend(Below, FlatPct), Of(stat(60, 3, 5)), Opposite},
		{"a trend that a step breaks", trend(Above, 0), Measured{Statistic: stat(5, 1, 5), Breaks: "it rises"}, Differs},
		{"a broken trend that is opposite anyway", trend(Above, 0), Measured{Statistic: stat(-5, 1, 5),
			Breaks: "it rises"}, Opposite},
		{"fewer runs than it takes, both ends of whose interval match", value("100", 0), Of(stat(100, 1, 4)), Match},
		{"fewer runs than it takes, one end of whose interval does not match", value("100", 0), Of(stat(101.5, 1, 4)),
			TooShort},
		{"one run of more", value("100", 0), Of(single(100)), TooShort},
		{"a trend that few runs show by more than twice their interval", trend(Above, 0), Of(stat(5, 2.4, 3)), Holds},
		{"a trend that few runs show by less", trend(Above, 0), Of(stat(5, 2.6, 3)), TooShort},
		{"neither side, by few runs", trend(Above, 0), Of(stat(0, 1, 3)), TooShort},
		{"shorter runs than it takes", value("100", 0), Measured{Statistic: stat(100, 1, 5),
			Short: "40 of 200 iterations"}, TooShort},
		{"a shortened trend", trend(Above, 0), Measured{Statistic: stat(5, 1, 5), Short: "quick"}, TooShort},
		{"not measured", value("100", 0), Of(results.Describe(nil, "no solver")), LeftOut},
		{"not measurable, whatever is said", untestable, Of(stat(100, 1, 5)), NotTestable},
		{"of another machine, whatever is said", machine, Of(stat(100, 1, 5)), TheirMachine},
		{"excluded by other numbers, whatever comes out", excluded, Of(stat(100, 1, 5)), Contradiction},
	} {
		c.claim.ID = "a/b.c"
		rows := rowOf(&c.claim, Ours{"a/b.c": c.ours}, nil)
		if rows.Verdict != string(c.want) {
			t.Errorf("%s: %s, want %s", c.name, rows.Verdict, c.want)
		}
	}
}

// withRuns returns a statistic over the given number of runs, without an interval.
func withRuns(s results.Statistic, n int) results.Statistic {
	s.N = n
	return s
}

// TestNeighbours checks values that are far off: the interval of the difference to the paper's neighbour decides.
func TestNeighbours(t *testing.T) {
	const fifo, merged = "olaf/table1.fifo.40g.received", "olaf/table1.olaf.40g.received" // 6109 and 4823 in the paper
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
		{"beside what was measured once it may be near all the same", stat(6100, 1, 30), single(2000), Match},
	} {
		for _, row := range Compare(Ours{fifo: Of(c.ours), merged: Of(c.beside)}, "olaf/table1") {
			if row.ID == fifo && row.Verdict != string(c.want) {
				t.Errorf("%s: %s, want %s", c.name, row.Verdict, c.want)
			}
		}
		// The other way round: 4823 is printed below 6109.
		for _, row := range Compare(Ours{merged: Of(halved(c.beside)), fifo: Of(halved(c.ours))}, "olaf/table1") {
			if row.ID == merged && (c.want == TrendOnly || c.want == Opposite) && row.Verdict != string(c.want) {
				t.Errorf("%s, from below: %s, want %s", c.name, row.Verdict, c.want)
			}
		}
	}
	for _, row := range Compare(Ours{fifo: Of(stat(2900, 1, 30))}, "olaf/table1") {
		if row.ID == fifo && !strings.HasPrefix(row.Note, "the result to compare it with was not measured; ") {
			t.Errorf("without a neighbour: %q", row.Note)
		}
	}
	if row := Compare(Ours{merged: Of(stat(1000, 60, 30)), fifo: Of(stat(1050, 60, 30))},
		"olaf/table1")[2]; row.ID != merged || row.Verdict != string(Differs) {
		t.Errorf("50 below with 85 of room: %s is %s", row.ID, row.Verdict)
	}
}

// TestSidesOfANumber checks values of at most twice or half the printed number, on either side of the claim's
// neighbour: a slowdown is not a speed-up that is half as large. A result that is compared with another result has no
// such side.
func TestSidesOfANumber(t *testing.T) {
	for _, c := range []struct {
		name, id string
		ours     results.Statistic
		want     Verdict
	}{
		{"1.56 printed, slower", "iswitch/table3.async_speedup_over_ps.ddpg", exactStatistic(0.82), Opposite},
		{"1.56 printed, not shown to be slower", "iswitch/table3.async_speedup_over_ps.ddpg", stat(0.95, 0.1, 5), Differs},
		{"1.56 printed, as fast", "iswitch/table3.async_speedup_over_ps.ddpg", exactStatistic(1), Differs},
		{"1.56 printed, faster by less", "iswitch/table3.async_speedup_over_ps.ddpg", exactStatistic(1.01), WithinTwo},
		{"0.91 printed, faster", "iswitch/table3.allreduce_speedup_over_ps.ppo", exactStatistic(1.02), Opposite},
		{"0.91 printed, nearly", "iswitch/table3.allreduce_speedup_over_ps.ppo", exactStatistic(1.0009), Opposite},
		{"0.91 printed, a little less slow", "iswitch/table3.allreduce_speedup_over_ps.ppo", exactStatistic(0.988), Near},
		{"0.91 printed, slower by more", "iswitch/table3.allreduce_speedup_over_ps.ppo", exactStatistic(0.5), WithinTwo},
		{"41.9 % printed, half of it", "iswitch/fig12.iteration_below_ps.least", exactStatistic(21), WithinTwo},
		{"41.9 % printed, less than none", "iswitch/fig12.iteration_below_ps.least", exactStatistic(-30), Opposite},
		{"4.7 % lost printed, above its neighbour", "olaf/table3.olaf_tc.loss_pct", stat(3.9, 0.1, 100), WithinTwo},
	} {
		for _, row := range Compare(Ours{c.id: Of(c.ours)}, ExperimentOf(c.id)) {
			if row.ID == c.id && row.Verdict != string(c.want) {
				t.Errorf("%s: %v is %s, want %s", c.name, c.ours.Mean, row.Verdict, c.want)
			}
		}
	}
}

// halved returns a statistic of half the size, which is too far from the printed number to be within ×2.
func halved(s results.Statistic) results.Statistic { return scaleStatistic(s, 0.5) }

// TestRows checks the text of a line in addition to its verdict.
func TestRows(t *testing.T) {
	ours := Ours{
		"olaf/table1.fifo.40g.received":                    Of(stat(6100, 0, 30)),
		"olaf/table2.fifo.jain":                            Of(stat(0.94, 0.001, 100)),
		"olaf/fig10.fifo.s1_at_0.1":                        Of(results.Describe(nil, "interrupted")),
		"olaf/fig2.reward.async_over_periodic_aggregation": Of(stat(100, 10, 5)),
	}
	rows := map[string]results.PaperRow{}
	for _, r := range Compare(ours) {
		rows[r.ID] = r
	}
	near := func(a results.Float, b float64) bool { return math.Abs(float64(a)-b) < 1e-9 }
	received, jain, latency := rows["olaf/table1.fifo.40g.received"], rows["olaf/table2.fifo.jain"],
		rows["olaf/hardware.latency.1500_b"]
	trend, bound := rows["olaf/fig2.reward.async_over_periodic_aggregation"], rows["olaf/fig10.fifo.s1_at_0.1"]
	for what, ok := range map[string]bool{
		"a deviation is of the published value": near(received.DeviationPct, -100*9/6109.),
		"fairness deviates by what lacks to 1":  near(jain.DeviationPct, -50),
		"a trend deviates from nothing": !trend.DeviationPct.Known() && !trend.Published.Known() &&
			!trend.Rounding.Known(),
		"a neighbour is named": received.Neighbour == "olaf/table1.olaf.40g.received" &&
			!received.Than.Known() && received.Side == "",
		"a number stands in its place": trend.Neighbour == "" && trend.Than == 0 && trend.Side == "above",
		"a bound has neither": bound.Neighbour == "" && !bound.Than.Known() &&
			bound.Side == "above" && bound.Kind == "bound",
		"arithmetic is exact": latency.Ours.Mean == 96 && latency.Ours.CI95 == 0 &&
			latency.Verdict == string(Match) && latency.DeviationPct == 0,
		"what is missing says why": strings.HasPrefix(bound.Note, "interrupted; ") &&
			bound.Verdict == string(LeftOut),
		"what is missing is no number": !rows["olaf/table1.olaf.40g.received"].Ours.Mean.Known(),
		"what was not asked for says so": strings.HasPrefix(
			rows["olaf/fig3.iterations.fewer_with_more_workers"].Note, "not measured; "),
		"basis, rounding and expectation are stated": received.Basis == "calibrated" && received.Rounding == 0.5 &&
			received.Expected == "match" && received.Source == "OLAF §8.1, Table 1",
		"why is said once of what needs a card": rows["olaf/hardware.clock.output_rate"].Note == "limited by timing "+
			"closure on the card",
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
	if c := (Claim{Kind: Value, Value: 0}); c.deviation(&results.Statistic{Mean: 1, N: 1}).Known() {
		t.Error("a deviation from 0")
	}
	for _, r := range Compare(ours.MarkShortened("a fifth of the time"), "olaf/table1") {
		if r.ID == "olaf/table1.fifo.40g.received" && (r.Verdict != string(TooShort) || !strings.HasPrefix(r.Note,
			"a fifth of the time; ")) {
			t.Errorf("shortened: %s, %q", r.Verdict, r.Note)
		}
	}
}

func TestSystemsAndExperimentsOfClaims(t *testing.T) {
	if s, e := SystemOf("olaf/table1.fifo.40g.received"),
		ExperimentOf("olaf/table1.fifo.40g.received"); s != "olaf" || e != "olaf/table1" {
		t.Errorf("it is of %s, %s", s, e)
	}
}

func TestRightOf(t *testing.T) {
	cdf := func(p ...results.Float) (out []results.CDFPoint) {
		for i, v := range p {
			out = append(out, results.CDFPoint{LE: i, P: v})
		}
		return out
	}
	for _, c := range []struct {
		a, b []results.CDFPoint
		want bool
	}{
		{cdf(.3, .6, 1), cdf(.4, 1), true}, {cdf(.4, 1), cdf(.3, .6, 1), false}, {cdf(.4, 1), cdf(.4, 1), false},
		{cdf(.4, .5, 1), cdf(.4, .6, 1), true}, {cdf(.3, .7, 1), cdf(.4, .6, 1), false}, {cdf(.4, 1, 1), cdf(.4, 1),
			false}, {cdf(.4, 1), cdf(.4, 1, 1), false},
	} {
		if got := RightOf(c.a, c.b); got != c.want {
			t.Errorf("%v right of %v: %v", c.a, c.b, got)
		}
	}
}

// TestEveryClaimIsAsDeclared lists the declarations of all claims, so that any change is noticed and intended.
func TestEveryClaimIsAsDeclared(t *testing.T) {
	var b strings.Builder
	for _, c := range ListClaims() {
		beside := "–"
		if n := c.Neighbour; n != nil {
			beside = cmp.Or(n.ID, fmt.Sprint(n.Is))
		}
		fmt.Fprintf(&b, "%s · %s · %s · %s %s %s %s · beside %s · 1−J %v · %d runs · %s · %q · %s · %q · "+
			"follows %.12g · %s\n", c.ID, c.Was, c.Source, c.Basis, c.Kind, strings.TrimSpace(string(c.Side)+" "+
			c.Printed), c.Unit,
			beside, c.Unfairness, c.Seeds, c.Expect, c.Cause, cmp.Or(c.Renewed, "–"), c.Contradiction+c.Disagreement+
				c.Inconsistency, c.Follows, cmp.Or(c.Explanation, "–"))
	}
	golden.Equal(t, "claims.txt", []byte(b.String()))
}

// TestDifferenceUsesWelch compares with a widely published example: t = 1.959 with 7.03 degrees of freedom, which gives
// 0.095 ± 0.1146.
func TestDifferenceUsesWelch(t *testing.T) {
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

// TestOtherAssumptions checks that a number under other assumptions has a verdict only if one is requested, by
// comparing it with the neighbour under the same assumption.
func TestOtherAssumptions(t *testing.T) {
	ours := Ours{
		"olaf/aom.40g.reduction": {Statistic: stat(69, .4, 30), Others: []Other{{Assumption: "both per cluster",
			Statistic: stat(34.7, .6, 30)}}},
		"olaf/table3.olaf_tc.jain": {Statistic: stat(.9537, .0019, 100),
			Others: []Other{{Assumption: "per worker", Statistic: stat(.9313, .0041, 100), Judged: true}}},
		"olaf/table3.olaf.jain": {Statistic: stat(.9499, .0021, 100),
			Others: []Other{{Assumption: "per worker", Statistic: stat(.9167, .0059, 100)}}},
		"olaf/table3.olaf_tc.aom_s1": {Statistic: stat(216, 1, 100),
			Others: []Other{{Assumption: "N = senders", Statistic: stat(241.4, 1, 100), Judged: true}}},
		"olaf/table2.olaf.loss_pct": {Statistic: stat(7.6, .1, 100),
			Others: []Other{{Assumption: "by updates", Statistic: stat(14.7, .1, 100), Judged: true}}},
		"olaf/table2.fifo.loss_pct": Of(stat(89.4, .1, 100)),
		"olaf/table3.olaf_tc.aom_s2": {Statistic: stat(325, 1, 10),
			Others: []Other{{Assumption: "N = senders", Statistic: stat(270, 1, 10), Judged: true}}},
		"olaf/fig10.fifo.s1_at_0.1":   Of(stat(7391, 166, 100)),
		"olaf/table1.olaf.40g.absent": Of(stat(1, 1, 30)),
	}
	want := map[string][2]Verdict{
		"olaf/aom.40g.reduction":     {Match, ""},
		"olaf/table3.olaf_tc.jain":   {TrendOnly, TrendOnly},
		"olaf/table3.olaf_tc.aom_s1": {WithinTwo, Near},
		"olaf/table2.olaf.loss_pct":  {WithinTwo, TrendOnly},
		"olaf/table3.olaf_tc.aom_s2": {WithinTwo, Match},
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

// TestExpectations checks the order of verdicts, and that only a judged result can be worse than expected.
func TestExpectations(t *testing.T) {
	order := map[Kind]string{Value: "match, near, within ×2, trend only, differs, opposite",
		Trend: "holds, differs, opposite", Bound: "bound met, differs, bound missed"}
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
		for _, v := range orders[kind] {
			if c := (Claim{Kind: kind, Expect: NotTestable}); c.worse(v) {
				t.Errorf("%s is missed where nothing is expected", v)
			}
		}
		for _, v := range []Verdict{TooShort, LeftOut, NotTestable, TheirMachine, Contradiction, "reproduced", ""} {
			if c := (Claim{Kind: kind, Expect: orders[kind][0]}); c.worse(v) {
				t.Errorf("a %s that is %q is missed", kind, v)
			}
		}
	}
	if len(AllVerdicts()) != 14 {
		t.Errorf("%d words are counted", len(AllVerdicts()))
	}
	rows := Compare(Ours{
		"olaf/aom.40g.reduction":        Of(stat(60, 1, 30)),       // a match is expected
		"olaf/aom.20g.reduction":        Of(stat(60, 1, 29)),       // too few runs to be a miss
		"olaf/fig7.speedup.smallest":    Of(stat(0.873, 0.028, 5)), // the opposite is expected
		"olaf/fig10.fifo.s1_at_0.1":     Of(stat(2900, 100, 100)),  // not shown to be above
		"olaf/table1.fifo.40g.lost_pct": Of(stat(5, .1, 30)),       // contradicts the paper
	})
	var missed []string
	for _, r := range FindMisses(rows) {
		missed = append(missed, r.ID)
	}
	if got := strings.Join(missed, " "); got != "olaf/aom.40g.reduction olaf/fig10.fifo.s1_at_0.1" {
		t.Errorf("missed %s", got)
	}
}

// TestTrainingsAreExpected judges the numbers of earlier full training runs, which docs/notes/trainings.md and
// docs/notes/reproduction.md report.
func TestTrainingsAreExpected(t *testing.T) {
	rows := Compare(Ours{
		"olaf/fig8.reward_over_fifo.40g": Of(stat(23, 17, 5)),
		"olaf/fig8.reward_over_fifo.20g": Of(stat(67, 33, 5)),
		"olaf/fig2.reward.periodic_aggregation_over_sync": Of(results.Describe([]results.Float{59.4, 80.9, 45.4, 67.6,
			22.8}, "")),
	}, "olaf/fig8", "olaf/fig2")
	got := map[string]string{}
	for _, r := range rows {
		got[r.ID] = r.Verdict
	}
	for id, want := range map[string]Verdict{"olaf/fig8.reward_over_fifo.40g": TrendOnly,
		"olaf/fig8.reward_over_fifo.20g": WithinTwo, "olaf/fig2.reward.periodic_aggregation_over_sync": Holds} {
		if got[id] != string(want) {
			t.Errorf("%s: %s, want %s", id, got[id], want)
		}
	}
	if m := FindMisses(rows); len(m) > 0 {
		t.Errorf("missed %+v", m)
	}
}

// TestTrends checks the verdicts on trends of small curves over two seeds whose differences are 1 apart, so that their
// half-width is 12.7/2.
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
		{"a seed that only one has is left out", Over([]results.Float{10, 110, 5}, []results.Float{3, 102,
			results.Missing()}), 7.5, half, false},
		{"a fall is of the ends", Falls(curve([2]results.Float{50, 51}, [2]results.Float{40, 40},
			[2]results.Float{20, 20})), 30.5, half, false},
		{"a step that rises clearly breaks it", Falls(curve([2]results.Float{50, 51}, [2]results.Float{40, 40},
			[2]results.Float{48, 49}, [2]results.Float{20, 20})), 30.5, half, true},
		{"one that may not rise does not", Falls(curve([2]results.Float{50, 51}, [2]results.Float{40, 40},
			[2]results.Float{44, 45}, [2]results.Float{20, 20})), 30.5, half, false},
		{"a rise is a fall below 0", Falls(curve([2]results.Float{20, 20}, [2]results.Float{50, 51})), -30.5, half, true},
		{"a spread is of the extremes, of the mean over all",
			Spread(curve([2]results.Float{99, 99}, [2]results.Float{100, 100}, [2]results.Float{101, 102})),
			100 * 2.5 / (300.5 / 3), 100 * half / (300.5 / 3), false},
		{"a spread that falls", Spread(curve([2]results.Float{101, 102}, [2]results.Float{99, 99})),
			100 * 2.5 / (200.5 / 2), 100 * half / (200.5 / 2), false},
		{"a point without values has no part in it",
			Spread([][]results.Float{{101, 102}, {results.Missing(), results.Missing()}, {99, 99}}),
			100 * 2.5 / (200.5 / 2), 100 * half / (200.5 / 2), false},
		{"of which none is the first or last", Spread(curve([2]results.Float{100, 100}, [2]results.Float{90, 90},
			[2]results.Float{111, 112}, [2]results.Float{100, 100})), 100 * 21.5 / (401.5 / 4), 100 * half / (401.5 / 4), false},
		{"a gap narrows by what it was larger", Over(Gap([]results.Float{10, 30}, []results.Float{30, 10}),
			Gap([]results.Float{5, 10}, []results.Float{10, 4})), 14.5, half, false},
	} {
		if !(math.Abs(float64(c.got.Mean)-c.mean) < 1e-9 && math.Abs(float64(c.got.CI95)-c.half) < 1e-6) ||
			(c.got.Breaks != "") != c.breaks {
			t.Errorf("%s: %v ± %v, %q; want %v ± %v", c.name, c.got.Mean, c.got.CI95, c.got.Breaks, c.mean, c.half)
		}
	}
	if m := Falls(curve([2]results.Float{50, 51}, [2]results.Float{40, 40},
		[2]results.Float{58, 59})); m.Breaks != "it increases by 18.5 ± 6.4 from point 2 to 3" {
		t.Errorf("it is broken because %s", m.Breaks)
	}
	for name, m := range map[string]Measured{"a fall": Falls(nil),
		"a fall of one point": Falls(curve([2]results.Float{1, 2})), "a spread": Spread(nil),
		"a spread of a point without values": Spread([][]results.Float{{}})} {
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
		return results.Comparison{Queue: queue, Versus: versus, OutRateBPS: 20e9,
			AoMReduction: results.AoMReduction{WorkerCluster: stat(78, 1, 30), ClusterCluster: stat(48, 1, 30),
				WorkerWorker: stat(58, 1, 30)}}
	}
	b := &results.Bench{
		Rows: []results.Row{row("olaf", 40e9, cdf(.4, 1)), row("olaf", 20e9, cdf(.3, .6, 1)),
			row("olaf", 5e9, cdf(.35, .36, .5, 1)), row("fifo", 20e9, cdf(1))},
		Comparisons: []results.Comparison{reduction("olaf", "fifo")},
	}
	rows := map[string]results.PaperRow{}
	for _, r := range Compare(FromBench(b)) {
		rows[r.ID] = r
	}
	for id, want := range map[string]Verdict{
		"olaf/table1.olaf.40g.received": Match, "olaf/aom.20g.reduction": Match, "olaf/aom.40g.reduction": LeftOut,
		// more on average, but the distributions cross
		"olaf/fig6.aggregations.20g_right_of_40g": Holds, "olaf/fig6.aggregations.5g_right_of_20g": Differs,
	} {
		if rows[id].Verdict != string(want) {
			t.Errorf("%s: %s, want %s", id, rows[id].Verdict, want)
		}
	}
	// 2·(1−.3) … : 0.7 + 0.4 aggregations against 0.6, and both intervals.
	// Counts of 4823 and 7204 that spread alike let the ratio spread by at most what both do together.
	sd := stat(0, 10, 30).SD
	slow, fast := 1.1*(sd/4823+sd/7204), 0.6*(sd/4823+sd/7204)
	_, half := difference(&results.Statistic{SD: slow, N: 30}, &results.Statistic{SD: fast, N: 30})
	if s := rows["olaf/fig6.aggregations.20g_right_of_40g"].Ours; math.Abs(float64(s.Mean)-0.5) > 1e-12 ||
		math.Abs(float64(s.CI95)-half) > 1e-12 || s.N != 30 {
		t.Errorf("%+v, want 0.5 ± %v", s, half)
	}
	b.Rows = b.Rows[:2]
	if m, ok := FromBench(b)["olaf/fig6.aggregations.5g_right_of_20g"]; ok {
		t.Errorf("without 5 Gbps its distribution is right by %v", m.Mean)
	}
	b.Rows[0].CDF, b.Rows[1].CDF = cdf(.4, 1), cdf(.4, 1)
	if m := FromBench(b)["olaf/fig6.aggregations.20g_right_of_40g"]; m.Breaks == "" {
		t.Error("equal distributions are right of each other")
	}
	if s := rows["olaf/aom.20g.reduction"].Sensitivity; len(s) != 2 || s[0].Ours.Mean != 48 ||
		s[1].Ours.Mean != 58 || s[0].Verdict+s[1].Verdict != "" {
		t.Errorf("like for like beside it: %+v", s)
	}
	for name, swapped := range map[string]results.Comparison{"what does not merge under what does": reduction(
		"fifo", "olaf"), "two that merge": reduction("olaf", "olaf")} {
		b.Comparisons = []results.Comparison{swapped}
		if _, ok := FromBench(b)["olaf/aom.20g.reduction"]; ok {
			t.Errorf("%s is set beside the paper's reduction", name)
		}
	}
}

// TestAgesAbovePathAreNotJudged checks that the reduction of ages above the fastest path is left out, with a reason that
// names their metric.
func TestAgesAbovePathAreNotJudged(t *testing.T) {
	runs := func(queue string, age metric.Float) []results.Run {
		r := results.Run{Queue: queue, OutRateBPS: 20e9, Declared: toy.Declared,
			Metrics: toy.Values(map[string]metric.Float{"aom_cluster_ns": age, "aom_worker_ns": age})}
		r.KeepAbovePath()
		return []results.Run{r}
	}
	row := func(queue string) results.Row {
		aggregated := results.Stat{Metric: &metric.Metric{Name: "aggregated"}, Statistic: stat(7204, 10, 30)}
		return results.Row{Queue: queue, OutRateBPS: 20e9, CDF: []results.CDFPoint{{P: .4}, {LE: 1, P: 1}}, Stats: results.Stats{aggregated}}
	}
	b := &results.Bench{Rows: []results.Row{row("olaf")}, Comparisons: []results.Comparison{results.CompareRuns(runs("olaf", 20), runs("fifo", 90))}}
	found := false
	for _, r := range Compare(FromBench(b)) {
		if r.ID == "olaf/aom.20g.reduction" {
			found = true
			if r.Verdict != string(LeftOut) || !strings.Contains(r.Note, "aom_cluster_above_path_ns") {
				t.Errorf("the verdict is %s: %s; it must be left out", r.Verdict, r.Note)
			}
		}
	}
	if !found {
		t.Error("the reduction has no row")
	}
}

// TestClaimsWithoutValuesHaveReasons checks that every claim without a value of ours has a verdict and a reason.
func TestClaimsWithoutValuesHaveReasons(t *testing.T) {
	rows := Compare(nil)
	if len(rows) != len(ListClaims()) {
		t.Errorf("%d rows for %d claims", len(rows), len(ListClaims()))
	}
	for _, r := range rows {
		judged := r.Basis == string(Arithmetic) || r.Verdict == string(Contradiction)
		v := Verdict(r.Verdict)
		if (v.IsUnmeasured() || v == LeftOut) == judged || r.Note == "" {
			t.Errorf("%s: %s, %q", r.ID, r.Verdict, r.Note)
		}
	}
}

// TestStoredRowsAreJudgedAnew checks rows as the first version of documents stored them.
func TestStoredRowsAreJudgedAnew(t *testing.T) {
	stored := func(id string, s results.Statistic) results.PaperRow {
		return results.PaperRow{ID: id, Ours: s, Verdict: "reproduced", Than: results.Missing()}
	}
	b := &results.Bench{Comparisons: []results.Comparison{}}
	got := map[string]string{}
	for _, r := range JudgeAgain([]results.PaperRow{
		stored("table2.olaf.aom_s1", stat(233, 1, 100)),
		stored("table2.olaf.aom_s2", stat(234, 1, 10)),
		stored("table3.fifo.jain", stat(.71, .01, 100)),
		stored("table3.olaf_tc.gap_narrows", single(1)),
		stored("table1.olaf_40g.lost", stat(1518, 20, 30)),
	}, b) {
		got[r.ID] = r.Verdict
	}
	for _, r := range JudgeAgain([]results.PaperRow{stored("table3.fifo.jain", stat(.71, .01, 100)),
		stored("table3.olaf_tc.gap_narrows", single(1)), stored("fig7.speedup.smallest", single(1))}, b) {
		why := map[string]string{"olaf/table3.fifo.jain": ofWorkers,
			"olaf/table3.olaf_tc.gap_narrows": "N counted senders and now counts clusters",
			"olaf/fig7.speedup.smallest":      "it stored only whether the trend held"}[r.ID]
		if !strings.HasPrefix(r.Note, "stored by an earlier olafctl: "+why+"; run it again; ") {
			t.Errorf("%s: %q", r.ID, r.Note)
		}
	}
	want := map[string]string{"olaf/table2.olaf.aom_s1": string(Near), "olaf/table2.olaf.aom_s2": string(Near),
		"olaf/table3.fifo.jain": string(LeftOut), "olaf/table3.olaf_tc.gap_narrows": string(LeftOut)}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestOldNamesAreFound checks that every claim and experiment from before papers had names is found by its old name.
func TestOldNamesAreFound(t *testing.T) {
	for was, now := range map[string]string{
		"table1":                           "olaf/table1",
		"table1-trace":                     "olaf/table1-trace",
		"table1.olaf_40g.received":         "olaf/table1.olaf.40g.received",
		"table1.fifo_20g.lost_pct":         "olaf/table1.fifo.20g.lost_pct",
		"aom.40g.reduction":                "olaf/aom.40g.reduction",
		"aom.40g.reduction_literal":        "aom.40g.reduction_literal", // no longer a claim
		"fig10.fifo.s1_at_0.1":             "olaf/fig10.fifo.s1_at_0.1",
		"table3.olaf_tc.gap_narrows":       "olaf/table3.olaf_tc.gap_narrows",
		"iswitch.sync_speedup_over_ps.dqn": "iswitch/table3.sync_speedup_over_ps.dqn",
		"xagg.over_tcp.throughput":         "xagg/text.over_tcp.throughput",
		"p4inc-aoi.heuristic_time.about":   "p4inc/table1.50_jobs.tw_time",
		"olaf/table1":                      "olaf/table1",
		"bench":                            "bench",
		"nothing.of.ours":                  "nothing.of.ours",
	} {
		if got := Canonical(was); got != now {
			t.Errorf("%s is %s, want %s", was, got, now)
		}
	}
	for name, file := range map[string]string{"olaf/table1": "table1", "iswitch/table4": "iswitch-table4",
		"bench": "bench", "iswitch/table1": "iswitch-table1"} {
		if got := FileName(name); got != file {
			t.Errorf("files of %s are named %s, want %s", name, got, file)
		}
	}
	old := 0
	for _, c := range ListClaims() {
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

// TestEveryComparisonHasAGrade checks that the verdicts that compare numbers have a colour, and the others none.
func TestEveryComparisonHasAGrade(t *testing.T) {
	for _, v := range AllVerdicts() {
		compared := !slices.Contains([]Verdict{Contradiction, TooShort, LeftOut, NotTestable, TheirMachine}, v)
		if (v.Grade() != "") != compared {
			t.Errorf("%s has grade %q", v, v.Grade())
		}
	}
	for kind, order := range orders {
		if order[0].Grade() != Good || order[len(order)-1].Grade() != Bad {
			t.Errorf("%v: the best verdict is %q and the worst %q", kind, order[0].Grade(), order[len(order)-1].Grade())
		}
	}
}
