//go:build unix

package netsim

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
)

// measuring hands every delivery to a Collector.
type measuring struct{ *results.Collector }

func (m measuring) Deliver(_, _ int, o *olaf.Observation) { m.Observe(o) }

// TestCollectorAgrees measures the same runs by the simulator's own meter and by the Collector of the bench: every number
// that both have is the same, and the accounts of the whole run balance.
func TestCollectorAgrees(t *testing.T) {
	topologies := watched(t)
	for _, name := range []string{"fat-tree", "rack"} {
		topologies[name] = mustPreset(t, name, Scale{})
	}
	for name, topology := range topologies {
		t.Run(name, func(t *testing.T) {
			c := results.NewCollector(topology.Measure())
			r := mustRun(t, topology, Options{Observer: measuring{c}})
			run := c.Finish(r.Totals)
			if !run.Valid() {
				t.Fatal(run.Invalid)
			}
			for _, p := range []struct {
				name        string
				meter, same results.Float
			}{
				{"aom_cluster", r.Ages.Cluster, run.Metrics.AoMCluster}, {"aom_worker", r.Ages.Worker, run.Metrics.AoMWorker},
				{"peak", r.Ages.Peak, run.Metrics.PeakAoM}, {"never", results.Float(r.NeverDelivered), run.Metrics.NeverDelivered},
				{"jain", r.Fairness.Cluster, run.Metrics.Jain}, {"jain_worker_means", r.Fairness.WorkerMeans, run.Metrics.JainWorkerMeans},
				{"jain_workers", r.Fairness.Workers, run.Metrics.JainWorkers},
			} {
				if p.meter != p.same {
					t.Errorf("%s: %v by the meter, %v by the Collector", p.name, p.meter, p.same)
				}
			}
			for i := range run.Clusters {
				a, b := &r.Clusters[i], &run.Clusters[i]
				if a.Cluster != b.Cluster || int64(a.DeliveredFrames) != b.Deliveries || a.Ages.Cluster != b.AoM || a.Ages.Worker != b.AoMWorker {
					t.Errorf("cluster %+v by the meter, %+v by the Collector", a, b)
				}
			}
			if c := &r.Totals; c.Sent == 0 || c.Received != c.Delivered || name == "failing" && c.Flushed == 0 {
				t.Errorf("totals %+v", c)
			}
			if sent, delivered := topology.Traffic(); float64(r.Totals.Delivered) > delivered+1 || float64(r.Totals.Sent) > sent+float64(len(r.Clusters)*100) {
				t.Errorf("%d sent and %d delivered, at most %v and %v were expected", r.Totals.Sent, r.Totals.Delivered, sent, delivered)
			}
		})
	}
}

// TestTotalsCountWithheldFromTheStart measures one run with and without a warm-up: what was withheld in it counts in the
// totals and not in the window.
func TestTotalsCountWithheldFromTheStart(t *testing.T) {
	topology := watched(t)["controlled"]
	topology.Warmup, topology.Duration = 5*olaf.Second, 10*olaf.Second
	late := mustRun(t, topology, Options{})
	topology.Warmup, topology.Duration = 0, 15*olaf.Second
	whole := mustRun(t, topology, Options{})
	if n := late.Totals.TCWithheld; n == 0 || n != whole.Totals.TCWithheld || uint64(n) != whole.Withheld || uint64(n) <= late.Withheld {
		t.Errorf("withheld in all %d and %d, in the window %d and %d", n, whole.Totals.TCWithheld, late.Withheld, whole.Withheld)
	}
	topology.Control.Enabled = false
	if off := mustRun(t, topology, Options{}); off.Totals.TCWithheld != 0 {
		t.Errorf("%d withheld without control", off.Totals.TCWithheld)
	}
}
