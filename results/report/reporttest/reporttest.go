// Package reporttest renders reports in a browser and finds layout faults.
package reporttest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/internal/test/peer"
)

// probe is a script that is inserted into a copy of the page. It reports overlapping and truncated elements in the
// page's title.
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

// frames is a page that shows reports in frames of a given width, because headless windows cannot be narrower than 500
// px. It collects the results of their probes.
const frames = `<link rel="icon" href="data:,"><title>waiting</title><body style="margin:0">
<script>
const told = {};
function tell(frame, count) {
  setTimeout(() => { told[frame.name] = frame.contentDocument.title; if (Object.keys(told).length == count) document.title = Object.entries(told).map(e => e.join("\t")).join("\n"); }, 50);
}
</script>`

// Show loads pages in chromium, all at the same time and each in a frame that is width px wide. It returns the findings
// by page name: FINE and the number of figures, or the elements that overlap or are cut off. It fails the test if a
// page fetches anything, and skips it if chromium is not installed. Screenshots are saved in the folder $OLAF_KEEP.
func Show(t *testing.T, width int, pages map[string]string) map[string]string {
	t.Helper()
	browser := peer.NeedProgram(t, "chromium")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page, ok := pages[strings.TrimPrefix(r.URL.Path, "/")]
		switch {
		case ok:
			fmt.Fprint(w, strings.Replace(page, "<head>", "<head>"+probe, 1))
		case r.URL.Path == "/":
			fmt.Fprint(w, frames)
			for _, name := range slices.Sorted(maps.Keys(pages)) {
				fmt.Fprintf(w, `<iframe name="%s" src="/%s" width="%d" height="9000" style="border:0; display:block" onload="tell(this, %d)"></iframe>`, name, name, width, len(pages))
			}
		default:
			t.Errorf("a report fetches %s", r.URL.Path)
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	if keep := os.Getenv("OLAF_KEEP"); keep != "" {
		for name := range pages {
			run(t, browser, width, "--screenshot="+filepath.Join(keep, fmt.Sprintf("%s-%d.png", name, width)), server.URL+"/"+name)
		}
	}
	dom := run(t, browser, width, "--dump-dom", server.URL+"/")
	found := map[string]string{}
	if title := regexp.MustCompile(`(?s)<title>(.*?)</title>`).FindSubmatch(dom); title != nil {
		for line := range strings.Lines(string(title[1])) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
			found[name] = text
		}
	}
	if len(found) != len(pages) {
		t.Errorf("%d px: %d of %d pages were shown: %.500s", width, len(found), len(pages), dom)
	}
	return found
}

// patience is the maximum time that the browser may take. It is long enough for a machine that runs many other
// processes.
const patience = 5 * time.Minute

// run runs the browser with a new profile and returns its output.
func run(t *testing.T, browser string, width int, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser,
		append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(t.TempDir(), "profile"),
			fmt.Sprintf("--window-size=%d,9000", max(width, 600)), "--virtual-time-budget=4000"}, args...)...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errors.String())
	}
	if strings.Contains(errors.String(), "CONSOLE") {
		t.Errorf("%d px: the console says %s", width, errors.String())
	}
	return out
}
