package bench

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
)

// TestTopologyS holds that ages are taken at the workers: nothing is lost however slow the links to them are, and what is
// answered later is older.
func TestTopologyS(t *testing.T) {
	s := small(t)
	s.Queue, s.Versus, s.H, s.Topology = "iswitch", "", new(3), ToWorkers
	s.OutRates = []olaf.Rate{40 * olaf.Gbps, 5 * olaf.Gbps}
	m := mustBench(t, s, Options{})
	fast, slow := m.Bench.Rows[0].Stats.Of("aom_cluster_ns"), m.Bench.Rows[1].Stats.Of("aom_cluster_ns")
	for i, runs := range m.Outcome.Runs {
		for k := range runs {
			if c := runs[k].Counters; !runs[k].Valid() || c.Of("sent")-c.Of("received")*3 > int64(s.Workload.Clusters*2) {
				t.Errorf("rate %d, run %d: %v", i, k, runs[k].Invalid)
			}
		}
	}
	if !(fast.Mean < slow.Mean) {
		t.Errorf("%v at 40 Gbps, %v at 5 Gbps", fast.Mean, slow.Mean)
	}
	for _, wrong := range []Spec{{Queue: "olaf", Topology: ToWorkers}, {Queue: "iswitch", Versus: "fifo", Topology: ToWorkers}, {Queue: "iswitch", Topology: "Q"}} {
		s.Queue, s.Versus, s.Topology, s.H = wrong.Queue, wrong.Versus, wrong.Topology, nil
		if _, err := NewPlan(s); !errors.Is(err, ErrSpec) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
