package bench

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
)

// TestTopologyS checks that ages are measured at the workers: nothing is lost however slow their links are, and a later
// answer is older.
func TestTopologyS(t *testing.T) {
	s := smallSpecOf(t)
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
	for _, wrong := range []Spec{{Queue: "olaf", Topology: ToWorkers}, {Queue: "olaf", Versus: "fifo", Topology: ToBoth},
		{Queue: "iswitch", Versus: "fifo", Topology: ToWorkers}, {Queue: "iswitch", Topology: "Q"}} {
		s.Queue, s.Versus, s.Topology, s.H = wrong.Queue, wrong.Versus, wrong.Topology, nil
		if _, err := NewPlan(s); !errors.Is(err, ErrSpec) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestBothTopologies checks that a bench with both topologies has the same rows for P as one without S, followed by the
// same rows for S as one without P. Only equal topologies are compared, and stored runs repeat.
func TestBothTopologies(t *testing.T) {
	of := func(topology Topology, versus string) *Measurement {
		s := smallSpecOf(t)
		s.Queue, s.Versus, s.H, s.Topology = "iswitch", versus, new(3), topology
		s.OutRates = []olaf.Rate{40 * olaf.Gbps, 5 * olaf.Gbps}
		return mustBench(t, s, Options{})
	}
	both, p, s := of(ToBoth, "olaf,fifo"), of("", "olaf,fifo"), of(ToWorkers, "")
	for i := range s.Bench.Rows {
		s.Bench.Rows[i].Queue += " S"
	}
	written := func(part any) string {
		text, err := json.MarshalIndent(part, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if diff := cmp.Diff(written(slices.Concat(p.Bench.Rows, s.Bench.Rows)), written(both.Bench.Rows)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(written(p.Bench.Comparisons), written(both.Bench.Comparisons)); diff != "" {
		t.Error(diff)
	}
	if said := strings.Join(both.Bench.Statements, "\n"); !strings.Contains(said, "no row of olaf and fifo ends in S") {
		t.Error(said)
	}
	for name, want := range map[string]Topology{"P": "", "S": ToWorkers, "P,S": ToBoth, "S, P": ToBoth} {
		var got Topology
		if err := got.UnmarshalText([]byte(name)); err != nil || got != want {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
}
