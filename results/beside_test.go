package results

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
)

// TestRealRunRow checks the members of a row for runs on real wires, and that the row is read as it was written.
func TestRealRunRow(t *testing.T) {
	age, count := &metric.Metric{Name: "aom_cluster_ns", Age: true}, &metric.Metric{Name: "frames"}
	runs := []*Run{
		{Decisions: &olaf.Decisions{Checked: 10, Equal: 10}, LatenessNS: &olaf.Quantiles{P50: 1, P99: 9, Max: 20},
			BurstRate: 90, TwinComparisons: map[string]TwinComparison{"aom_cluster_ns": {1, 2, 4}}},
		{Decisions: &olaf.Decisions{Checked: 5, Equal: 4, First: "that"}, LatenessNS: &olaf.Quantiles{P50: 2, P99: 8,
			Max: 10}, BurstRate: 110, Withheld: "late",
			TwinComparisons: map[string]TwinComparison{"aom_cluster_ns": {3, 4, Missing()}}},
	}
	row := Row{Queue: "olaf", Stats: Stats{{age, Describe([]Float{4}, "")}, {count, Describe([]Float{7}, "")}}}
	row.addReal(runs)
	written, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"decisions":{"checked":15,"equal":14,"first":"that"}`, `"lateness_ns":{"p50":2,"p99":9,"max":20}`,
		`"withheld":{"runs":1,"reason":"late"}`,
		`"plan":1,"twin":2,"measured":4`, `"burst_rate_bps":{"mean":100,`,
	} {
		if !strings.Contains(string(written), want) {
			t.Errorf("no %s in %s", want, written)
		}
	}
	if n := strings.Count(string(written), `"plan"`); n != 1 {
		t.Errorf("%d statistics stand beside the twin's: %s", n, written)
	}
	var read Row
	if err := json.Unmarshal(written, &read); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil || string(again) != string(written) || len(read.Stats) != 2 {
		t.Errorf("read back: %v\n%s\n%s", err, again, written)
	}
	if err := json.Unmarshal(written, &read.Stats); err != nil || len(read.Stats) != 2 {
		t.Errorf("read once more: %d statistics, %v", len(read.Stats), err)
	}
	late := Run{Declared: toy.Declared, Counters: toy.Counts(nil), LatenessNS: &olaf.Quantiles{P50: 1, P99: 2, Max: 3}}
	if row := Summarise(toy.Declared, []Run{late}); row.LatenessNS == nil || *row.LatenessNS != *late.LatenessNS {
		t.Errorf("summed up: %+v", row.LatenessNS)
	}
}

// TestOutputAddsPerCent checks the percentage by which a measured age exceeds the twin's, and that it is missing if it
// cannot be known.
func TestOutputAddsPerCent(t *testing.T) {
	none, endless := Missing(), Float(math.Inf(1))
	for _, c := range []struct{ twin, measured, want Float }{
		{4, 5, 25}, {4, 4, 0}, {4, 3, -25}, {4, 0, -100}, {none, 5, none}, {4, none, none}, {none, none, none},
		{0, 5, none}, {0, 0, none}, {0, none, none}, {endless, 5, none}, {4, endless, none},
	} {
		got := (&TwinComparison{Plan: 1, Twin: c.twin, Measured: c.measured}).OutputPct()
		if got != c.want && !(math.IsNaN(float64(got)) && math.IsNaN(float64(c.want))) {
			t.Errorf("%v beside %v: %v %%, want %v", c.measured, c.twin, got, c.want)
		}
	}
}

// TestClustersAreComparedWithTwin checks that each age of a cluster is compared with that of the same cluster on the
// twin, in runs and in rows, over the runs that have both. A missing value must have the reason that applies to all
// clusters.
func TestClustersAreComparedWithTwin(t *testing.T) {
	of := func(id int, aom Float) ClusterMetric {
		return ClusterMetric{Cluster: id, Deliveries: 5, AoM: aom, PeakAoM: 2 * aom, AoMWorker: Missing()}
	}
	const nameless, late = "needs provenance", "late"
	told := &Run{Clusters: []ClusterMetric{of(0, 30), of(4, 50)}, Missing: map[string]string{"aom_worker_ns": nameless}}
	withheld := &Run{Clusters: []ClusterMetric{of(0, 70), of(4, 90)},
		Missing: map[string]string{"aom_worker_ns": nameless}}
	withheld.Withhold(late)
	withheld.Missing["aom_cluster_ns"] = late
	plan := &Run{Clusters: []ClusterMetric{of(4, 5), of(0, 3)}}
	told.Compare(plan, &Run{Clusters: []ClusterMetric{of(0, 10), of(4, 40)}})
	withheld.Compare(plan, &Run{Clusters: []ClusterMetric{of(0, 20)}})
	if b := told.Clusters[1].TwinComparisons["peak_aom_ns"]; b != (TwinComparison{10, 80, 100}) {
		t.Errorf("%+v", b)
	}
	rows := clusterRows([]*Run{told, withheld})
	if b := rows[0].AoM.TwinComparison; b == nil || *b != (TwinComparison{3, 10, 30}) || rows[0].AoM.N != 1 {
		t.Errorf("of the run that tells it: %+v", b)
	}
	if s := rows[0].AoMWorker; s.Known() || s.Reason != nameless {
		t.Errorf("%+v", s)
	}
	other := &Run{Clusters: []ClusterMetric{of(0, 7)}, Missing: map[string]string{"aom_worker_ns": "another reason"}}
	for _, c := range []struct {
		runs []*Run
		want string
	}{{[]*Run{told, other}, nameless}, {[]*Run{other, told}, "another reason"}} {
		if s := clusterRows(c.runs)[0].AoMWorker; s.Reason != c.want {
			t.Errorf("missing in the first run for the reason %q: %q", c.want, s.Reason)
		}
	}
	alone := clusterRows([]*Run{withheld})
	if s := alone[0].AoM; s.Reason != late || s.TwinComparison == nil || s.TwinComparison.Plan != 3 || s.TwinComparison.Twin != 20 ||
		s.TwinComparison.Measured.Known() {
		t.Errorf("of none that tells it: %+v, %+v", s, s.TwinComparison)
	}
	if s := alone[1].AoM; s.TwinComparison == nil || s.TwinComparison.Twin.Known() {
		t.Errorf("a cluster that the twin has not: %+v", s.TwinComparison)
	}
	again := &Run{Clusters: []ClusterMetric{of(0, 33), of(4, 55), of(5, 1)}}
	again.Recall(told)
	if b := again.Clusters[0].TwinComparisons["aom_ns"]; b != (TwinComparison{3, 10, 33}) || again.Clusters[2].TwinComparisons != nil {
		t.Errorf("recalled: %+v", again.Clusters)
	}
}

// TestRemeasuredRunKeepsComparison checks that a run that is measured again from its frames keeps its comparison with
// the twin, with its own ages.
func TestRemeasuredRunKeepsComparison(t *testing.T) {
	stored := &Run{Decisions: &olaf.Decisions{Checked: 3, Equal: 3}, LatenessNS: &olaf.Quantiles{P50: 1}, BurstRate: 9,
		TwinComparisons: map[string]TwinComparison{"aom_cluster_ns": {1, 2, 3}}}
	again := &Run{Metrics: toy.Values(map[string]Float{"aom_cluster_ns": 7})}
	again.Recall(stored)
	if b := again.TwinComparisons["aom_cluster_ns"]; b != (TwinComparison{1, 2, 7}) || again.Decisions != stored.Decisions ||
		again.LatenessNS != stored.LatenessNS || again.BurstRate != 9 {
		t.Errorf("%+v", again)
	}
	again = new(Run)
	if again.Recall(new(Run)); again.TwinComparisons != nil || again.Decisions != nil {
		t.Errorf("%+v", again)
	}
}
