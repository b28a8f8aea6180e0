package slowmotion

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
)

// drawCapture returns a capture of few clusters whose workers are numbered per cluster or over all clusters.
func drawCapture(t *rapid.T) Capture {
	out, err := engine.Calibrated.Output("olaf", 5*olaf.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	c := Capture{Name: "test.pcap", Queue: rapid.SampledFrom(engine.DisciplineNames()).Draw(t, "queue"),
		Engine: engine.Config{Slots: rapid.IntRange(1, 5).Draw(t, "slots")}, Output: out}
	within := rapid.Bool().Draw(t, "within")
	at := olaf.Time(0)
	for i := range rapid.IntRange(1, 40).Draw(t, "updates") {
		at = at.Add(olaf.Duration(rapid.IntRange(0, 700).Draw(t, "gap")) * olaf.Nanosecond)
		cluster, worker := rapid.IntRange(0, 3).Draw(t, "cluster"), rapid.IntRange(0, 2).Draw(t, "worker")
		if !within {
			worker = 3*cluster + worker
		}
		old := rapid.Int64Range(0, 3000).Draw(t, "age")
		c.Arrivals = append(c.Arrivals, Arrival{at,
			olaf.Update{Cluster: olaf.ClusterID(cluster), Worker: olaf.WorkerID(worker), Seq: uint32(i), Count: 1, Lanes: 48,
				GenNS: uint64(at.NS()-old) & (1<<48 - 1)}})
	}
	return c
}

// behind passes a queue's departures to a meter.
type behind struct{ *ages.Meter }

func (b behind) Deliver(d *engine.Departure) {
	b.Meter.Deliver(&olaf.Observation{At: d.At, Queued: d.Queued, Update: d.Frame.Update, Contributors: d.Frame.Contributors})
}

// TestReplayShowsTheAges compares the dashboard's ages of a capture with those of 'replay'.
func TestReplayShowsTheAges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCapture(t)
		meter := ages.New(system.QueueDeclaration())
		meter.Start(0, true)
		cfg := c.Engine
		cfg.Clusters, cfg.Provenance = engine.MaxClusters, true
		port, err := engine.NewPort(c.Queue, cfg, c.Output, behind{meter})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Arrivals {
			a := c.Arrivals[i]
			meter.Arrive(a.At, &a.Update)
			port.Offer(a.At, &a.Update, nil)
		}
		port.Drain()
		want := meter.Report()
		p, err := NewReplay(c, AsFastAsPossible, false, new(stillPace))
		if err != nil {
			t.Fatal(err)
		}
		p.Execute(t.Context(), Seek{To: olaf.Time(olaf.Second)})
		s := p.Snapshot()
		q := &s.Queues[0]
		if s.State != Done || s.Err != nil || q.Invalid != "" || q.Occupancy != 0 || s.Sent != s.Total {
			t.Fatalf("%v, %v, %q, %d inside", s.State, s.Err, q.Invalid, q.Occupancy)
		}
		for reading, name := range map[olaf.Reading]string{olaf.PerCluster: "aom_cluster_ns", olaf.PerWorker: "aom_worker_ns"} {
			got, want := float64(q.MeanAoM[reading]), float64(want.Metrics.Of(name))
			if !(math.Abs(got-want) < 1e-6 || math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("%s is %v on the dashboard, %v in the report", name, got, want)
			}
		}
	})
}

// TestReplaySeeksBackward checks that an instant looks the same from either direction.
func TestReplaySeeksBackward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCapture(t)
		at := olaf.Time(rapid.Int64Range(0, 20_000).Draw(t, "at")) * olaf.Time(olaf.Nanosecond)
		look := func(commands ...Command) string {
			p, err := NewReplay(c, AsFastAsPossible, true, new(stillPace))
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range commands {
				p.Execute(t.Context(), command)
			}
			s := *p.Snapshot()
			s.Plan = nil // each session has its own plan
			return fmt.Sprintf("%+v", s)
		}
		straight := look(Seek{at})
		for name, other := range map[string]string{
			"over the end": look(Seek{olaf.Time(olaf.Second)}, Seek{at}), "in steps": look(Step{}, Step{}, Step{Back: true}, Seek{at}),
			"in halves": look(Seek{at / 2}, Seek{at}),
		} {
			if other != straight {
				t.Fatalf("%s:\n%s\nstraight on:\n%s", name, other, straight)
			}
		}
	})
}

func TestReplayRefuses(t *testing.T) {
	if _, err := NewReplay(Capture{Name: "empty.pcap"}, RealTime, false, new(stillPace)); !errors.Is(err, bench.ErrSpec) {
		t.Error(err)
	}
	out, err := engine.Calibrated.Output("olaf", olaf.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	c := Capture{Name: "one.pcap", NoAges: "clocks", Queue: "olaf", Engine: engine.Config{Slots: 2}, Output: out,
		Arrivals: []Arrival{{At: 5000, Update: olaf.Update{Cluster: 7, Worker: 3, Count: 1}},
			{At: 9000, Update: olaf.Update{Cluster: 7, Worker: 3, Count: 1}}}}
	p, err := NewReplay(c, RealTime, false, new(stillPace))
	if err != nil {
		t.Fatal(err)
	}
	p.Execute(t.Context(), Rerun{Spec: bench.DefaultSpec(system.All())})
	if s := p.Snapshot(); !errors.Is(s.Err, bench.ErrSpec) || s.State == Failed {
		t.Errorf("%v, %v", s.State, s.Err)
	}
	if in, err := p.Inspect(t.Context()); err != nil || in.TablesError == nil {
		t.Error(in, err)
	}
	p.Execute(t.Context(), Seek{To: olaf.Time(olaf.Second)})
	s := p.Snapshot()
	if s.Err != nil || s.State != Done || s.Queues[0].NoAges != "clocks" || s.Queues[0].MeanAoM[0].Known() || s.Queues[0].Clusters[7].Mean[0].Known() ||
		s.Queues[0].Clusters[7].Delivered != 2 {
		t.Errorf("%v, %v, %+v", s.State, s.Err, s.Queues[0].Clusters[7])
	}
	p.Execute(t.Context(), Seek{})
	p.Execute(t.Context(), Stop{})
	p.Execute(t.Context(), Seek{To: olaf.Time(olaf.Second)})
	if s := p.Snapshot(); s.Sent != 0 || s.State != Done {
		t.Errorf("%d of %d sent after a stop, %v", s.Sent, s.Total, s.State)
	}
}
