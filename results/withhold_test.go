package results

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
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

// TestAgesAbovePathAreRenamed checks that ages above the fastest path have other names, in the order of the
// declaration, and that the ordinary ages are withheld with a reason that names one of them.
func TestAgesAbovePathAreRenamed(t *testing.T) {
	r := Run{Declared: toy.Declared, Clusters: []ClusterMetric{{AoM: 1, Deliveries: 3}}, Model: &ModelMetric{AoM: 1},
		Metrics: toy.Values(map[string]Float{"lost_pct": 4, "aom_cluster_ns": 1, "aom_worker_ns": 2, "peak_aom_ns": 3, "jain": 1, "duration_ns": 7})}
	before := slices.Collect(maps.Keys(maps.Collect(r.Metrics.All)))
	r.KeepAbovePath()
	for name, want := range map[string]Float{"aom_cluster_above_path_ns": 1, "aom_worker_above_path_ns": 2, "peak_aom_above_path_ns": 3,
		"lost_pct": 4, "duration_ns": 7} {
		if got := r.Metrics.Of(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"aom_cluster_ns", "aom_worker_ns", "peak_aom_ns", "jain"} {
		if r.Metrics.Of(name).Known() || !strings.HasSuffix(r.Missing[name], "see aom_cluster_above_path_ns") {
			t.Errorf("%s is %v, because %q; it must be withheld", name, r.Metrics.Of(name), r.Missing[name])
		}
	}
	if r.Clusters[0].AoM.Known() || r.Model.AoM.Known() || r.Withheld != r.Missing["jain"] || !r.Valid() {
		t.Errorf("the ages of clusters and models are not withheld: %+v", r)
	}
	var names []string
	for m := range r.Metrics.All {
		names = append(names, m.Name)
	}
	if len(names) != len(before)+3 || !slices.IsSortedFunc(names, func(a, b string) int { return declaredAt(a) - declaredAt(b) }) {
		t.Errorf("the metrics are in the order %q", names)
	}
	r.Compare(nil, nil)
	if _, there := r.TwinComparisons["aom_cluster_above_path_ns"]; there {
		t.Error("an age above the path is compared with the twin's age")
	}
}

// declaredAt returns the place of a metric in the toy queue's declaration.
func declaredAt(name string) int {
	return slices.IndexFunc(toy.Declared.Metrics, func(m *metric.Metric) bool { return m.Name == name })
}
