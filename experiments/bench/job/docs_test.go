package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// TestMetricsPageListsJobNumbers checks that every number of a job, and every counter of its hosts, is on the page of
// metrics with its unit and description.
func TestMetricsPageListsJobNumbers(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "metric-list.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	row := func(name, unit, doc string) {
		if line := fmt.Sprintf("| `%s` | %s | %s |\n", name, unit, doc); name == "" || doc == "" || !strings.Contains(page, line) {
			t.Errorf("docs/reference/metric-list.md lacks\n%s", line)
		}
	}
	for _, r := range closedloop.ListRows() {
		row(r.Name, r.Unit, r.Doc)
	}
	row(ceilingName, "bit/s", closedloop.CeilingAbout)
	for _, c := range endpoint.Describe().Counters {
		row(c.Name, c.Unit, c.Doc)
	}
	for _, i := range endpoint.Describe().Identities {
		if rule := strings.Join(i.Left, " + ") + " = " + strings.Join(i.Right, " + "); !strings.Contains(page, rule) {
			t.Errorf("docs/reference/metric-list.md lacks %s", rule)
		}
	}
}

// TestBenchesAndJobsShareNames checks that a name means the same for a closed-loop bench and a job.
func TestBenchesAndJobsShareNames(t *testing.T) {
	shared := 0
	for _, s := range system.All().LoopedOnes() {
		d := s.LoopDeclaration()
		for _, r := range closedloop.ListRows() {
			if r.Name == "duration_ns" { // a bench measures it from the first to the last delivery
				continue
			}
			if m := d.Metric(r.Name); m != nil {
				if shared++; m.Title != r.Title || m.Unit != r.Unit || m.Doc != r.Doc {
					t.Errorf("%s: %s, %q, %q in a bench, and %s, %q, %q in a job", r.Name, m.Unit, m.Title, m.Doc, r.Unit, r.Title,
						r.Doc)
				}
			}
			if i := d.Ledger.Index(r.Name); i >= 0 {
				if c := &d.Ledger.Counters[i]; c.Title != r.Title || c.Unit != r.Unit || c.Doc != r.Doc {
					t.Errorf("%s is counted as %s, %q, %q in a bench, and is %s, %q, %q in a job", r.Name, c.Unit, c.Title, c.Doc,
						r.Unit, r.Title, r.Doc)
				}
			}
		}
	}
	if shared < 10 {
		t.Errorf("%d numbers have one name", shared)
	}
}
