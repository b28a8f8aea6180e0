package job

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
)

func multihop(t *testing.T) *netsim.Topology {
	t.Helper()
	top, err := netsim.Preset("multihop", netsim.Scale{Interval2: 300 * olaf.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	top.Queue, top.Duration = "fifo", 20*olaf.Second
	return top
}

func clustersOf(t *testing.T, top *netsim.Topology, name, mode string, o system.Options) *Clusters {
	t.Helper()
	s, err := system.All().Find(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Mode(mode)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClusters(top, Spec{System: s, Mode: m, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Workers that wait for each other take a round trip and a gradient for each update, lose nothing for good, and are all inside of
// every sum.
func TestClustersThatWait(t *testing.T) {
	for name, o := range map[string]system.Options{"iswitch": {}, "switchml": {Packet: 1024}} {
		out, err := clustersOf(t, multihop(t), name, "", o).Run(context.Background(), []uint64{1, 2}, nil)
		if err != nil || out.Err() != nil {
			t.Fatal(name, err, out.Err())
		}
		for _, r := range out.Results {
			for g, limits := range [][2]float64{{400, 500}, {600, 700}} {
				v := r.Groups[g].Values
				rounds := float64(v.Of("sent")) / 50
				if between := 20e3 / rounds; between < limits[0] || between > limits[1] {
					t.Errorf("%s, %s: %.0f ms between updates, want %g to %g", name, r.Groups[g].Group, between, limits[0], limits[1])
				}
				if v.Of("delivered_updates") != 10*v.Of("delivered_frames") || v.Of("loss_updates_pct") != 0 || v.Of("never_delivered") != 0 {
					t.Errorf("%s, %s: %v", name, r.Groups[g].Group, v)
				}
				if !(v.Of("aom_worker_ns") >= v.Of("aom_cluster_ns")) {
					t.Errorf("%s: a worker is older than the newest: %v", name, v)
				}
			}
			if late := r.Of("sent") - r.Of("delivered_updates"); late < 0 || late > 100 {
				t.Errorf("%s: %g updates are on their way at the end", name, float64(late))
			}
			if len(r.Ports) != 3 || !slices.ContainsFunc(r.Ports, func(p netsim.PortResult) bool { return p.Port == "sw3→ps" && p.Values.Of("left") > 0 }) {
				t.Errorf("%s: ports %+v", name, r.Ports)
			}
		}
		if out.Endpoints.Of("packets_inexact") != 0 {
			t.Errorf("%s: %v", name, out.Endpoints)
		}
		document, err := json.Marshal(out)
		if err != nil || !strings.Contains(string(document), `"stalled_clusters":[0,0]`) {
			t.Errorf("%s: %s, %v", name, document, err)
		}
	}
}

// Workers that do not wait make exactly the gradients of the topology's own runs, and nobody says whose are in a sum.
func TestClustersThatDoNotWait(t *testing.T) {
	top := multihop(t)
	own, err := netsim.Run(context.Background(), top, netsim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := clustersOf(t, top, "iswitch", "async", system.Options{H: 5, Bound: 1}).Run(context.Background(), []uint64{top.Seed}, nil)
	if err != nil || out.Err() != nil {
		t.Fatal(err, out.Err())
	}
	r := out.Results[0]
	if r.Of("generated") != own.Of("generated") || r.Of("generated") != r.Of("sent")+r.Of("withheld") {
		t.Errorf("%g gradients, %g sent and %g withheld; the topology's own runs have %g", r.Of("generated"), r.Of("sent"), r.Of("withheld"), own.Of("generated"))
	}
	if r.Of("aom_worker_ns").Known() || !r.Of("aom_cluster_ns").Known() {
		t.Errorf("ages %g of clusters, %g of workers", r.Of("aom_cluster_ns"), r.Of("aom_worker_ns"))
	}
	if lost := r.Of("dropped_updates"); lost != 5*r.Of("dropped_frames") || lost == 0 {
		t.Errorf("%g updates were lost in %g frames: twice the bottleneck's rate is offered", lost, r.Of("dropped_frames"))
	}
}

// An ATP cluster whose sum and its repeat were both lost stands still: of ten packets that are sent again at one instant a port
// of five slots drops the same four every time.
func TestTheSameFourAreLost(t *testing.T) {
	c := clustersOf(t, multihop(t), "atp", "", system.Options{})
	sent, heard := map[uint64]int{}, map[uint64]int{} // by job, sequence number and worker
	c.Job.Tap = func(f *closed.Frame) {
		if f.At < olaf.Time(10*olaf.Second) || f.Packet.Kind != program.Data {
			return
		}
		key := uint64(f.Packet.Job)<<40 | f.Packet.Seg<<16 | f.Packet.Bitmap
		switch workers := c.Network.Jobs * c.Network.Workers; {
		case f.From < workers:
			sent[key]++
		case f.To == workers+c.Network.Jobs: // the root
			heard[key]++
		}
	}
	out, err := c.Run(context.Background(), []uint64{1}, nil)
	if err != nil || out.Stalled[0] == 0 {
		t.Fatalf("%v, %d clusters stand still", err, out.Stalled)
	}
	lost, through := 0, 0
	for key, n := range sent {
		switch {
		case n < 4: // of a cluster that goes on
		case heard[key] == 0:
			lost++
		case heard[key] == n:
			through++
		default:
			t.Errorf("%x is sent %d times and heard %d times", key, n, heard[key])
		}
	}
	if lost != 4*out.Stalled[0] || through != 6*out.Stalled[0] {
		t.Errorf("of %d clusters %d packets are always lost and %d never", out.Stalled[0], lost, through)
	}
}

// What stands still is said, and what cannot be played is refused.
func TestClustersRefuse(t *testing.T) {
	c := clustersOf(t, multihop(t), "switchml", "", system.Options{})
	c.Network.Lose(1)
	out, err := c.Run(context.Background(), []uint64{1}, nil)
	if err != nil || !errors.Is(out.Err(), ErrHung) || out.Stalled[0] != 10 {
		t.Errorf("%v, %v, %d", err, out.Err(), out.Stalled)
	}
	sync := func(name string) Spec {
		s, err := system.All().Find(name)
		if err != nil {
			t.Fatal(err)
		}
		return Spec{System: s, Mode: &s.Modes[0]}
	}
	if _, err := NewClusters(multihop(t), sync("ring")); !errors.Is(err, system.ErrOptions) {
		t.Errorf("a ring: %v", err)
	}
	for name, change := range map[string]func(*netsim.Topology){
		"control":   func(t *netsim.Topology) { t.Control.Enabled = true },
		"timing":    func(t *netsim.Topology) { t.Timing = netsim.NS3 },
		"two homes": func(t *netsim.Topology) { t.Clusters[1].At = netsim.Names{"sw1", "sw2"} },
		"unlike":    func(t *netsim.Topology) { t.Clusters[1].Workers = 3 },
		"a stop":    func(t *netsim.Topology) { t.Clusters[1].Stop = olaf.Second },
		"cycles":    func(t *netsim.Topology) { t.Switches[0].Profile = "calibrated" },
		"a change": func(t *netsim.Topology) {
			t.Schedule = []netsim.Change{{At: 1, From: "sw1", To: "sw3", Rate: olaf.Gbps}}
		},
		"background": func(t *netsim.Topology) {
			t.Background = []netsim.Background{{At: "sw1", To: "ps", Rate: olaf.Mbps, Size: 100}}
		},
	} {
		top := multihop(t)
		change(top)
		if _, err := NewClusters(top, sync("switchml")); !errors.Is(err, netsim.ErrTopology) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
