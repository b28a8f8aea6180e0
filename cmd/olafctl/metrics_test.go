package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/metric"
)

// TestMetricListPage compares docs/reference/metric-list.md with the rows of metrics and counters; -update writes it.
func TestMetricListPage(t *testing.T) {
	name := filepath.Join(repository, "docs", "reference", "metric-list.md")
	want := metricListPage(t)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is stale: go test ./cmd/olafctl -run TestMetricListPage -update", name)
	}
}

// TestEveryMetricIsDefined checks that docs/reference/metrics.md defines every metric of a bench, or names it in a formula.
func TestEveryMetricIsDefined(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	d := system.QueueDeclaration()
	for _, m := range d.Metrics {
		if m.Title == "" || m.Doc == "" {
			t.Errorf("%s has no title or no text", m.Name)
		}
		if m.Counter == "" && m.Sum == nil && !regexp.MustCompile("\\b"+regexp.QuoteMeta(m.Name)+"\\b").MatchString(page) {
			t.Errorf("docs/reference/metrics.md does not define `%s`", m.Name)
		}
	}
	if err := d.Ledger.Validate(); err != nil {
		t.Error(err)
	}
}

// metricListPage renders every metric and counter with its unit and its description.
func metricListPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Metric list\n\nGenerated from the rows of metrics and counters by `go test ./cmd/olafctl -run TestMetricListPage -update`; do not edit.\n" +
		"[Metrics](metrics.md) has formulas, windows and readings.\n")
	section := func(title, about string) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| name | unit | |\n|---|---|---|\n", title, about)
	}
	row := func(name, unit, doc string) {
		if name == "" || doc == "" {
			t.Errorf("%q has no name or no description", name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, unit, doc)
	}
	counters := func(l *olaf.Ledger) {
		for _, c := range l.Counters {
			row(c.Name, c.Unit, c.Doc)
		}
		b.WriteString("\nIdentities that every run is checked against:\n\n")
		for _, rule := range l.Rules() {
			fmt.Fprintf(&b, "    %s\n", rule)
		}
	}
	d := system.QueueDeclaration()
	section("Metrics of a bench", "Of a queue under open-loop workers. Each is a statistic over the valid runs.")
	for _, m := range d.Metrics {
		row(m.Name, m.Unit, m.Doc)
	}
	section("Counters of a bench", "Of one run, in `runs.json` and in events.")
	counters(d.Ledger)
	for _, part := range []struct {
		title, about string
		rows         []*metric.Metric
	}{
		{"Statistics of a simulated network", "Of a run, its groups and clusters; counts are within the window unless they say otherwise.", netsim.RunStatistics()},
		{"Statistics of Tables 2 and 3", "Of an experiment on the network of the tables.", netsim.TableStatistics()},
		{"Statistics of a phase map", "Of `simulate --sweep phase=…`.", netsim.SweepStatistics()},
		{"Statistics of ports", "Of a port of a simulated switch, over the whole run.", netsim.PortStatistics()},
	} {
		section(part.title, part.about)
		for _, m := range part.rows {
			row(m.Name, m.Unit, m.Doc)
		}
	}
	section("Numbers of a closed loop", "Of jobs on simulated hosts, and of a bench in a closed loop under the same names.")
	for _, r := range closedloop.ListRows() {
		row(r.Name, r.Unit, r.Doc)
	}
	row("ceiling_bps", "bit/s", closedloop.CeilingAbout)
	section("Counters of hosts", "What workers and servers count.")
	counters(endpoint.Describe())
	return b.String()
}
