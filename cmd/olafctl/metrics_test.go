package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/metric"
)

// TestEveryMetricIsOnThePages holds the lists of the documentation to the rows of counters and metrics.
func TestEveryMetricIsOnThePages(t *testing.T) {
	spaces := regexp.MustCompile(`\s+`)
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return spaces.ReplaceAllString(string(raw), " ")
	}
	metrics, output := read("metrics.md"), read("output.md")
	named := func(page, where, name string) {
		if !regexp.MustCompile("`([a-z0-9_]+ )*" + regexp.QuoteMeta(name) + "( [a-z0-9_]+)*`").MatchString(page) {
			t.Errorf("docs/%s does not tell of `%s`", where, name)
		}
	}
	d := system.Queued()
	for _, m := range d.Metrics {
		named(metrics, "metrics.md", m.Name)
		if !m.Aside {
			named(output, "output.md", m.Name)
		}
		if m.Title == "" || m.Doc == "" {
			t.Errorf("%s has no title or no text", m.Name)
		}
	}
	for _, c := range d.Ledger.Counters {
		named(metrics, "metrics.md", c.Name)
	}
	for _, rule := range d.Ledger.Rules() {
		if !strings.Contains(metrics, rule) {
			t.Errorf("docs/metrics.md does not tell of %q", rule)
		}
	}
	if err := d.Ledger.Validate(); err != nil {
		t.Error(err)
	}
}

// TestEveryStatisticOfNetworksIsOnThePages does the same for what the simulator measures.
func TestEveryStatisticOfNetworksIsOnThePages(t *testing.T) {
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	output, multihop := read("output.md"), read(filepath.Join("experiments", "multihop.md"))
	for _, rows := range [][]*metric.Metric{netsim.RunStatistics(), netsim.TableStatistics(), netsim.SweepStatistics(), netsim.PortStatistics()} {
		for _, m := range rows {
			if !regexp.MustCompile("`([a-z0-9_]+ )*" + m.Name + "( [a-z0-9_]+)*`").MatchString(output) {
				t.Errorf("docs/output.md does not tell of `%s`", m.Name)
			}
			if bench := system.Queued().Metric(m.Name); bench != nil && bench.Doc == m.Doc {
				continue // which metrics.md defines
			}
			if row := fmt.Sprintf("| `%s` | %s | %s |", m.Name, m.Unit, m.Doc); !strings.Contains(multihop, row) {
				t.Errorf("docs/experiments/multihop.md lacks %s", row)
			}
		}
	}
}
