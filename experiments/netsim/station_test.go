package netsim

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results/metric"
)

// addingPreset returns a preset whose switches add h updates to a sum.
func addingPreset(t testing.TB, name string, h int) *Topology {
	topology := preset(t, name, Scale{})
	topology.Queue, topology.Program, topology.H = "fifo", "iswitch", h
	return topology
}

// sums collects the contributors of each cluster's frames, in the order of arrival.
type sums map[olaf.ClusterID][]string

func (s sums) Deliver(_, _ int, o *olaf.Observation) {
	var inside []string
	for _, k := range o.Contributors {
		inside = append(inside, fmt.Sprintf("%d/%d", k.Worker, k.Seq))
	}
	s[o.Update.Cluster] = append(s[o.Update.Cluster], strings.Join(inside, " "))
}

// smallSums returns a topology with two adding switches. One holds a sum of cluster 4 from 1 to 4 ms and from 7 ms on,
// the other one of cluster 9 from 3 to 6 ms.
func smallSums() *Topology {
	const ms = olaf.Millisecond
	return &Topology{
		Duration: 100 * ms, Seed: 1, Queue: "fifo", Update: 1000, systems: system.All(), Program: "iswitch", H: 3,
		Switches: []Switch{{Name: "leaf", Slots: 8}, {Name: "root", Slots: 8}}, Servers: []Server{{Name: "ps"}},
		Links:    []Link{{From: "leaf", To: "root", Rate: olaf.Gbps}, {From: "root", To: "ps", Rate: olaf.Gbps}},
		Clusters: []Clusters{{ID: 4, Workers: 2, At: Names{"leaf"}}, {ID: 9, Workers: 1, At: Names{"root"}}},
		sends: []send{
			{olaf.Time(ms), 0}, {olaf.Time(2 * ms), 1}, {olaf.Time(3 * ms), 2}, {olaf.Time(4 * ms), 1}, // 4: one sum, then
			{olaf.Time(5 * ms), 2}, {olaf.Time(6 * ms), 2}, // 9: one sum, and
			{olaf.Time(7 * ms), 1}, {olaf.Time(8 * ms), 0}, // part of another sum of 4
		},
	}
}

// TestTablesOverTime checks that table occupancy covers the window: a sum that began earlier counts from the window's
// start.
func TestTablesOverTime(t *testing.T) {
	for _, c := range []struct {
		warmup     olaf.Duration
		area, peak float64 // slots × µs
	}{{0, 99_000, 2}, {5500 * olaf.Microsecond, 93_500, 2}, {6500 * olaf.Microsecond, 93_000, 1}, {99 * olaf.Millisecond, 1000, 1}} {
		topology := smallSums()
		topology.Warmup, topology.Duration = c.warmup, topology.Duration-c.warmup
		r := mustRun(t, topology, Options{})
		want := c.area / (float64(topology.Duration) / float64(olaf.Microsecond))
		for name, want := range map[string]float64{"slots_held": want, "slots_held_peak": c.peak, "held_bytes": want * 1466} {
			if got := float64(r.Of(name)); math.Abs(got-want) > 1e-9*want {
				t.Errorf("after %v: %s is %v, want %v", c.warmup, name, got, want)
			}
		}
	}
}

// TestTracesHaveNoTableOccupancy checks that a trace of deliveries gives no table occupancy.
func TestTracesHaveNoTableOccupancy(t *testing.T) {
	r, err := ImportRx(smallSums(), "rx.csv", strings.NewReader(trace.RxHeader+"\n1000,0,0,500\n2000,1,0,900\n"))
	if err != nil || r.Of("window_delivered_frames") != 2 || r.Of("slots_held").Known() || r.Of("slots_held_peak").Known() {
		t.Errorf("%v, %v", r, err)
	}
}

// TestSwitchSumsContainHUpdates checks that every sum contains H updates, in the order in which they reached their
// workers' switch, and that switches above forward it.
func TestSwitchSumsContainHUpdates(t *testing.T) {
	got := sums{}
	r := mustRun(t, smallSums(), Options{Observer: got})
	if want := "map[4:[0/0 1/0 1/1] 9:[0/0 0/1 0/2]]"; fmt.Sprint(got) != want {
		t.Errorf("sums of %v, want %s", got, want)
	}
	for name, want := range map[string]int64{"in": 8, "appended": 4, "aggregated": 4, "delivered": 2, "queued": 2, "count_delivered": 6,
		"count_queued": 2} {
		if n := r.Totals.Of(name); n != want {
			t.Errorf("%s: %d, want %d", name, n, want)
		}
	}
	if r.Of("window_aggregated") != 4 || r.Of("window_delivered_updates") != 6 || r.Of("window_delivered_frames") != 2 {
		t.Errorf("%v updates were aggregated, %v delivered in %v frames", r.Of("window_aggregated"), r.Of("window_delivered_updates"),
			r.Of("window_delivered_frames"))
	}
}

// TestSumsOfOneAreFIFO checks that switches with sums of one update equal switches that only forward, in every number.
func TestSumsOfOneAreFIFO(t *testing.T) {
	for _, name := range []string{"multihop", "fat-tree", "rack", "single"} {
		one := addingPreset(t, name, 1)
		one.Duration, one.Control.Enabled = min(one.Duration, 5*olaf.Second), true
		plain := *one
		plain.Program, plain.H = "", 0
		got, want := mustRun(t, one, Options{}), mustRun(t, &plain, Options{})
		if got.Of("slots_held") != 0 || got.Of("slots_held_peak") != 0 || want.Of("slots_held").Known() {
			t.Errorf("%s: %v slots were held, without a program %v", name, got.Of("slots_held"), want.Of("slots_held"))
		}
		got.Values = metric.NewValues(RunStatistics(), func(i int) metric.Float { return got.Values.Of(RunStatistics()[i].Name) })
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %v\nwithout a program %v", name, got.Values, want.Values)
		}
	}
}

// TestAccountsBalanceWithPrograms checks that the updates that a program holds, merges and sends are accounted for in
// any network.
func TestAccountsBalanceWithPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topology := drawTopology(t)
		topology.Timing, topology.Queue = Exact, "fifo"
		topology.systems, topology.Program, topology.H = system.All(), "iswitch", rapid.IntRange(1, 7).Draw(t, "h")
		topology.Links[0].Loss = rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "loss")
		if topology.Check() != nil {
			t.Skip("a period below one transmission")
		}
		r, err := Run(t.Context(), topology, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := uint64(r.Totals.Of("delivered")); uint64(r.Totals.Of("count_delivered")) != n*uint64(topology.H) {
			t.Fatalf("%d sums hold %d updates, each must hold %d", n, r.Totals.Of("count_delivered"), topology.H)
		}
		if mean, most := r.Of("slots_held"), r.Of("slots_held_peak"); !(mean >= 0 && mean <= most) {
			t.Fatalf("%v slots were held, %v at most", mean, most)
		}
	})
}

// TestRefusedPrograms checks that impossible programs are rejected with their position.
func TestRefusedPrograms(t *testing.T) {
	for want, set := range map[string]func(*Topology){
		"h is 0; a sum has 1 to 65535 updates":                 func(t *Topology) { t.H = 0 },
		"h is 65536; a sum has 1 to 65535":                     func(t *Topology) { t.H = 65536 },
		"h is 3, but switches have no program":                 func(t *Topology) { t.Program = "" },
		"unknown system \"switchml\"":                          func(t *Topology) { t.Program = "switchml" },
		"ports of iswitch are fifo, not olaf":                  func(t *Topology) { t.Queue = "olaf" },
		"those of switchml wait; leave out program or waiting": func(t *Topology) { t.Waiting = &Waiting{System: "switchml"} },
		"ports of iswitch are fifo, not olaf ":                 nil,
	} {
		topology := addingPreset(t, "multihop", 3)
		topology.File = "net.yaml"
		if set == nil {
			topology.Switches[1].Queue = "olaf"
			want = strings.TrimSpace(want)
		} else {
			set(topology)
		}
		if err := topology.Resolve(); !errors.Is(err, ErrTopology) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestProgramsAllocateNothing checks that a program in front of the ports allocates nothing once every cluster was
// seen.
func TestProgramsAllocateNothing(t *testing.T) {
	topology := addingPreset(t, "multihop", 3)
	topology.Control.Enabled, topology.Duration = true, 30*24*olaf.Hour
	s := newReadySim(t, topology)
	steps := func() {
		for range 10_000 {
			e := s.queue.Pop()
			s.now, s.order = e.At, e.Ord
			s.handleEvent(&e)
		}
	}
	for range 20 {
		steps()
	}
	if each := testing.AllocsPerRun(10, steps); each > 0 {
		t.Errorf("%v allocations in 10,000 events", each)
	}
}
