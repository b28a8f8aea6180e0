package ages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

var declared = metric.OfQueue(engine.FlowLedger(), engine.SumsLedger())

const mask = 1<<48 - 1

// delivery is one update: its arrival time and its age then, in ns.
type delivery struct {
	at, age         int64
	cluster, worker int
	count           int
}

// observe passes deliveries to a meter whose arrival clock begins at origin; the workers' clock is ahead by off.
func observe(m *Meter, origin, off int64, deliveries []delivery) {
	for _, d := range deliveries {
		o := olaf.Observation{At: olaf.Time(d.at) * olaf.Time(olaf.Nanosecond), Queued: -1, Update: olaf.Update{
			Cluster: olaf.ClusterID(d.cluster), Worker: olaf.WorkerID(d.worker), Count: uint16(max(d.count, 1)),
			GenNS: uint64(origin+d.at-d.age+off) & mask}}
		m.Arrive(o.At, &o.Update)
		m.Deliver(&o)
	}
}

// two contains two workers with number 0, in clusters 3 and 9, with two deliveries each. Their ages grow from 100 to
// 1100 ns, so that both means are 600 ns.
var two = []delivery{{at: 1000, age: 100, cluster: 3}, {at: 1500, age: 100, cluster: 9},
	{at: 2000, age: 50, cluster: 3}, {at: 2500, age: 70, cluster: 9}}

func TestClocks(t *testing.T) {
	const now, hour = 1_800_000_000_000_000_000, 3_600_000_000_000
	for _, c := range []struct {
		name        string
		origin, off int64
		virtual     bool
		deliveries  []delivery
		clock, why  string
	}{
		{"run clock", 0, 0, true, two, RunClock, ""},
		{"run clock that was set", now, -now, true, two, RunClock, ""},
		{"run clock, old updates", 0, 0, true, []delivery{{at: 30 * hour / 60, age: 20e9},
			{at: 31 * hour / 60, age: 20e9}}, RunClock, ""},
		{"run clock that lies", 0, 300, true, two, "", "updates arrive up to 250ns before they were generated"},
		{"hosts in step", now, 0, false, two, WallClock, ""},
		{"over the wrap of 48 bits", (now &^ mask) - 1200, 0, false, two, WallClock, ""},
		{"hosts out of step", now, 5e6, false, two, "", "by it updates are -4ms to -4ms old"},
		{"another clock", now, -7 * hour, false, two, "", "by it updates are 25200s to 25200s old"},
		{"one update too old", now, 0, false, append([]delivery{{at: 0, age: 11e9}}, two...), "",
			"is not the one that the workers stamp by"},
		{"nothing", now, 0, false, nil, "", "no update was delivered"},
	} {
		m := New(declared)
		m.Start(c.origin, c.virtual)
		observe(m, c.origin, c.off, c.deliveries)
		a := m.Report()
		if a.Clock != c.clock || a.Available() != (c.why == "") || !strings.Contains(a.Reason, c.why) {
			t.Errorf("%s: clock %q, why %q", c.name, a.Clock, a.Reason)
		}
		if c.clock != "" && len(c.deliveries) == len(two) {
			if got := a.Metrics.Of("aom_cluster_ns"); got != 600 {
				t.Errorf("%s: AoM %v, want 600", c.name, got)
			}
		}
	}
}

// TestClockErrors checks that ages come with the clocks' error bound and are withheld if the bound exceeds a tenth of
// them.
func TestClockErrors(t *testing.T) {
	const now = 1_800_000_000_000_000_000
	unknown := results.Missing()
	for _, c := range []struct {
		name        string
		error       results.Float
		off         int64
		virtual     bool
		stated, aom results.Float
		why         string
	}{
		{"unknown", unknown, 0, false, unknown, 600, ""},
		{"one clock", 0, 0, false, 0, 600, ""},
		{"a tenth", 60, 0, false, 60, 600, ""},
		{"more than a tenth", 61, 0, false, 61, 0, "may be 61ns apart, more than 10 % of the mean age"},
		{"a run's clock has none", 61, 0, true, 0, 600, ""},
		{"early within the bound", 54, 52, false, 54, 548, ""}, // by 2 ns, which count as 0
		{"early beyond the bound", 4, 55, false, 4, 0, "is not the one that the workers stamp by"},
	} {
		m := New(declared)
		m.ClockErrorNS = c.error
		m.Start(now, c.virtual)
		off := c.off
		if c.virtual {
			off -= now
		}
		observe(m, now, off, two)
		a := m.Report()
		if (a.Reason == "") != (c.why == "") || !strings.Contains(a.Reason, c.why) {
			t.Errorf("%s: no ages because %q, want %q", c.name, a.Reason, c.why)
		}
		if a.ClockErrorNS != c.stated && (a.ClockErrorNS.Known() || c.stated.Known()) {
			t.Errorf("%s: clock error %v, want %v", c.name, a.ClockErrorNS, c.stated)
		}
		if got := a.Metrics.Of("aom_cluster_ns"); c.why == "" && (got < c.aom || got > c.aom+5) {
			t.Errorf("%s: AoM %v, want %v", c.name, got, c.aom)
		}
	}
}

// TestWorkersOfClusters checks that workers with the same number in two clusters are counted separately.
func TestWorkersOfClusters(t *testing.T) {
	m := New(declared)
	m.Start(0, true)
	observe(m, 0, 0, two)
	a := m.Report()
	want := []results.ClusterMetric{
		{Cluster: 3, Deliveries: 2, AoM: 600, PeakAoM: 1100, AoMWorker: 600},
		{Cluster: 9, Deliveries: 2, AoM: 600, PeakAoM: 1100, AoMWorker: 600},
	}
	if diff := cmp.Diff(want, a.Clusters, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if len(a.Missing) > 0 || a.Metrics.Has("utilisation") {
		t.Errorf("missing %v", a.Missing)
	}
}

func TestMergedFramesHideWorkers(t *testing.T) {
	m := New(declared)
	m.Start(0, true)
	observe(m, 0, 0, append([]delivery{{at: 10, age: 5, cluster: 3, count: 2}}, two...))
	a := m.Report()
	if a.Metrics.Of("aom_worker_ns").Known() || a.Missing["aom_worker_ns"] != metric.NeedsProvenance ||
		!a.Metrics.Of("aom_cluster_ns").Known() {
		t.Errorf("%v %v", a.Metrics, a.Missing)
	}
}

func TestTooManyWorkers(t *testing.T) {
	m := New(declared)
	m.Start(0, true)
	for i := range 1<<16 + 1 {
		m.Deliver(&olaf.Observation{At: olaf.Time(i), Queued: -1, Update: olaf.Update{Cluster: olaf.ClusterID(i % 3),
			Worker: olaf.WorkerID(i / 3), Count: 1}})
	}
	if a := m.Report(); a.Reason != "there are more than 65536 workers" {
		t.Errorf("%q", a.Reason)
	}
}

// TestAgesMatchBench checks that a meter agrees with the collector in benches for any arrival clock.
func TestAgesMatchBench(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		origin := rapid.SampledFrom([]int64{0, 1_800_000_000_000_000_000, 1 << 48}).Draw(t, "origin")
		m, c := New(declared), results.NewCollector(results.Config{Declared: declared})
		m.Start(origin, origin == 0)
		at := int64(1e6)
		for range rapid.IntRange(1, 60).Draw(t, "deliveries") {
			at += rapid.Int64Range(0, 5000).Draw(t, "gap")
			o := olaf.Observation{At: olaf.Time(at) * olaf.Time(olaf.Nanosecond), Queued: -1}
			cluster := rapid.IntRange(0, 3).Draw(t, "cluster")
			for range rapid.IntRange(1, 3).Draw(t, "inside") {
				gen := uint64(at - rapid.Int64Range(0, 9000).Draw(t, "age"))
				o.Contributors = append(o.Contributors, olaf.Contributor{Worker: olaf.WorkerID(4*rapid.IntRange(0, 2).Draw(t,
					"worker") + cluster), GenNS: gen})
			}
			newest := o.Contributors[0]
			for _, k := range o.Contributors {
				if k.GenNS > newest.GenNS {
					newest = k
				}
			}
			o.Update = olaf.Update{Cluster: olaf.ClusterID(cluster), Worker: newest.Worker, GenNS: newest.GenNS,
				Count: uint16(len(o.Contributors))}
			c.Observe(&o)
			stamped := o
			stamped.Update.GenNS = (newest.GenNS + uint64(origin)) & mask
			stamped.Contributors = nil
			for _, k := range o.Contributors {
				k.GenNS = (k.GenNS + uint64(origin)) & mask
				stamped.Contributors = append(stamped.Contributors, k)
			}
			m.Arrive(stamped.At, &stamped.Update)
			m.Deliver(&stamped)
		}
		want, got := c.Finish(olaf.NewCounts(declared.Ledger)), m.Report()
		for of, v := range got.Metrics.All {
			if strings.HasPrefix(of.Name, "jain_workers") || strings.Contains(of.Name, "worker") {
				continue // a mean, summed in a different order
			}
			if w := want.Metrics.Of(of.Name); w != v && (w.Known() || v.Known()) {
				t.Fatalf("%s is %v, of a bench %v", of.Name, v, w)
			}
		}
		near := cmpopts.EquateApprox(1e-12, 0)
		for _, name := range []string{"aom_worker_ns", "jain_workers", "jain_worker_means"} {
			if diff := cmp.Diff(float64(want.Metrics.Of(name)), float64(got.Metrics.Of(name)), near,
				cmpopts.EquateNaNs()); diff != "" {
				t.Fatalf("%s: %s", name, diff)
			}
		}
	})
}
