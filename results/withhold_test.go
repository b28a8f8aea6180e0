package results

import (
	"maps"
	"testing"
)

func TestWithhold(t *testing.T) {
	r := Run{Missing: map[string]string{"jain_workers": "needs provenance"}, Clusters: []ClusterMetric{{AoM: 1, Deliveries: 3}},
		Metrics: Metrics{LostPct: 4, AoMCluster: 1, AoMWorker: Missing(), PeakAoM: 2, JainWorkers: Missing(), Duration: 7, Jain: 1}}
	r.Withhold("clocks")
	if m := &r.Metrics; m.AoMCluster.Known() || m.PeakAoM.Known() || m.Jain.Known() || m.LostPct != 4 || m.Duration != 7 {
		t.Errorf("%+v", m)
	}
	want := map[string]string{"jain_workers": "needs provenance", "aom_cluster_ns": "clocks", "peak_aom_ns": "clocks", "jain": "clocks",
		"aom_p50_ns": "clocks", "aom_p95_ns": "clocks", "aom_p99_ns": "clocks", "jain_worker_means": "clocks"}
	if !maps.Equal(r.Missing, want) || r.Withheld != "clocks" || !r.Valid() {
		t.Errorf("%q", r.Missing)
	}
	if c := r.Clusters[0]; c.AoM.Known() || c.Deliveries != 3 {
		t.Errorf("%+v", c)
	}
}
