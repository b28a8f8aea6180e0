package netsim

import (
	"context"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
)

// newReadySim returns the simulator of a topology before its first event.
func newReadySim(t testing.TB, topology *Topology) *sim {
	t.Helper()
	n, err := buildNetwork(topology)
	if err != nil {
		t.Fatal(err)
	}
	return newSim(topology, n, Options{})
}

// runToEnd runs a topology to its end and returns the simulator's state.
func runToEnd(t testing.TB, topology *Topology) *sim {
	t.Helper()
	s := newReadySim(t, topology)
	if err := s.runEvents(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.checkAccounts(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAckTiming checks that an ACK takes the server's processing, its own transmissions on links with an ACK rate, and
// every delay down to the worker, and that a second request waits for the first.
func TestAckTiming(t *testing.T) {
	const ms = olaf.Millisecond
	topology := &Topology{
		Duration: 200 * ms, Queue: "olaf", Update: 1000, Control: Control{Enabled: true, Threshold: ms},
		Switches: []Switch{{Name: "leaf", Slots: 4}, {Name: "core", Slots: 4}},
		Servers:  []Server{{Name: "ps", Processing: 30 * ms}},
		Links: []Link{
			{From: "leaf", To: "core", Rate: 8 * olaf.Mbps, Delay: 2 * ms, AckRate: 8064 * olaf.Kbps}, // 1008 B in 1 ms
			{From: "core", To: "ps", Rate: 8 * olaf.Mbps, Delay: 3 * ms},
		},
		Clusters: []Clusters{{Count: 2, Workers: 1, At: Names{"leaf"}, Access: Access{Delay: 5 * ms}}},
		sends:    []send{{0, 0}, {0, 1}},
	}
	s := runToEnd(t, topology)
	// Up: access 5, leaf 1 + 2, core 1 + 3; the second frame follows 1 ms later. Down: 30, 3, then 1 + 2, access 5.
	for cluster, want := range []olaf.Duration{(12 + 30 + 3 + 3 + 5) * ms, (12 + 30 + 30 + 3 + 3 + 5) * ms} {
		_, age, ok := s.listeners[cluster].Last(0)
		if got := -age; !ok || got != want {
			t.Errorf("cluster %d heard at %v (%v), want %v", cluster, got, ok, want)
		}
	}
}

// TestAcksTakeTurns checks that an ACK waits for the previous one where the way down has a rate.
func TestAcksTakeTurns(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("olaf", 4, ms, Clusters{Count: 3, Workers: 1})
	topology.Control = Control{Enabled: true, Threshold: ms}
	topology.Links[0].AckRate = 1344 * olaf.Kbps // 1008 B in 6 ms
	topology.sends = []send{{0, 0}, {0, 1}, {0, 2}}
	s := runToEnd(t, topology)
	for cluster, want := range []olaf.Duration{7 * ms, 13 * ms, 19 * ms} {
		if _, age, _ := s.listeners[cluster].Last(0); -age != want {
			t.Errorf("cluster %d heard at %v, want %v", cluster, -age, want)
		}
	}
}

// TestOneDeliveryPerFrame checks that a frame with two updates of one worker counts as one delivery for the worker.
func TestOneDeliveryPerFrame(t *testing.T) {
	const ms = olaf.Time(olaf.Millisecond)
	topology := oneSwitch("olaf", 4, 10*olaf.Millisecond, Clusters{Workers: 2})
	topology.Duration = olaf.Second
	topology.sends = []send{{0, 0}, {1 * ms, 1}, {2 * ms, 0}, {3 * ms, 1}} // the first leaves, the others merge behind it
	r := mustRun(t, topology, Options{Workers: true})
	if r.Of("window_delivered_frames") != 2 || r.Of("window_delivered_updates") != 4 || r.Of("never_delivered") != 1 ||
		r.Workers[1].Received != 2 {
		t.Errorf("%v frames, %v updates, %v never, %+v", r.Of("window_delivered_frames"), r.Of("window_delivered_updates"),
			r.Of("never_delivered"), r.Workers)
	}
}

// TestMulticastReachesBothBranches checks that a cluster with workers on two switches receives one copy at each, with
// the status of its own branch.
func TestMulticastReachesBothBranches(t *testing.T) {
	const ms = olaf.Millisecond
	topology := &Topology{
		Duration: 3 * olaf.Second, Seed: 1, Queue: "olaf", Update: 1000,
		Control:  Control{Enabled: true, Threshold: olaf.Hour, Count: CountClusters},
		Switches: []Switch{{Name: "a", Slots: 1}, {Name: "b", Slots: 8}, {Name: "core", Slots: 8}},
		Servers:  []Server{{Name: "ps"}},
		Links: []Link{{From: "a", To: "core", Rate: olaf.Gbps, Delay: ms}, {From: "b", To: "core", Rate: olaf.Gbps, Delay: ms},
			{From: "core", To: "ps", Rate: olaf.Gbps, Delay: ms}},
		Clusters: []Clusters{{Count: 4, Workers: 6, At: Names{"a", "b"}, Period: 20 * ms}},
	}
	s := runToEnd(t, topology)
	if len(s.listeners) != 8 {
		t.Fatalf("%d listeners for four clusters at two switches", len(s.listeners))
	}
	for i, want := range []tc.Status{{Active: 4, Slots: 1}, {Active: 4, Slots: 8}} {
		got, _, ok := s.listeners[i].Last(0)
		if got.Occupancy = 0; !ok || got != want {
			t.Errorf("branch %d heard %+v (%v), want %+v", i, got, ok, want)
		}
	}
	// A few are still in flight at the end.
	if sent := 2 * uint64(s.meter.deliveries); s.meter.acks > sent || s.meter.acks+8 < sent {
		t.Errorf("%d ACKs heard for %d deliveries", s.meter.acks, s.meter.deliveries)
	}
}

// TestRoutes checks that an explicit route overrides the shortest path, and only at its switch.
func TestRoutes(t *testing.T) {
	topology := &Topology{
		Duration: olaf.Second, Seed: 1, Queue: "fifo", Update: 1000,
		Switches: []Switch{{Name: "a", Slots: 8}, {Name: "b", Slots: 8}, {Name: "c", Slots: 8}},
		Servers:  []Server{{Name: "ps"}},
		Links: []Link{{From: "a", To: "c", Rate: olaf.Gbps}, {From: "a", To: "b", Rate: olaf.Gbps},
			{From: "b", To: "c", Rate: olaf.Gbps},
			{From: "c", To: "ps", Rate: olaf.Gbps}},
		Clusters: []Clusters{{Workers: 3, At: Names{"a"}, Period: 10 * olaf.Millisecond}},
	}
	through := func() (direct, around uint64) {
		for _, p := range mustRun(t, topology, Options{}).Ports {
			switch p.Port {
			case "a→c":
				direct = uint64(p.Values.Of("in"))
			case "b→c":
				around = uint64(p.Values.Of("in"))
			}
		}
		return direct, around
	}
	if direct, around := through(); direct == 0 || around != 0 {
		t.Errorf("shortest path: %d direct, %d around", direct, around)
	}
	topology.Routes = []Route{{At: "a", To: "ps", Via: "b"}}
	if direct, around := through(); direct != 0 || around == 0 {
		t.Errorf("stated route: %d direct, %d around", direct, around)
	}
}

// TestWorkerLives checks that workers start and stop on time, that their periods spread, and that phases stay within
// their span.
func TestWorkerLives(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("fifo", 100, ms/10, Clusters{Workers: 50, Period: 100 * ms, Phase: Span{20 * ms, 30 * ms}, Start: olaf.Second,
		Stop: 3 * olaf.Second})
	topology.Duration = 5 * olaf.Second
	first, last := olaf.Duration(0), olaf.Duration(0)
	r := mustRun(t, topology, Options{Observer: observer(func(o *olaf.Observation) {
		at := olaf.Duration(o.Update.GenNS) * olaf.Nanosecond
		if first == 0 {
			first = at
		}
		last = at
		if phase := (at - olaf.Second) % (100 * ms); phase < 20*ms || phase >= 30*ms {
			t.Fatalf("an update at %v", at)
		}
	})})
	if first < olaf.Second || last >= 3*olaf.Second || r.Of("window_sent") != 50*20 {
		t.Errorf("%v updates from %v to %v", r.Of("window_sent"), first, last)
	}
	topology.Clusters[0].Spread, topology.Clusters[0].Stop = 0.2, 0
	low, high := 100*ms, 100*ms
	for _, w := range newReadySim(t, topology).workers {
		low, high = min(low, olaf.Duration(w.period)), max(high, olaf.Duration(w.period))
	}
	if low < 80*ms || low > 86*ms || high > 120*ms || high < 114*ms {
		t.Errorf("periods from %v to %v", low, high)
	}
}

// TestCountSenders checks that N counts the workers of the active clusters for senders.
func TestCountSenders(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	topology.Control.Enabled, topology.Control.Threshold, topology.Duration = true, olaf.Hour, 10*olaf.Second
	s := runToEnd(t, topology)
	got, _, _ := s.listeners[3].Last(0)
	if got.Active != 100 || got.Slots != 8 {
		t.Errorf("heard %+v", got)
	}
}
