package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/report/reporttest"
	"github.com/olafctl/olaf/results/sheets"
)

func written(t testing.TB, r *sheets.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSelfContainedAndDeterministic(t *testing.T) {
	r := example.Result(3)
	html := written(t, r)
	if html != written(t, r) {
		t.Error("two writings differ")
	}
	for _, bad := range []string{"<script", "http-equiv", "@import", "url(", "ZgotmplZ", "NaN", "<no value>"} {
		if strings.Contains(html, bad) {
			t.Errorf("the report holds %q", bad)
		}
	}
	// Names of XML vocabularies are not fetched; nothing else may point outside.
	for _, link := range regexp.MustCompile(`(src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if link[2] != "data:," {
			t.Errorf("the report points to %s", link[2])
		}
	}
	for _, want := range []string{"Aggregations per outgoing update", "too short", "contradiction", "made by <code>olafctl bench", "An example, not a measurement.", "<dt>slots</dt><dd>8</dd>"} {
		if !strings.Contains(html, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, each := range []string{"<summary>data</summary>", "made by <code>olafctl bench"} {
		if n := strings.Count(html, each); n < 6 {
			t.Errorf("%d of 6 figures have a %s", n, each)
		}
	}
	if n := strings.Count(html, "<svg"); n != 7 {
		t.Errorf("%d figures, want 7", n)
	}
}

// TestRealRunsAreMarked checks that the head of a report shows the quality of runs on real wires.
func TestRealRunsAreMarked(t *testing.T) {
	r := example.Result(2)
	r.Bench.Rows[0].Withheld = &results.Withheld{Runs: 2, Reason: "the pacer stalled"}
	head, _, _ := strings.Cut(written(t, r), "</header>")
	if !strings.Contains(head, ": ages of 2 runs withheld, counts are valid: the pacer stalled</p>") {
		t.Error(head)
	}
}

func TestTextIsEscaped(t *testing.T) {
	r := example.Result(2)
	r.Bench.Statements = []string{"<script>alert(1)</script>"}
	r.Bench.Experiment = `<img src=x onerror="alert(1)">`
	for i := range r.Bench.Rows {
		r.Bench.Rows[i].Queue = "<b>q</b>"
	}
	if html := written(t, r); strings.Contains(html, "<script") || strings.Contains(html, "<img") || strings.Contains(html, "<b>q</b>") {
		t.Error("text of the result became markup")
	}
}

func TestInvalidAndEmptyResults(t *testing.T) {
	r := example.Result(2)
	r.Bench.Rows[0].Valid, r.Bench.Rows[0].Reasons = false, []string{"run 0: the capture lost 3 frames"}
	if html := written(t, r); !strings.Contains(html, "✗ not valid") || !strings.Contains(html, "the capture lost 3 frames") {
		t.Error("a result that is not valid does not say so")
	}
	written(t, &sheets.Result{Bench: &results.Bench{}})
}

// TestReportOfASimulation checks that a simulation's report does not mention a device or a capture.
func TestReportOfASimulation(t *testing.T) {
	r := example.Result(2)
	r.Bench.Provenance.Device, r.Bench.Provenance.Started = "", "2026-01-02T03:04:05Z"
	for i := range r.Bench.Rows {
		r.Bench.Rows[i].Valid = true
	}
	html := written(t, r)
	if !strings.Contains(html, `<p class="soft">2 January 2026, 03:04 UTC`) || !strings.Contains(html, "every run kept the accounting identities<") {
		t.Error(html[:min(len(html), 4000)])
	}
	for _, want := range []string{"<small>OLAF §8.1, Table 1: calibrated; 2 of 30 runs; ", "predicted; not measured"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestClaimsAreRoundedToInterval checks that digits below the interval are not shown.
func TestClaimsAreRoundedToInterval(t *testing.T) {
	c := claimOf(&results.PaperRow{Ours: results.Statistic{Mean: 2131.91, CI95: 439.147, N: 10}, Published: 1714})
	if c.Ours != "2130" || c.Half != "440" || c.Published != "1714" {
		t.Errorf("%+v", c)
	}
	c = claimOf(&results.PaperRow{Ours: results.Describe(nil, "not measured"), Published: 82})
	if c.Ours != "" || c.Half != "" {
		t.Errorf("%+v", c)
	}
}

// TestReportInChromium checks that a report renders, wide and narrow, that nothing overlaps or is cut off, and that
// nothing is fetched.
func TestReportInChromium(t *testing.T) {
	html := written(t, example.Result(6))
	for _, width := range []int{1280, 400} {
		for name, found := range reporttest.Show(t, width, map[string]string{"bench": html}) {
			if found != "FINE 7 figures" {
				t.Errorf("%s at %d px: %s", name, width, found)
			}
		}
	}
}

func BenchmarkReport(b *testing.B) {
	r := example.Result(30)
	b.ReportAllocs()
	for b.Loop() {
		written(b, r)
	}
}
