package paper

import (
	"math"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

func value(v float64) results.Statistic {
	return results.Describe([]results.Float{results.Float(v)}, "")
}

func TestClaimsAreWellFormed(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range Claims() {
		if ids[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		ids[c.ID] = true
		if c.Source == "" || c.Row == "" || c.Column == "" {
			t.Errorf("%s has no source, row or column", c.ID)
		}
		if c.Untestable == "" && c.Why == "" {
			t.Errorf("%s does not say why its tolerance is what it is", c.ID)
		}
		if math.IsNaN(c.Value) != (c.Relation == Holds) {
			t.Errorf("%s: a statement has no value, a number has one", c.ID)
		}
	}
	for _, c := range Claims() {
		if c.Against != "" && c.Against != "olaf/table1.fifo.40g.lost" && c.Against != "olaf/table1.fifo.20g.lost" && !ids[c.Against] {
			t.Errorf("%s is set against %s, which is not there", c.ID, c.Against)
		}
	}
}

// TestTable1AddsUp keeps the printed numbers consistent with each other: 27 workers × 500 updates.
func TestTable1AddsUp(t *testing.T) {
	by := map[string]Claim{}
	for _, c := range Claims() {
		by[c.ID] = c
	}
	for _, rate := range []string{"40g", "20g"} {
		p := "olaf/table1.olaf." + rate + "."
		if sum := by[p+"received"].Value + by[p+"aggregated"].Value + by[p+"lost"].Value; sum != 13500 {
			t.Errorf("%s: received + aggregated + lost = %v", rate, sum)
		}
		if pct := 100 * by[p+"lost"].Value / 13500; math.Abs(pct-by[p+"lost_pct"].Value) > 0.1 {
			t.Errorf("%s: lost is %v %%, printed %v", rate, pct, by[p+"lost_pct"].Value)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		id   string
		ours Ours
		want Verdict
	}{
		{"olaf/table1.fifo.40g.received", Ours{"olaf/table1.fifo.40g.received": value(6109 * 1.025)}, Reproduced},
		{"olaf/table1.fifo.40g.received", Ours{"olaf/table1.fifo.40g.received": value(6109 * 1.026), "olaf/table1.olaf.40g.received": value(4800)}, SameDirection},
		{"olaf/table1.fifo.40g.received", Ours{"olaf/table1.fifo.40g.received": value(4000), "olaf/table1.olaf.40g.received": value(4800)}, Deviates},
		{"olaf/table1.fifo.40g.received", Ours{"olaf/table1.fifo.40g.received": value(4000), "olaf/table1.olaf.40g.received": value(4000)}, Deviates},
		{"olaf/table1.fifo.40g.received", Ours{"olaf/table1.fifo.40g.received": value(4000)}, Deviates},
		{"olaf/table1.fifo.40g.received", nil, NotTestable},
		{"olaf/aom.40g.reduction", Ours{"olaf/aom.40g.reduction": value(33)}, SameDirection},
		{"olaf/aom.40g.reduction", Ours{"olaf/aom.40g.reduction": value(-3)}, Deviates},
		{"olaf/fig10.fifo.s1_at_0.1", Ours{"olaf/fig10.fifo.s1_at_0.1": value(7850)}, Reproduced},
		{"olaf/smt.fairness_query.solver_time", Ours{"olaf/smt.fairness_query.solver_time": value(3)}, Reproduced},
		{"olaf/fig6.aggregations.20g_right_of_40g", Ours{"olaf/fig6.aggregations.20g_right_of_40g": Shape(true)}, Reproduced},
		{"olaf/fig6.aggregations.20g_right_of_40g", Ours{"olaf/fig6.aggregations.20g_right_of_40g": Shape(false)}, Deviates},
		{"olaf/table2.olaf.loss_pct", Ours{"olaf/table2.olaf.loss_pct": value(8.9)}, Reproduced},
		{"olaf/table2.olaf.loss_pct", Ours{"olaf/table2.olaf.loss_pct": value(2.3)}, Reproduced},
		{"olaf/table2.olaf.loss_pct", Ours{"olaf/table2.olaf.loss_pct": value(2.2)}, Deviates}, // below half
		{"olaf/hardware.utilisation.lut", nil, NotTestable},
	} {
		for _, row := range Compare(test.ours) {
			if row.ID == test.id && row.Verdict != string(test.want) {
				t.Errorf("%s with %v: %s, want %s", test.id, test.ours[test.id].Mean, row.Verdict, test.want)
			}
		}
	}
}

func TestCompareKeepsToArtefacts(t *testing.T) {
	rows := Compare(nil, "olaf/table1")
	if len(rows) != 12 {
		t.Errorf("table 1 has %d rows, want 12", len(rows))
	}
}

func TestMisses(t *testing.T) {
	rows := Compare(Ours{"olaf/aom.40g.reduction": value(33), "olaf/aom.40g.reduction_literal": value(33)}, "olaf/aom")
	if m := Misses(rows); len(m) != 1 || m[0].ID != "olaf/aom.40g.reduction" {
		t.Errorf("misses %+v", m)
	}
}

func TestFromBench(t *testing.T) {
	cdf := func(p ...results.Float) (out []results.CDFPoint) {
		for i, v := range p {
			out = append(out, results.CDFPoint{LE: i, P: v})
		}
		return out
	}
	b := &results.Bench{
		Rows: []results.Row{
			{Queue: "olaf", OutRateBPS: 40e9, Stats: results.Stats{{Metric: &metric.Metric{Name: "received"}, Statistic: value(4823)}}, CDF: cdf(.4, 1)},
			{Queue: "olaf", OutRateBPS: 20e9, CDF: cdf(.3, .6, 1)},
			{Queue: "olaf", OutRateBPS: 5e9, CDF: cdf(.35, .5, 1)},
		},
		Comparisons: []results.Comparison{{Queue: "olaf", Versus: "fifo", OutRateBPS: 20e9, AoMReduction: results.AoMReduction{WorkerCluster: value(78)}}},
	}
	verdicts := map[string]string{}
	for _, r := range Compare(FromBench(b)) {
		verdicts[r.ID] = r.Verdict
	}
	for id, want := range map[string]Verdict{
		"olaf/table1.olaf.40g.received": Reproduced, "olaf/aom.20g.reduction": Reproduced, "olaf/aom.40g.reduction": NotTestable,
		"olaf/fig6.aggregations.20g_right_of_40g": Reproduced, "olaf/fig6.aggregations.5g_right_of_20g": Deviates,
	} {
		if verdicts[id] != string(want) {
			t.Errorf("%s: %s, want %s", id, verdicts[id], want)
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
		if r.Verdict != string(NotTestable) || r.Note == "" {
			t.Errorf("%s: %s, %q", r.ID, r.Verdict, r.Note)
		}
	}
	for _, c := range Claims() {
		if c.Elsewhere != "" && !strings.Contains(note(&c, &results.Statistic{}), "measured by "+c.Elsewhere) {
			t.Errorf("%s does not say what measures it", c.ID)
		}
	}
}

// TestOldNamesLast holds that every claim and experiment of the time before papers had names is found by the name it had.
func TestOldNamesLast(t *testing.T) {
	for was, now := range map[string]string{
		"table1":                           "olaf/table1",
		"table1-trace":                     "olaf/table1-trace",
		"table1.olaf_40g.received":         "olaf/table1.olaf.40g.received",
		"table1.fifo_20g.lost_pct":         "olaf/table1.fifo.20g.lost_pct",
		"aom.40g.reduction_literal":        "olaf/aom.40g.reduction_literal",
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
	if old != 84 {
		t.Errorf("%d claims have an old name, want 84", old)
	}
}
