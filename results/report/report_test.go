package report

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/internal/peer"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/example"
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
	// Names of XML vocabularies are no addresses to fetch; nothing else may point outside.
	for _, link := range regexp.MustCompile(`(src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if link[2] != "data:," {
			t.Errorf("the report points to %s", link[2])
		}
	}
	for _, want := range []string{"Aggregations per outgoing update", "too short", "contradiction", "made by <code>olafctl bench", "An example, not a measurement."} {
		if !strings.Contains(html, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, each := range []string{"<summary>data</summary>", "made by <code>olafctl bench"} {
		if n := strings.Count(html, each); n < 6 {
			t.Errorf("%d of 6 figures have a %s", n, each)
		}
	}
	if n := strings.Count(html, "<svg"); n != 6 {
		t.Errorf("%d figures, want 6", n)
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

// TestReportOfASimulation holds that nothing is said of a device or a capture where there was none.
func TestReportOfASimulation(t *testing.T) {
	r := example.Result(2)
	r.Bench.Provenance.Device, r.Bench.Provenance.Started = "", "2026-01-02T03:04:05Z"
	for i := range r.Bench.Rows {
		r.Bench.Rows[i].Valid = true
	}
	html := written(t, r)
	if !strings.Contains(html, `<p class="soft">2026-01-02T03:04:05Z`) || !strings.Contains(html, "every run kept the accounting identities<") {
		t.Error(html[:min(len(html), 4000)])
	}
	for _, want := range []string{"<small>OLAF §8.1, Table 1: calibrated; 2 of 30 runs; ", "predicted; not measured"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestClaimsAreRoundedAsTheirIntervalTells holds that no digit is shown that the interval makes meaningless.
func TestClaimsAreRoundedAsTheirIntervalTells(t *testing.T) {
	c := claimOf(&results.PaperRow{Ours: results.Statistic{Mean: 2131.91, CI95: 439.147, N: 10}, Published: 1714})
	if c.Ours != "2132" || c.Half != "439" || c.Published != "1714" {
		t.Errorf("%+v", c)
	}
	c = claimOf(&results.PaperRow{Ours: results.Describe(nil, "not measured"), Published: 82})
	if c.Ours != "" || c.Half != "" {
		t.Errorf("%+v", c)
	}
}

// probe is put into a copy of the page: it reports what a reader would trip over through its title.
const probe = `<script>
window.addEventListener("error", e => document.title = "ERROR " + e.message);
window.addEventListener("load", () => {
  const out = [];
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) out.push("page is " + wide + " px too wide");
  const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const blocks = [...document.querySelectorAll("header, section > h2, figure, .claims tr, section > details")].filter(shown);
  for (let i = 1; i < blocks.length; i++) for (let k = 0; k < i; k++) {
    const a = blocks[i].getBoundingClientRect(), b = blocks[k].getBoundingClientRect();
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (w > 1 && h > 1) out.push(blocks[i].tagName + " overlaps " + blocks[k].tagName);
  }
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    const area = svg.getBoundingClientRect();
    for (const t of svg.querySelectorAll("text")) if (getComputedStyle(t).fill !== getComputedStyle(document.body).color) out.push(t.textContent + " is not in the text's colour");
    if (area.width < 250) out.push("a figure is only " + area.width + " px wide");
    for (let i = 0; i < texts.length; i++) {
      const [name, a] = texts[i];
      if (a.height < 6) out.push(name + " is only " + a.height + " px high");
      if (a.left < area.left - 2 || a.right > area.right + 2 || a.top < area.top - 2 || a.bottom > area.bottom + 2) out.push(name + " leaves its figure");
      for (let k = 0; k < i; k++) {
        const b = texts[k][1];
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2) out.push(name + " overlaps " + texts[k][0]);
      }
    }
  }
  document.title = out.length ? "FOUND " + out.slice(0, 8).join("; ") : "FINE " + document.querySelectorAll("svg").length + " figures";
});
</script>`

// TestChromiumShowsIt loads the report in a real browser, wide and narrow, light and dark: it must render, nothing may
// overlap or be cut off, and nothing may be fetched.
func TestChromiumShowsIt(t *testing.T) {
	browser := peer.Need(t, "chromium")
	dir := t.TempDir()
	if keep := os.Getenv("OLAF_KEEP"); keep != "" {
		dir = keep
	}
	html := written(t, example.Result(6))
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.URL.Path != "/" {
			t.Errorf("the report fetches %s", r.URL.Path)
		}
		page := html
		if r.URL.RawQuery == "probe" {
			page = strings.Replace(html, "<head>", "<head>"+probe, 1)
		}
		// An embedding page of the wanted width: headless windows can't be narrower than 500 px.
		if width, ok := strings.CutPrefix(r.URL.RawQuery, "frame="); ok {
			page = fmt.Sprintf(`<link rel="icon" href="data:,"><title>waiting</title><body style="margin:0"><iframe src="/?probe" width="%s" height="9000" style="border:0" onload="setTimeout(() => document.title = this.contentDocument.title, 50)"></iframe>`, width)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	defer server.Close()
	title := regexp.MustCompile(`(?s)<title>(.*?)</title>`)
	for _, width := range []int{1280, 400} {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(t.TempDir(), "profile"),
			fmt.Sprintf("--window-size=%d,9000", max(width, 600)), "--virtual-time-budget=4000", "--dump-dom", fmt.Sprintf("%s/?frame=%d", server.URL, width)}
		if os.Getenv("OLAF_KEEP") != "" {
			shot := exec.CommandContext(ctx, browser, append(args[:len(args)-2:len(args)-2], "--screenshot="+filepath.Join(dir, fmt.Sprintf("report%d.png", width)), args[len(args)-1])...)
			if out, err := shot.CombinedOutput(); err != nil {
				t.Logf("%v: %s", err, out)
			}
			args[len(args)-1] = fmt.Sprintf("%s/?frame=%d", server.URL, width)
			args[8] = "--user-data-dir=" + filepath.Join(t.TempDir(), "profile2")
		}
		cmd := exec.CommandContext(ctx, browser, args...)
		var errors bytes.Buffer
		cmd.Stderr = &errors
		dom, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, errors.String())
		}
		if strings.Contains(errors.String(), "CONSOLE") {
			t.Errorf("%d px: the console says %s", width, errors.String())
		}
		if got := title.FindSubmatch(dom); got == nil || string(got[1]) != "FINE 6 figures" {
			t.Errorf("%d px: %s", width, got)
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
