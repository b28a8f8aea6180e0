package results

import (
	"maps"
	"testing"

	"github.com/olafctl/olaf/results/internal/test/toy"
)

func TestWithhold(t *testing.T) {
	r := Run{Missing: map[string]string{"jain_workers": "needs provenance"},
		Clusters: []ClusterMetric{{AoM: 1, Deliveries: 3}},
		Metrics: toy.Values(map[string]Float{"lost_pct": 4, "aom_cluster_ns": 1, "peak_aom_ns": 2, "duration_ns": 7,
			"jain":       1,
			"aom_p50_ns": 1, "aom_p95_ns": 1, "aom_p99_ns": 1, "jain_worker_means": 1})}
	r.Withhold("clocks")
	for m, v := range r.Metrics.All {
		if want := map[string]Float{"lost_pct": 4, "duration_ns": 7}[m.Name]; v.Known() && v != want || !v.Known() &&
			want != 0 {
			t.Errorf("%s is %v", m.Name, v)
		}
	}
	want := map[string]string{"jain_workers": "needs provenance", "aom_cluster_ns": "clocks",
		"peak_aom_ns": "clocks", "jain": "clocks",
		"aom_p50_ns": "clocks", "aom_p95_ns": "clocks", "aom_p99_ns": "clocks", "jain_worker_means": "clocks"}
	if !maps.Equal(r.Missing, want) || r.Withheld != "clocks" || !r.Valid() {
		t.Errorf("%q", r.Missing)
	}
	if c := r.Clusters[0]; c.AoM.Known() || c.Deliveries != 3 {
		t.Errorf("%+v", c)
	}
	if row := clusterRows([]*Run{&r})[0]; row.AoM.Reason != "clocks" || row.PeakAoM.Reason != "clocks" ||
		row.AoMWorker.Reason != "clocks" {
		t.Errorf("%+v", row)
	}
}
