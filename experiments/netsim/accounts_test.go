//go:build unix

package netsim

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
)

// measuring passes every delivery to a Collector.
type measuring struct{ *results.Collector }

func (m measuring) Deliver(_, _ int, o *olaf.Observation) { m.Observe(o) }

// TestCollectorAgrees checks that the simulator's own meter and the bench's Collector measure the same numbers in the
// same runs, and that the accounts of the whole run balance.
func TestCollectorAgrees(t *testing.T) {
	topologies := watchedTopologies(t)
	for _, name := range []string{"fat-tree", "rack"} {
		topologies[name] = mustPreset(t, name, Scale{})
	}
	for name, topology := range topologies {
		t.Run(name, func(t *testing.T) {
			c := results.NewCollector(topology.CollectorConfig())
			r := mustRun(t, topology, Options{Observer: measuring{c}})
			run := c.Finish(r.Totals)
			if !run.Valid() {
				t.Fatal(run.Invalid)
			}
			both := 0
			for m, meter := range r.Values.All {
				if !run.Metrics.Has(m.Name) {
					continue
				}
				if both++; meter != run.Metrics.Of(m.Name) {
					t.Errorf("%s: %v by the meter, %v by the Collector", m.Name, meter, run.Metrics.Of(m.Name))
				}
			}
			if both < 7 {
				t.Errorf("both measure %d numbers", both)
			}
			for i := range run.Clusters {
				a, b := &r.Clusters[i], &run.Clusters[i]
				if a.Cluster != b.Cluster || int64(a.Values.Of("window_delivered_frames")) != b.Deliveries ||
					a.Values.Of("aom_cluster_ns") != b.AoM || a.Values.Of("aom_worker_ns") != b.AoMWorker {
					t.Errorf("cluster %+v by the meter, %+v by the Collector", a, b)
				}
			}
			if c := r.Totals; c.SumOffered() == 0 || c.Of("received") != c.Of("delivered") || name == "failing" && c.Of("flushed") == 0 {
				t.Errorf("totals %+v", c)
			}
			if sent, delivered := topology.EstimateTraffic(); float64(r.Totals.SumOutput()) > delivered+1 ||
				float64(r.Totals.SumOffered()) > sent+float64(len(r.Clusters)*100) {
				t.Errorf("%d sent and %d delivered, at most %v and %v were expected", r.Totals.SumOffered(), r.Totals.SumOutput(), sent,
					delivered)
			}
		})
	}
}

// TestTotalsCountWithheldFromTheStart checks with one run, measured with and without a warm-up, that updates withheld
// during the warm-up count in the totals but not in the window.
func TestTotalsCountWithheldFromTheStart(t *testing.T) {
	topology := watchedTopologies(t)["controlled"]
	topology.Warmup, topology.Duration = 5*olaf.Second, 10*olaf.Second
	late := mustRun(t, topology, Options{})
	topology.Warmup, topology.Duration = 0, 15*olaf.Second
	whole := mustRun(t, topology, Options{})
	if n := late.Totals.Of("tc_withheld"); n == 0 || n != whole.Totals.Of("tc_withheld") ||
		results.Float(n) != whole.Of("window_withheld") || results.Float(n) <= late.Of("window_withheld") {
		t.Errorf("withheld in all %v and %v, in the window %v and %v", n, whole.Totals.Of("tc_withheld"), late.Of("window_withheld"),
			whole.Of("window_withheld"))
	}
	topology.Control.Enabled = false
	if off := mustRun(t, topology, Options{}); off.Totals.Of("tc_withheld") != 0 {
		t.Errorf("%d withheld without control", off.Totals.Of("tc_withheld"))
	}
}
