//go:build unix

package netsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/trace"
)

// glance takes a snapshot at every step, and ends the run at stop unless that is 0.
type glance struct {
	step, stop olaf.Time
	calls      int
	pictures   []*Snapshot
}

func (g *glance) Before(_, next olaf.Time, look func(at olaf.Time) *Snapshot) (olaf.Time, bool) {
	g.calls++
	if g.stop > 0 && next >= g.stop {
		g.pictures = append(g.pictures, look(g.stop))
		return g.stop, false
	}
	g.pictures = append(g.pictures, look(next))
	until := next + g.step
	if g.stop > 0 {
		until = min(until, g.stop)
	}
	return until, true
}

// watchedTopologies returns topologies with and without the shortcut for updates without a decision.
func watchedTopologies(t testing.TB) map[string]*Topology {
	topologies := map[string]*Topology{}
	for _, name := range []string{"single", "multihop", "ns3-fifo"} {
		topologies[name] = mustPreset(t, name, Scale{})
	}
	topologies["controlled"] = mustPreset(t, "multihop", Scale{})
	topologies["controlled"].Control.Enabled = true
	failing := mustPreset(t, "multihop", Scale{})
	failing.Schedule = []Change{
		{At: 7 * olaf.Second, From: "sw1", To: "sw3", Link: LinkDown}, {At: 9 * olaf.Second, From: "sw1", To: "sw3", Link: LinkUp},
	}
	topologies["failing"] = failing
	topologies["adding"] = addingPreset(t, "multihop", 3)
	for _, topology := range topologies {
		if topology.Duration > 20*olaf.Second {
			topology.Duration = 20 * olaf.Second
		}
	}
	return topologies
}

func document(t *testing.T, r *Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWatchingChangesNothing compares a watched run with an unwatched one: the result and every delivery.
func TestWatchingChangesNothing(t *testing.T) {
	for name, topology := range watchedTopologies(t) {
		t.Run(name, func(t *testing.T) {
			run := func(w Watcher) (string, string) {
				var received bytes.Buffer
				out := trace.NewRxWriter(&received)
				r := mustRun(t, topology, Options{Observer: out, Watcher: w})
				if err := out.Flush(); err != nil {
					t.Fatal(err)
				}
				return document(t, r), received.String()
			}
			end := olaf.Time(topology.Warmup + topology.Duration)
			g := &glance{step: end / 997}
			alone, arrivals := run(nil)
			seen, arrivalsSeen := run(g)
			if alone != seen {
				t.Errorf("watched:\n%s\nalone:\n%s", seen, alone)
			}
			if arrivals != arrivalsSeen {
				t.Error("the deliveries differ")
			}
			if g.calls < 100 {
				t.Errorf("asked only %d times", g.calls)
			}
			for _, v := range g.pictures {
				if v.Fate.Sent != v.Fate.sumParts() {
					t.Fatalf("at %v: sent %d, accounted for %d: %+v", v.Now, v.Fate.Sent, v.Fate.sumParts(), v.Fate)
				}
			}
		})
	}
}

// TestLastPictureIsTheResult compares the last snapshot with the result.
func TestLastPictureIsTheResult(t *testing.T) {
	for name, topology := range watchedTopologies(t) {
		t.Run(name, func(t *testing.T) {
			g := &glance{step: olaf.Time(olaf.Second)}
			r := mustRun(t, topology, Options{Watcher: g})
			v := g.pictures[len(g.pictures)-1]
			if v.Now != v.End || v.Events != r.Events {
				t.Errorf("last picture at %v of %v, %d of %d events", v.Now, v.End, v.Events, r.Events)
			}
			for i := range v.Clusters {
				compareValues(t, fmt.Sprintf("cluster %d", v.Clusters[i].Cluster), v.Clusters[i].Values, r.Clusters[i].Values)
			}
			for i := range v.Groups {
				compareValues(t, v.Groups[i].Group, v.Groups[i].Values, r.Groups[i].Values)
			}
			compareValues(t, "all", v.Values, r.Values)
			for _, p := range v.Ports {
				for _, want := range r.Ports {
					if p.Port == want.Port {
						compareValues(t, p.Port, p.Values, want.Values, "in", "appended", "aggregated", "replaced", "dropped", "left",
							"peak_occupancy", "lost_on_link", "bypass_dropped")
					}
				}
			}
		})
	}
}

// TestStoppedRunIsAShorterRun checks that runs ended at odd instants, also in the warm-up, equal runs of that length.
func TestStoppedRunIsAShorterRun(t *testing.T) {
	for name, topology := range watchedTopologies(t) {
		for _, share := range []float64{0.31, 0.777} {
			end := olaf.Time(topology.Warmup + topology.Duration)
			stop := olaf.Time(float64(end)*share) | 1
			if stop <= olaf.Time(topology.Warmup) {
				t.Fatalf("%s: %v is in the warm-up", name, stop)
			}
			short := *topology
			short.Duration = olaf.Duration(stop) - topology.Warmup
			want := mustRun(t, &short, Options{})
			g := &glance{step: end / 50, stop: stop}
			got := mustRun(t, topology, Options{Watcher: g})
			for i, c := range g.pictures[len(g.pictures)-1].Clusters {
				compareValues(t, fmt.Sprintf("%s: picture of cluster %d", name, c.Cluster), c.Values, got.Clusters[i].Values)
			}
			if document(t, got) != document(t, want) {
				t.Errorf("%s stopped at %v:\n%s\nshorter:\n%s", name, stop, document(t, got), document(t, want))
			}
		}
	}
}

// TestStoppedInTheWarmUp checks that a run without measurements still balances.
func TestStoppedInTheWarmUp(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	g := &glance{step: olaf.Time(olaf.Second), stop: olaf.Time(topology.Warmup) - olaf.Time(olaf.Millisecond)}
	r := mustRun(t, topology, Options{Watcher: g})
	if r.Of("window_sent") != 0 || r.Of("aom_cluster_ns").Known() || r.Events == 0 {
		t.Errorf("sent %v, age %v, %v events", r.Of("window_sent"), r.Of("aom_cluster_ns"), r.Events)
	}
}

// TestWatchedRunEndsWithItsContext checks that the context ends a run even if the watcher does not.
func TestWatchedRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, mustPreset(t, "multihop", Scale{}), Options{Watcher: &glance{step: olaf.Time(olaf.Second)}}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// passing is a watcher that never takes a snapshot.
type passing struct{}

func (passing) Before(_, _ olaf.Time, _ func(olaf.Time) *Snapshot) (olaf.Time, bool) {
	return 1 << 62, true
}

// BenchmarkWatcher compares runs without a watcher, with one that never looks, and with snapshots.
func BenchmarkWatcher(b *testing.B) {
	t := preset(b, "multihop", Scale{})
	for _, c := range []struct {
		name string
		w    Watcher
	}{{"none", nil}, {"passing", passing{}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			start, events := cpu(b), uint64(0)
			for b.Loop() {
				r, err := Run(context.Background(), t, Options{Watcher: c.w})
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			b.ReportMetric(float64(cpu(b)-start)/float64(events), "cpu-ns/event")
		})
	}
	b.Run("picture-100000-workers", func(b *testing.B) {
		t := preset(b, "multihop", Scale{Clusters: 1000, WorkersPerCluster: 100})
		s := newReadySim(b, t)
		for range 1_000_000 {
			e := s.queue.Pop()
			s.now, s.order = e.At, e.Ord
			s.handleEvent(&e)
		}
		b.ReportAllocs()
		for b.Loop() {
			s.takeSnapshot(olaf.Time(s.now))
		}
	})
}
