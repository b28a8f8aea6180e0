package bench

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
)

// TestDownlinks holds the links to the workers against a slow reference: every sum arrives once, no earlier than its frame
// takes behind those of its cluster, and what is handed out is in order of time whatever the looks in between are.
func TestDownlinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate, overhead = 10 * olaf.Gbps, olaf.Size(24)
		d := newDownlinks(rate, overhead)
		free := map[olaf.ClusterID]olaf.Time{}
		var want, have []olaf.Observation
		now := olaf.Time(0)
		for range rapid.IntRange(0, 20).Draw(t, "looks") {
			var seen []olaf.Observation
			for range rapid.IntRange(0, 6).Draw(t, "sums") {
				now += olaf.Time(rapid.Int64Range(0, 400_000).Draw(t, "gap"))
				o := olaf.Observation{At: now, Update: olaf.Update{
					Cluster: olaf.ClusterID(rapid.IntRange(0, 2).Draw(t, "cluster")), Lanes: uint16(rapid.IntRange(0, 300).Draw(t, "lanes")), Seq: uint32(len(want)),
				}}
				seen = append(seen, o)
				begin := max(free[o.Update.Cluster], now)
				end := begin.Add(rate.TimeToSend(o.Update.Size() + overhead))
				free[o.Update.Cluster], o.At, o.Queued = end, end, o.Queued+end.Sub(now)
				want = append(want, o)
			}
			have = append(have, d.pass(seen)...)
		}
		have = d.rest(have)
		slices.SortStableFunc(want, func(a, b olaf.Observation) int { return int(a.At - b.At) })
		if !slices.EqualFunc(have, want, func(a, b olaf.Observation) bool {
			return a.At == b.At && a.Queued == b.Queued && a.Update == b.Update
		}) {
			t.Fatalf("arrived %v, want %v", have, want)
		}
	})
}

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
