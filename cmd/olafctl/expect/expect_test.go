package expect

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// measured contains two systems at two rates; rows returns a row for each combination.
var measured = []Configuration{
	{System: "olaf", Rate: 40 * olaf.Gbps}, {System: "fifo", Rate: 40 * olaf.Gbps}, {System: "olaf", Rate: 2500 * olaf.Mbps},
	{System: "fifo", Rate: 2500 * olaf.Mbps},
}

func rows(values map[string][]results.Float) []results.Row {
	out := make([]results.Row, len(measured))
	for name, of := range values {
		for i, v := range of {
			m := system.QueueDeclaration().Metric(name)
			out[i].Stats = append(out[i].Stats,
				results.Stat{Metric: m, Statistic: results.Describe([]results.Float{v}, "of no reason")})
		}
	}
	return out
}

func TestMissed(t *testing.T) {
	all := rows(map[string][]results.Float{
		"aom_cluster_ns": {1210.4, 1850, 1560, 2990},
		"lost_pct":       {11.24, 54.8, 10.4, 74.8},
		"received":       {4560, 6100, 2732, 3400},
		"jain":           {0.988, 0.98, 0.99, results.Missing()},
	})
	for _, c := range []struct {
		text   string
		missed []string
	}{
		{"olaf.40G.aom_cluster_ns < 1300", nil},
		{"olaf.40Gbps.aom_cluster_ns<1.3us", nil},
		{" olaf.40G.aom_cluster_ns  >  1.2 µs ", nil},
		{"olaf.2.5G.aom_cluster_ns < 1300ns", []string{"olaf.2.5Gbps has 1560 ns"}},
		{"olaf.aom_cluster_ns < 1.3us", []string{"olaf.2.5Gbps has 1560 ns"}},
		{"40G.lost_pct < 12 %", []string{"fifo.40Gbps has 54.8 %"}},
		{"2.5G.lost_pct <= 74.8%", nil},
		{"lost_pct >= 10.4", nil},
		{"lost_pct > 10.4", []string{"olaf.2.5Gbps has 10.4 %"}},
		{"olaf.40G.aom_cluster_ns < 1210", []string{"olaf.40Gbps has 1210.4 ns"}},
		{"olaf.40G.received = 4560 frames", nil},
		{"olaf.40G.received == 4561", []string{"olaf.40Gbps has 4560 frames"}},
		{"jain > 0.5", []string{"fifo.2.5Gbps has none, because of no reason"}},
		{"olaf.40G.utilisation > 0.5", []string{"olaf.40Gbps has none, because not measured"}},
	} {
		r, err := ParseRule(c.text, system.QueueDeclaration(), measured)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := r.FindMisses(measured, all)
		if len(got) != len(c.missed) {
			t.Errorf("%s: %q, want %q", c.text, got, c.missed)
			continue
		}
		for i, want := range c.missed {
			if got[i] != "missed: "+strings.TrimSpace(c.text)+": "+want {
				t.Errorf("%s: %q, want %q", c.text, got[i], want)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "there is no <",
		"olaf.40G.aom_cluster_ns":        "there is no <",
		"olaf.40G.aom_clustr_ns < 3":     `no metric is named "aom_clustr_ns"; did you mean "aom_cluster_ns"?`,
		"olaf.40G.duration_ns < 3":       `no metric is named "duration_ns"`, // an aside metric, which no row has
		"olav.40G.jain > 1":              `"olav" is not measured here; did you mean "olaf"?`,
		"olaf.10G.jain > 1":              "olaf.10G is not measured here; there are olaf.40Gbps, fifo.40Gbps, olaf.2.5Gbps, fifo.2.5Gbps",
		"olaf.40.jain > 1":               `rate "40" has no unit; did you mean 40G?`,
		"40G.olaf.jain > 1":              `"40G" is not measured here`,
		"olaf.40G.jain > high":           `"high" is not a number`,
		"olaf.40G.jain > 1us":            `"1us" is not a number`,
		"olaf.40G.jain > NaN":            `"NaN" is not a number`,
		"olaf.40G.lost_pct < 3 frames":   `"3 frames" is not a number of per cent`,
		"olaf.40G.aom_cluster_ns < 3G":   `duration "3G" has the unknown unit "G"`,
		"olaf.40G.aom_cluster_ns < 3 <4": `duration "3 <4" has the unknown unit "<4"`,
	} {
		_, err := ParseRule(text, system.QueueDeclaration(), measured)
		if !errors.Is(err, ErrRule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("olaf.40G.aom_cluster_ns < 1300")
	f.Add("2.5G.lost_pct>=1e3 %")
	f.Add("..<=")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text, system.QueueDeclaration(), measured)
		if (err == nil) == (r == nil) {
			t.Fatal(r, err)
		}
		if err == nil {
			r.FindMisses(measured, rows(map[string][]results.Float{"jain": {1, 2, 3, 4}}))
		}
	})
}
