package results

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/internal/test/toy"
)

// TestWorkerNumberingDoesNotMatter checks that workers numbered within their clusters give the same results as workers
// numbered over all clusters.
func TestWorkerNumberingDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const perCluster = 3
		jobs := []Job{{Cluster: 40, Clusters: 2, Workers: perCluster}, {Cluster: 7, Clusters: 1, Workers: perCluster}}
		ids := []olaf.ClusterID{40, 41, 7}
		window := Window{From: 1000, To: 1 << 50, InitialAge: UnknownAge}
		plain := NewCollector(Config{Declared: toy.Declared, Clusters: 3, Workers: 9, Window: window, SpeedupUpdates: 2})
		local := NewCollector(Config{Declared: toy.Declared, Jobs: jobs, Window: window, SpeedupUpdates: 2})
		at := olaf.Time(0)
		for range rapid.IntRange(0, 60).Draw(t, "frames") {
			at += olaf.Time(rapid.IntRange(0, 1<<40).Draw(t, "gap"))
			cluster := rapid.IntRange(0, 2).Draw(t, "cluster")
			o := olaf.Observation{At: at, Update: olaf.Update{GenNS: uint64(at.NS()), Cluster: ids[cluster]}}
			for range rapid.IntRange(1, 3).Draw(t, "inside") {
				w := olaf.WorkerID(rapid.IntRange(0, perCluster-1).Draw(t, "worker"))
				o.Contributors = append(o.Contributors, olaf.Contributor{GenNS: o.Update.GenNS, Worker: w})
				o.Update.Worker = w
				o.Update.Count++
			}
			local.Observe(&o)
			o.Update.Cluster = olaf.ClusterID(cluster)
			o.Update.Worker += olaf.WorkerID(cluster * perCluster)
			for i := range o.Contributors {
				o.Contributors[i].Worker += olaf.WorkerID(cluster * perCluster)
			}
			plain.Observe(&o)
		}
		counters := toy.Counts(map[string]int64{"received": plain.ObservedCount()})
		a, b := plain.Finish(counters), local.Finish(counters)
		for i := range a.Clusters {
			a.Clusters[i].Cluster = int(ids[i])
		}
		if !sameRuns(a, b) {
			t.Fatalf("numbered over all:\n%+v\nwithin clusters:\n%+v", a, b)
		}
	})
}

// sameRuns compares runs as printed, so that missing numbers are equal.
func sameRuns(a, b Run) bool {
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func TestUnknownWorkersInvalidateRun(t *testing.T) {
	for name, o := range map[string]olaf.Observation{
		"cluster below":  {Update: olaf.Update{Cluster: 4, Count: 1}},
		"cluster beyond": {Update: olaf.Update{Cluster: 6, Count: 1}},
		"worker":         {Update: olaf.Update{Cluster: 5, Worker: 2, Count: 1}},
		"contributor": {Update: olaf.Update{Cluster: 5, Count: 2}, Contributors: []olaf.Contributor{{Worker: 1},
			{Worker: 2}, {Worker: 0}}},
	} {
		c := NewCollector(Config{Declared: toy.Declared, Jobs: []Job{{Cluster: 5, Clusters: 1, Workers: 2}}})
		c.Observe(&o)
		if r := c.Finish(toy.Counts(map[string]int64{"received": 1})); r.Valid() ||
			!strings.Contains(r.Invalid[len(r.Invalid)-1], "no job") {
			t.Errorf("%s: %q", name, r.Invalid)
		}
	}
}

// TestInitialAgeCountsInOwnCluster checks that an initial age counts for silent workers in their own cluster.
func TestInitialAgeCountsInOwnCluster(t *testing.T) {
	c := NewCollector(Config{Declared: toy.Declared, Jobs: []Job{{Cluster: 1, Clusters: 2, Workers: 1}},
		Window: Window{To: olaf.Time(2 * olaf.Second)}})
	r := c.Finish(olaf.Counts{})
	for _, m := range r.Clusters {
		if m.AoMWorker != 1e9 || m.AoM != 1e9 {
			t.Errorf("cluster %d: %v per worker, %v", m.Cluster, m.AoMWorker, m.AoM)
		}
	}
	if len(r.Clusters) != 2 || r.Metrics.Of("never_delivered") != 2 || r.Metrics.Of("peak_aom_ns").Known() {
		t.Errorf("%+v", r)
	}
}
