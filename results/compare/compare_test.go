package compare

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

func side(name string, aom ...float64) *Side {
	s := &Side{Name: name, Experiment: "table1", Config: json.RawMessage(`{"slots":8,"name":"` + name + `"}`)}
	for i, v := range aom {
		s.Runs = append(s.Runs, results.Run{Queue: "olaf", OutRateBPS: 40e9, Index: i, Seed: uint64(i),
			Declared: toy.Declared, Counters: toy.Counts(nil),
			Metrics: toy.Values(map[string]results.Float{"aom_cluster_ns": results.Float(v)})})
	}
	return s
}

func line(t *testing.T, d *Document, metric string) Line {
	t.Helper()
	for _, l := range d.Lines {
		if l.Metric == metric {
			return l
		}
	}
	t.Fatalf("no line %s", metric)
	return Line{}
}

func TestSeparatedSamplesAreSignificant(t *testing.T) {
	d, err := CompareResults(side("a", 10, 11, 12, 13, 14, 15, 16), side("b", 20, 21, 22, 23, 24, 25, 26))
	if err != nil {
		t.Fatal(err)
	}
	// Seven pairs that all differ by 10: p = 2/2^7 from the signs.
	l := line(t, d, "aom_cluster_ns")
	if l.Verdict != "higher" || l.Effect != 1 || l.Difference.Mean != 10 || l.Difference.CI95 != 0 ||
		l.Difference.N != 7 || l.P != 2.0/128 || l.Test != pairedT || l.ChangePct < 76.9 || l.ChangePct > 77 {
		t.Errorf("%+v", l)
	}
	if len(d.Warnings) != 0 || !d.Significant() {
		t.Error(d.Warnings)
	}
	if len(d.Config) != 1 || d.Config[0] != (Setting{"name", "a", "b"}) {
		t.Errorf("%+v", d.Config)
	}
	back, err := CompareResults(side("b", 20, 21, 22, 23, 24, 25, 26), side("a", 10, 11, 12, 13, 14, 15, 16))
	if l := line(t, back, "aom_cluster_ns"); err != nil || l.Verdict != "lower" || l.Effect != -1 {
		t.Errorf("%+v %v", l, err)
	}
}

func TestMixedAndIdenticalSamples(t *testing.T) {
	d, err := CompareResults(side("a", 1, 2, 3, 4, 5, 6), side("b", 1.5, 2.5, 2.4, 4.4, 4.6, 6.1))
	if l := line(t, d, "aom_cluster_ns"); err != nil || l.Verdict != notSeen {
		t.Errorf("%+v %v", l, err)
	}
	d, err = CompareResults(side("a", 1, 2, 3, 4, 5, 6), side("b", 1, 2, 3, 4, 5, 6))
	if l := line(t, d, "aom_cluster_ns"); err != nil || l.Verdict != notSeen || l.P != 1 || d.Significant() {
		t.Errorf("%+v %v", l, err)
	}
}

// TestPairsDecide checks that a small difference within pairs is found although the spread between seeds hides it, and
// that it is not found without pairs.
func TestPairsDecide(t *testing.T) {
	a, b := side("a", 100, 200, 300, 400, 500, 600, 700, 800), side("b", 101.2, 200.9, 301.1, 401, 500.8, 601.3,
		701, 800.9)
	d, err := CompareResults(a, b)
	if err != nil {
		t.Fatal(err)
	}
	l := line(t, d, "aom_cluster_ns")
	if l.Verdict != higher || !(l.PHolm < alpha) || !(l.PSignedRank < 0.01) || l.Test != pairedT {
		t.Errorf("%+v", l)
	}
	for i := range b.Runs {
		b.Runs[i].Seed += 100
	}
	if d, err = CompareResults(a, b); err != nil {
		t.Fatal(err)
	}
	if l := line(t, d, "aom_cluster_ns"); l.Verdict != notSeen || l.Test != rankSum || l.PSignedRank.Known() {
		t.Errorf("without common seeds: %+v", l)
	}
}

// TestManyQuestionsCostMore checks that a difference that would be significant alone is not significant among others.
func TestManyQuestionsCostMore(t *testing.T) {
	d := &Document{}
	for _, p := range []results.Float{0.03, 0.5, 0.6} {
		d.Lines = append(d.Lines, Line{Test: pairedT, P: p, Difference: Paired{Statistic: results.Statistic{Mean: 1}}})
	}
	if d.judge(); d.Lines[0].Verdict != notSeen || d.Lines[0].PHolm != 0.09 {
		t.Errorf("%+v", d.Lines[0])
	}
	d.Lines = d.Lines[:1]
	if d.judge(); d.Lines[0].Verdict != higher {
		t.Errorf("%+v", d.Lines[0])
	}
}

func TestFewAndInvalidRunsAreWarnedOf(t *testing.T) {
	a, b := side("a", 1, 2, 3, 4, 5, 6, 7), side("b", 10, 20, 30)
	a.Runs[0].Invalid = []string{"capture lost"}
	b.Runs[1].Seed = 99
	b.Partial = true
	d, err := CompareResults(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(d.Warnings, "\n"); !strings.Contains(text, "b was interrupted") ||
		strings.Contains(text, "a was interrupted") {
		t.Error(text)
	}
	if text := strings.Join(d.Warnings, "\n"); !strings.Contains(text, "excluded as invalid: 1 of 7 runs") ||
		strings.Contains(text, "too few") == (d.Lines[0].Verdict != tooFew) {
		t.Error(text)
	}
	if l := line(t, d, "aom_cluster_ns"); l.A.N != 6 || l.Difference.N != 1 {
		t.Errorf("%+v", l)
	}
}

// TestRealAndVirtualComparisonWarns checks that real measurements are never compared with virtual time without a
// warning.
func TestRealAndVirtualComparisonWarns(t *testing.T) {
	a, b := side("a", 0, 1, 2, 3, 4, 5), side("b", 0, 1, 2, 3, 4, 5)
	for _, c := range []struct {
		of   []*Side
		says string
	}{
		{nil, ""}, {[]*Side{b}, "olaf at 40Gbps: b was measured on real cables with a machine's clock, a was not"},
		{[]*Side{a}, ""},
	} {
		for _, s := range c.of {
			for i := range s.Runs {
				s.Runs[i].LatenessNS = new(olaf.Quantiles)
			}
		}
		d, err := CompareResults(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(d.Warnings, "\n"); strings.Contains(text, "real cables") != (c.says != "") ||
			!strings.Contains(text, c.says) {
			t.Errorf("%q, want %q", text, c.says)
		}
	}
}

// TestPairsAreOfEqualSeed checks the pairs if seeds 0 to 6 are compared with seeds 2 to 8, and the warning if no seed
// is common.
func TestPairsAreOfEqualSeed(t *testing.T) {
	a, b := side("a", 0, 1, 2, 3, 4, 5, 6), side("b", 12, 13.5, 14, 15.5, 16, 17, 18)
	for i := range b.Runs {
		b.Runs[i].Seed += 2
	}
	d, err := CompareResults(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if l := line(t, d, "aom_cluster_ns"); l.Difference.N != 5 || l.Difference.Mean != 10.2 || len(d.Warnings) != 0 {
		t.Errorf("%+v %q", l.Difference, d.Warnings)
	}
	for i := range b.Runs {
		b.Runs[i].Seed += 10
	}
	if d, err = CompareResults(a, b); err != nil || !strings.Contains(strings.Join(d.Warnings, "\n"),
		"olaf at 40Gbps: both sides have no seed in common") {
		t.Errorf("%q %v", d.Warnings, err)
	}
}

// TestTextIsShort checks that a terminal of 120 columns shows the table with readable units and digits, and that the
// sheet keeps every digit.
func TestTextIsShort(t *testing.T) {
	d, err := CompareResults(side("a", 349362686.6, 351e6, 347e6, 352e6, 344e6, 349e6), side("b", 253248302.1,
		254e6, 252e6, 251e6, 256e6, 250e6))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.WriteText(&b, text.View{Width: 120}, false); err != nil {
		t.Fatal(err)
	}
	want := []string{"olaf at 40Gbps, runs: 6 of A, 6 of B\n",
		"AoM per cluster, ms  348.7 ± 3.0  252.7 ± 2.3  −27.5 %    −96.0 ± 4.7  <0.001        0.031  lower\n"}
	for _, text := range want {
		if !strings.Contains(b.String(), text) {
			t.Errorf("no %q in\n%s", text, b.String())
		}
	}
	sheet := d.Sheet()
	b.Reset()
	if err := sheet.WriteCSV(&b); err != nil || sheet.Title != d.B+" against "+d.A || !strings.Contains(b.String(),
		",348727114.43333") {
		t.Errorf("%s %v", b.String(), err)
	}
}

// TestListsOfSettingsAreFolded checks that differences in a list of 100 seeds take one line.
func TestListsOfSettingsAreFolded(t *testing.T) {
	a, b := side("a", 1), side("b", 2)
	b.Config = json.RawMessage(`{"name":"b","seeds":[` + strings.Repeat("1,", 99) + `7]}`)
	d, err := CompareResults(a, b)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(d.notes(), "\n")
	if strings.Count(notes, "config ") != 3 || !strings.Contains(notes, "config seeds: (none) → 1 … 7\n") ||
		len(d.Config) != 102 {
		t.Errorf("%d settings differ:\n%s", len(d.Config), notes)
	}
}

func TestMarkdown(t *testing.T) {
	d, err := CompareResults(side("a", 1, 2, 3, 4, 5, 6), side("b", 11, 12, 13, 14, 15, 16))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.WriteMarkdown(&b, true); err != nil || !strings.Contains(b.String(),
		"**olaf at 40Gbps, runs: 6 of A, 6 of B**\n\n| METRIC | A | B |") || !strings.Contains(b.String(),
		"| AoM per cluster, ns | ") {
		t.Errorf("%v\n%s", err, b.String())
	}
	// Names come from other users' files.
	for i := range d.Lines {
		d.Lines[i].Queue = "a|b *c* `d` <script>[e](f)"
	}
	b.Reset()
	if err := d.WriteMarkdown(&b, true); err != nil || !strings.Contains(b.String(),
		"**a\\|b \\*c\\* \\`d\\` \\<script>\\[e](f) at 40Gbps") {
		t.Errorf("names must be quoted: %v\n%s", err, b.String())
	}
}

func TestFormatChange(t *testing.T) {
	for pct, want := range map[results.Float]string{12.34: "+12.3 %", -0.01: "0.0 %", -99.96: "−100.0 %",
		0.0499: "0.0 %", 0.05: "+0.1 %", 0.0502: "+0.1 %", -0.0502: "−0.1 %"} {
		if got := text.Percent(pct); got != want {
			t.Errorf("%v prints as %q", pct, got)
		}
	}
	for p, want := range map[results.Float]string{1e-9: "<0.001", 0.000499: "<0.001", 0.0005: "0.001",
		0.000502: "0.001", 0.0304: "0.030"} {
		if got := formatP(p); got != want {
			t.Errorf("a probability of %v prints as %q", p, got)
		}
	}
}

// TestChangeNeedsBothSides checks that the change is over pairs if there are any, and that there is no change if a
// side is missing or its value is 0.
func TestChangeNeedsBothSides(t *testing.T) {
	of := func(values ...results.Float) *results.Statistic { s := results.Describe(values, "why"); return &s }
	for _, c := range []struct {
		pairs [][2]float64
		a, b  *results.Statistic
		want  results.Float
	}{
		{nil, of(10), of(12), 20}, {nil, of(-10, -10), of(-5), -50}, {[][2]float64{{4, 5}}, of(4, 100), of(5, 7), 25},
		{nil, of(), of(1), results.Missing()}, {nil, of(1), of(), results.Missing()}, {nil, of(), of(), results.Missing()},
		{nil, of(0), of(5), results.Missing()}, {nil, of(0), of(0), results.Missing()},
		{nil, of(0), of(), results.Missing()}, {[][2]float64{{0, 5}}, of(0, 4), of(5), results.Missing()},
	} {
		if got := changeOf(c.pairs, c.a, c.b); got != c.want && !(math.IsNaN(float64(got)) && math.IsNaN(float64(c.want))) {
			t.Errorf("from %v to %v, pairs %v: %v, want %v", c.a.Mean, c.b.Mean, c.pairs, got, c.want)
		}
	}
}

// TestClustersWithAnAgeAreShown checks that a cluster is shown if either side has an age, measured or from a twin, and
// not otherwise.
func TestClustersWithAnAgeAreShown(t *testing.T) {
	none, measured := results.Describe(nil, absent), results.Describe([]results.Float{1}, "")
	twin, nothing := none, none
	twin.TwinComparison, nothing.TwinComparison = &results.TwinComparison{Plan: 1, Twin: 2}, &results.TwinComparison{Plan: 1, Twin: results.Missing()}
	for _, side := range []struct {
		s    results.Statistic
		want bool
	}{{none, false}, {measured, true}, {twin, true}, {nothing, false}} {
		for _, c := range []Cluster{{A: side.s, B: none}, {A: none, B: side.s}, {A: side.s, B: nothing},
			{A: nothing, B: side.s}} {
			if c.isKnown() != side.want {
				t.Errorf("%+v beside %+v: told %t", c.A, c.B, !side.want)
			}
		}
	}
	lines := []Cluster{{Title: "AoM", Queue: "olaf", A: twin, B: twin}}
	var b strings.Builder
	if err := clusterSheet(lines).WriteText(&b, 48); err != nil || !strings.HasSuffix(b.String(),
		"not shown at this width: TWIN OF A\n") {
		t.Errorf("%s%v", b.String(), err)
	}
}

// TestNoClockWarningWithoutValidRuns checks that there is no warning about clocks if a side has no valid run.
func TestNoClockWarningWithoutValidRuns(t *testing.T) {
	real := func() []results.Run {
		runs := group("olaf", 40e9, 0, 10, 11)
		for i := range runs {
			runs[i].LatenessNS = new(olaf.Quantiles)
		}
		return runs
	}
	other := group("fifo", 40e9, 0, 50)
	for name, c := range map[string]struct {
		a, b []results.Run
		want int
	}{
		"both valid":   {group("olaf", 40e9, 0, 10), real(), 1},
		"one of B":     {real(), group("olaf", 40e9, 0, 10), 1},
		"none of A":    {invalid(group("olaf", 40e9, 0, 10), 0), real(), 0},
		"none of B":    {real(), invalid(group("olaf", 40e9, 0, 10), 0), 0},
		"none of both": {invalid(real(), 0, 1), invalid(group("olaf", 40e9, 0, 10), 0), 0},
	} {
		d, err := CompareResults(of("a", `{}`, append(c.a, other...)...), of("b", `{}`, append(c.b, other...)...))
		if err != nil || strings.Count(strings.Join(d.Warnings, "\n"), "real cables") != c.want {
			t.Errorf("%s: %v, %q", name, err, d.Warnings)
		}
	}
}

// TestFoldedNames checks that names with an index in a list are folded, and that all other names are unchanged.
func TestFoldedNames(t *testing.T) {
	for name, want := range map[string]string{"a[0]": "a", "a[0][1]": "a[0]", "a[0].b": "a[0].b", "a]": "a]",
		"a": "a", "[0]": "", "]": "]"} {
		if got := foldSettings([]Setting{{Name: name, A: "1", B: "2"}}); len(got) != 1 ||
			got[0] != (Setting{want, "1", "2"}) {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
}

// TestUnitsAreNotRepeated checks that a unit is omitted after a title that begins with it.
func TestUnitsAreNotRepeated(t *testing.T) {
	for title, want := range map[string]string{"Updates lost": "Updates lost", "Lost": "Lost, updates",
		"Up": "Up, updates", "updates": "updates"} {
		if got := sheetOf([]*Line{{Title: title, Unit: "updates"}}).Rows[0][0].Text; got != want {
			t.Errorf("%s: %s, want %s", title, got, want)
		}
	}
}

func TestNothingToCompare(t *testing.T) {
	other := side("b", 1, 2)
	other.Experiment = "fig7"
	if _, err := CompareResults(side("a", 1, 2), other); !errors.Is(err, ErrDifferent) ||
		!strings.Contains(err.Error(), "fig7") {
		t.Error(err)
	}
	other = side("b", 1, 2)
	for i := range other.Runs {
		other.Runs[i].OutRateBPS = 1e6
	}
	none := side("none", 1)
	none.Runs[0].Invalid = []string{"the capture lost 1 frames"}
	if _, err := CompareResults(none, other); !errors.Is(err, ErrDifferent) || !strings.HasSuffix(err.Error(),
		"none has no valid run, b has olaf at 1Mbps") {
		t.Error(err)
	}
	if _, err := CompareResults(side("a", 1, 2), other); !errors.Is(err, ErrDifferent) ||
		!strings.HasSuffix(err.Error(), "a has olaf at 40Gbps, b has olaf at 1Mbps") {
		t.Error(err)
	}
}

// TestSingleConfigurationsAreCompared checks that runs with one queue each, such as simulations, are compared even if
// the queues differ.
func TestSingleConfigurationsAreCompared(t *testing.T) {
	named := func(s *Side, queue string) *Side {
		for i := range s.Runs {
			s.Runs[i].Queue = queue
		}
		return s
	}
	d, err := CompareResults(named(side("a", 1, 2, 3, 4, 5, 6), "fifo"), named(side("b", 11, 12, 13, 14, 15, 16),
		"olaf tc"))
	if err != nil {
		t.Fatal(err)
	}
	if l := line(t, d, "aom_cluster_ns"); l.Queue != "fifo → olaf tc" || l.Verdict != "higher" ||
		l.Difference.Mean != 10 || l.Difference.N != 6 || len(d.Warnings) != 0 {
		t.Errorf("%+v %q", l, d.Warnings)
	}
	two := named(side("b", 1, 2), "fifo")
	two.Runs[1].Queue = "olaf"
	if d, err = CompareResults(two, named(side("a", 1, 2), "olaf tc")); !errors.Is(err, ErrDifferent) {
		t.Errorf("%+v %v", d, err)
	}
}

// TestWithheldIsComparedWithZero checks that withheld updates are compared with 0 if only one side has transmission
// control, and are not compared if neither has.
func TestWithheldIsComparedWithZero(t *testing.T) {
	off, on := side("off", 1, 2, 3, 4, 5, 6), side("on", 1, 2, 3, 4, 5, 6)
	for i := range on.Runs {
		on.Runs[i].Counters.Add("tc_withheld", 6230+int64(i))
	}
	d, err := CompareResults(off, on)
	if err != nil {
		t.Fatal(err)
	}
	l := line(t, d, "tc_withheld")
	if l.Title != "Withheld by transmission control" || l.A.Mean != 0 || l.B.Mean != 6232.5 ||
		l.Difference.Mean != 6232.5 || l.ChangePct.Known() || l.Verdict != "higher" {
		t.Errorf("%+v", l)
	}
	var b strings.Builder
	if err := d.WriteText(&b, text.View{Width: 120}, true); err != nil || !strings.Contains(b.String(),
		"\nWithheld by control, updates      0 ± 0  6232.5 ± 2.0       –   6232.5 ± 2.0  <0.001        0.031  higher\n") {
		t.Errorf("%s %v", b.String(), err)
	}
	if d, err = CompareResults(off, off); err != nil {
		t.Fatal(err)
	}
	for _, l := range d.Lines {
		if l.Metric == "tc_withheld" {
			t.Errorf("compared where neither side withheld anything: %+v", l)
		}
	}
}

func TestWholeExample(t *testing.T) {
	r := example.Result(6)
	s := &Side{Name: "a", Experiment: "table1", Config: r.Bench.Config, Runs: r.Runs}
	d, err := CompareResults(s, s)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.WriteText(&b, text.View{Width: 120}, true); err != nil || !strings.Contains(b.String(), notSeen) {
		t.Error(b.String(), err)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
	for _, l := range d.Lines {
		if l.Verdict != notSeen {
			t.Errorf("a result differs from itself: %+v", l)
		}
	}
}

// TestClusters checks that ages of single clusters are shown, paired by seed, if a side was measured on real cables or
// compared with the twin, and that the text shows those that changed most first if there are many.
func TestClusters(t *testing.T) {
	virtual := func() *Side { return of("a", `{}`, clustered(group("olaf", 40e9, 0, 10, 20), 0, 1)...) }
	other := of("b", `{}`, clustered(group("olaf", 40e9, 1, 30), 1)...)
	d, err := CompareResults(virtual(), other)
	if err != nil || len(d.Clusters) > 0 {
		t.Errorf("of virtual time on both sides: %+v, %v", d.Clusters, err)
	}
	other.Runs[0].LatenessNS = new(olaf.Quantiles)
	for _, order := range [][2]*Side{{virtual(), other}, {other, virtual()}} {
		// mean and peak of two clusters; no worker is known
		if d, err = CompareResults(order[0], order[1]); err != nil || len(d.Clusters) != 4 {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	// Without a common seed, the change is from the mean of all of A's values, 10 and 20, to B's 30. The same holds for
	// a common seed whose age is unknown on one side.
	apart := of("b", `{}`, clustered(group("olaf", 40e9, 9, 30), 0)...)
	apart.Runs[0].LatenessNS = new(olaf.Quantiles)
	if d, err = CompareResults(virtual(), apart); err != nil || d.Clusters[0].ChangePct != 100 {
		t.Errorf("%+v, %v", d.Clusters, err)
	}
	// In the common seed, A's cluster 1 has 200 and B's has 30. B has no cluster 0.
	d, err = CompareResults(virtual(), other)
	if err != nil {
		t.Fatal(err)
	}
	if l := d.Clusters[1]; l.Cluster != 1 || l.Metric != "aom_ns" || l.A.Mean != 150 || l.B.Mean != 30 ||
		math.Abs(float64(l.ChangePct+85)) > 1e-9 {
		t.Errorf("%+v", l)
	}
	if l := d.Clusters[0]; l.Cluster != 0 || l.B.Known() || l.B.Reason != absent || l.ChangePct.Known() || l.A.Mean != 15 {
		t.Errorf("%+v", l)
	}
}

// TestAgeComparedOnEitherSideIsShown checks that an age that one side compared with the twin's is shown, whichever side
// it is.
func TestAgeComparedOnEitherSideIsShown(t *testing.T) {
	plain := func() *Side { return of("plain", `{}`, group("olaf", 3e6, 0, 10, 11)...) }
	twin := func() *Side { return of("twin", `{}`, besideTwin(group("olaf", 3e6, 0, 12, 13), 10, 11.5)...) }
	for _, c := range []struct {
		a, b *Side
		has  [2]bool
	}{{plain(), twin(), [2]bool{false, true}}, {twin(), plain(), [2]bool{true, false}},
		{twin(), twin(), [2]bool{true, true}}} {
		d, err := CompareResults(c.a, c.b)
		if err != nil || len(d.TwinAges) != 1 || [2]bool{d.TwinAges[0].A != nil, d.TwinAges[0].B != nil} != c.has {
			t.Errorf("%s, %s: %+v, %v", c.a.Name, c.b.Name, d.TwinAges, err)
		}
	}
	if d, err := CompareResults(plain(), plain()); err != nil || len(d.TwinAges) > 0 {
		t.Errorf("%+v, %v", d.TwinAges, err)
	}
}

// TestUndecidableLinesDoNotCountInTheCorrection checks that lines that cannot show a difference do not count in the
// correction for the other lines.
func TestUndecidableLinesDoNotCountInTheCorrection(t *testing.T) {
	line := func(p results.Float, mean results.Float, few bool) Line {
		return Line{Test: pairedT, P: p, Difference: Paired{Statistic: results.Statistic{Mean: mean}}, toofew: few}
	}
	d := &Document{Lines: []Line{line(0.5, 1, true), line(0.03, -1, false), line(0.2, 1, true)}}
	if d.judge(); d.Lines[1].PHolm != 0.03 || d.Lines[1].Verdict != lower || d.Lines[0].Verdict != tooFew ||
		!d.Significant() {
		t.Errorf("%+v", d.Lines)
	}
	for p, want := range map[results.Float]string{0.05: notSeen, 0.0499: higher} {
		d := &Document{Lines: []Line{line(p, 1, false)}}
		if d.judge(); d.Lines[0].Verdict != want {
			t.Errorf("a probability of %v is %s", p, d.Lines[0].Verdict)
		}
	}
	for verdict, want := range map[string]bool{higher: true, lower: true, notSeen: false, tooFew: false} {
		if got := (&Document{Lines: []Line{{Verdict: notSeen}, {Verdict: verdict}}}).Significant(); got != want {
			t.Errorf("%s: significant %t", verdict, got)
		}
	}
	if kind, declared := olaf.KindOf(ErrDifferent); kind != olaf.Usage || !declared {
		t.Errorf("%v is of kind %v", ErrDifferent, kind)
	}
}

// TestIntervalsOfManyResamples compares the interval of a difference with that of 2,000 resamples of its pairs.
func TestIntervalsOfManyResamples(t *testing.T) {
	var a, b, differences []float64
	for i := range 60 {
		a, b = append(a, float64(i)), append(b, float64(i)+math.Sin(float64(i*i)))
		differences = append(differences, b[i]-a[i])
	}
	d, err := CompareResults(side("a", a...), side("b", b...))
	if err != nil {
		t.Fatal(err)
	}
	low, high, _ := results.Bootstrap(differences, 2000, 1)
	if l := line(t, d, "aom_cluster_ns"); float64(l.Difference.Low) != low || float64(l.Difference.High) != high ||
		low >= high {
		t.Errorf("%v to %v, want %v to %v", l.Difference.Low, l.Difference.High, low, high)
	}
	if s := d.Sheet(); !slices.Equal(s.Notes, d.notes()) || len(s.Notes) == 0 {
		t.Errorf("%q", s.Notes)
	}
}

// TestTitlesAreFolded checks that the title of a line may take several lines of a narrow page, and is shortened if it
// is long.
func TestTitlesAreFolded(t *testing.T) {
	const long = "a title of many words which no page of sixty characters has room for beside all its columns"
	known := results.Describe([]results.Float{1, 2, 3}, "")
	beside := known
	beside.TwinComparison = &results.TwinComparison{Plan: 1, Twin: 2, Measured: 3}
	for name, s := range map[string]*table.Sheet{
		"lines":    sheetOf([]*Line{{Title: long, Unit: "ns", A: known, B: known}}),
		"clusters": clusterSheet([]Cluster{{Title: long, A: known, B: known}}),
		"beside":   (&Document{TwinAges: []TwinAge{{Title: long, A: beside.TwinComparison}}}).twinSheet(),
	} {
		var b strings.Builder
		if err := s.WriteText(&b, 100); err != nil {
			t.Fatal(err)
		}
		for text := range strings.Lines(b.String()) {
			if utf8.RuneCountInString(text) > 101 {
				t.Errorf("%s: %q", name, text)
			}
		}
		if !strings.HasPrefix(s.Columns[0].Header, "METRIC") && !strings.HasPrefix(b.String(), "AGE ") ||
			!s.Columns[0].Prose {
			t.Errorf("%s:\n%s", name, b.String())
		}
	}
	for title, want := range map[string]string{"Jain's index, clusters": "Jain, clusters",
		"Withheld by transmission control": "Withheld by control", "AoM": "AoM"} {
		if got := sheetOf([]*Line{{Title: title}}).Rows[0][0].Text; got != want {
			t.Errorf("%s is %s", title, got)
		}
	}
}

// TestLinesAreInOrder checks that lines are in the order of A's runs, for one value or more, and that they show the
// rate if there is one.
func TestLinesAreInOrder(t *testing.T) {
	turned := *toy.Declared
	turned.Metrics = slices.Clone(turned.Metrics)
	slices.Reverse(turned.Metrics)
	one, other := group("olaf", 0, 0, 10), group("olaf", 0, 1, 12)
	other[0].Declared = &turned
	names := func(a, b []results.Run) (list []string) {
		d, err := CompareResults(of("a", `{}`, a...), of("b", `{}`, b...))
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Lines {
			list = append(list, d.Lines[i].Metric)
		}
		if text := strings.Join(d.Warnings, "\n"); !strings.Contains(text, "olaf: both sides have no seed in common") {
			t.Error(text)
		}
		var page strings.Builder
		if err := d.WriteText(&page, text.View{Width: 120}, true); err != nil || !strings.HasPrefix(page.String(),
			"olaf, runs: 1 of A, 1 of B\n") || !strings.Contains(page.String(), "\n\nconfig ") &&
			!strings.Contains(page.String(), "\n\nwarning: ") {
			t.Errorf("%v\n%s", err, page.String())
		}
		return list
	}
	forth, back := names(one, other), names(other, one)
	slices.Reverse(back)
	if len(forth) < 4 || slices.Index(forth, "aom_cluster_ns") > slices.Index(forth, "aom_worker_ns") ||
		!slices.Equal(forth, back) {
		t.Errorf("%v, with the sides exchanged %v", forth, back)
	}
	one[0].Metrics = toy.Values(map[string]results.Float{})
	if alone := names(one, other); !slices.Contains(alone, "aom_worker_ns") {
		t.Errorf("of one value in all: %v", alone)
	}
}

// TestRatesHaveSeparateTables checks that the lines of one queue at two rates are printed in two tables.
func TestRatesHaveSeparateTables(t *testing.T) {
	both := append(group("olaf", 40e9, 0, 10, 11), group("olaf", 20e9, 0, 12)...)
	d, err := CompareResults(of("a", `{}`, both...), of("b", `{}`, both...))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := d.WriteMarkdown(&b, true); err != nil || strings.Count(b.String(),
		"**olaf at 40Gbps, runs: 2 of A, 2 of B**") != 1 || strings.Count(b.String(),
		"**olaf at 20Gbps, runs: 1 of A, 1 of B**") != 1 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestPairsAreKnown checks that a run with an unknown value is in no pair.
func TestPairsAreKnown(t *testing.T) {
	value := map[uint64]results.Float{1: 10, 2: results.Missing(), 3: 30}
	of := func(r *results.Run) results.Float {
		if r.Queue == "b" && r.Seed != 3 {
			return value[3-r.Seed] // unknown for seed 1, known for seed 2
		}
		return value[r.Seed]
	}
	var a, b []*results.Run
	for seed := range uint64(4) {
		a, b = append(a, &results.Run{Queue: "a", Seed: seed + 1}), append(b, &results.Run{Queue: "b", Seed: seed})
	}
	if got := pairsBy(of, a, b); len(got) != 1 || got[0] != [2]float64{30, 30} {
		t.Errorf("%v", got)
	}
}

// TestNotesOfManySettings checks that the notes list twelve of the settings that differ, and the number of the others.
func TestNotesOfManySettings(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "", 12: "", 13: "1 more settings differ; -o json lists all",
		14: "2 more settings differ; -o json lists all"} {
		d, err := CompareResults(of("a", settingsOf(n, "1"), group("olaf", 40e9, 0, 10, 11)...),
			of("b", settingsOf(n, "2"), group("olaf", 40e9, 0, 10, 12)...))
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(d.notes(), "\n")
		if strings.Count(notes, "config ") != min(n, 12) || strings.Contains(notes,
			"more settings") != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%d settings:\n%s", n, notes)
		}
		var b strings.Builder
		if err := d.WriteText(&b, text.View{Width: 1000}, true); err != nil || !strings.HasSuffix(b.String(), notes+"\n") {
			t.Errorf("%d settings, as people read it: %v\n%s", n, err, b.String())
		}
	}
}

// TestNarrowPageOmitsLeastImportantColumns checks which columns a narrow page omits, the least important first.
func TestNarrowPageOmitsLeastImportantColumns(t *testing.T) {
	l := Line{Title: "AoM per cluster", Unit: "ns", A: results.Describe([]results.Float{1, 2, 3}, ""),
		B: results.Describe([]results.Float{1, 2, 3}, ""), Verdict: notSeen}
	for width, want := range map[int]string{90: "SIGNED RANK", 78: "SIGNED RANK, CHANGE"} {
		var b strings.Builder
		if err := sheetOf([]*Line{&l}).WriteText(&b, width); err != nil || !strings.HasSuffix(b.String(),
			"not shown at this width: "+want+"\n") {
			t.Errorf("%d wide: %v\n%s", width, err, b.String())
		}
	}
}

// TestMostChanged checks that the twelve lines of twenty that changed most are selected, in their order, and that lines
// with an unknown change come last.
func TestMostChanged(t *testing.T) {
	d := &Document{}
	for i := range 20 {
		change := results.Float(i)
		if i%2 == 1 {
			change = -change
		}
		if i == 19 {
			change = results.Missing()
		}
		d.Clusters = append(d.Clusters, Cluster{Cluster: i, ChangePct: change})
	}
	shown := d.shownClusters(false)
	for i := range shown {
		if shown[i].Cluster != 7+i {
			t.Errorf("%d stands at place %d", shown[i].Cluster, i)
		}
	}
	if len(shown) != mostClusters || len(d.shownClusters(true)) != 20 {
		t.Errorf("%d are shown", len(shown))
	}
	var out strings.Builder
	d.Clusters = d.Clusters[:mostClusters+1]
	if err := d.WriteMarkdown(&out, false); err != nil || !strings.Contains(out.String(),
		"; the 12 that changed most") || !strings.Contains(out.String(), "1 more ages of single clusters; --all lists them") {
		t.Errorf("%s, %v", out.String(), err)
	}
	out.Reset()
	d.Clusters = append(d.Clusters, make([]Cluster, 7)...)
	if err := d.WriteMarkdown(&out, false); err != nil || !strings.Contains(out.String(),
		"; the 12 that changed most") || !strings.Contains(out.String(), "8 more ages of single clusters; --all lists them") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// Significant reports whether any metric differs significantly.
func (d *Document) Significant() bool {
	return slices.ContainsFunc(d.Lines, func(l Line) bool { return l.Verdict == higher || l.Verdict == lower })
}
