package netsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

func mustPreset(t testing.TB, name string, scale Scale) *Topology {
	t.Helper()
	topology, err := Preset(system.All(), name, scale)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func mustRun(t testing.TB, topology *Topology, opt Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), topology, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compareValues compares numbers by name; without names, all those in got.
func compareValues(t testing.TB, what string, got, want metric.Values, names ...string) {
	t.Helper()
	said := 0
	for m, v := range got.All {
		said++
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		if other := want.Of(m.Name); v != other && (v.Known() || other.Known()) {
			t.Errorf("%s: %s is %v, want %v", what, m.Name, v, other)
		}
	}
	if said == 0 {
		t.Errorf("%s: no numbers", what)
	}
}

// oneSwitch returns a queue in front of a link that takes service for an update of 1000 B, without other delays.
func oneSwitch(queue string, slots int, service olaf.Duration, k Clusters) *Topology {
	k.At = Names{"sw"}
	return &Topology{
		Duration: 100 * olaf.Second, Seed: 1, Queue: queue, Update: 1000,
		Switches: []Switch{{Name: "sw", Slots: slots}},
		Servers:  []Server{{Name: "ps"}},
		Links:    []Link{{From: "sw", To: "ps", Rate: olaf.Rate(8000 * float64(olaf.Second) / float64(service))}},
		Clusters: []Clusters{k},
	}
}

// delays sums the queueing times of frames, including service.
type delays struct {
	sum olaf.Duration
	n   int
}

func (d *delays) Deliver(_, _ int, o *olaf.Observation) {
	d.sum += o.Queued
	d.n++
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: %v, want %v within %.3g %%", what, got, want, 100*tolerance)
	}
}

// TestSingleWorkerAge checks that the age for a single worker is half its period plus the delay of its path.
func TestSingleWorkerAge(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("olaf", 1, ms, Clusters{Workers: 1, Period: 100 * ms, Access: Access{Delay: 7 * ms}})
	topology.Links[0].Delay = 13 * ms
	topology.Duration = 1000 * olaf.Second
	r := mustRun(t, topology, Options{})
	// From the first delivery to the end: a whole number of periods and a fraction.
	near(t, "age", float64(r.Of("aom_cluster_ns")), float64(100*ms/2+ms+20*ms)/1000, 1e-4)
	near(t, "peak", float64(r.Of("peak_aom_ns")), float64(100*ms+ms+20*ms)/1000, 1e-9)
	if r.Of("window_delivered_frames")+1 < r.Of("window_sent") || r.Of("never_delivered") != 0 {
		t.Errorf("delivered %v of %v", r.Of("window_delivered_frames"), r.Of("window_sent"))
	}
}

// TestMD1 checks the mean time in an M/D/1 system: s·(1 + ρ/(2(1−ρ))).
func TestMD1(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		service := olaf.Millisecond
		// One Poisson source is enough: independent ones add up to one.
		topology := oneSwitch("fifo", engine.MaxSlots, service, Clusters{
			Workers: 1, Arrivals: Poisson, Period: olaf.Duration(float64(service) / rho)})
		topology.Duration = 2000 * olaf.Second
		var d delays
		mustRun(t, topology, Options{Observer: &d})
		want := float64(service) * (1 + rho/(2*(1-rho)))
		near(t, fmt.Sprintf("M/D/1 at ρ = %v over %d updates", rho, d.n), float64(d.sum)/float64(d.n), want, 0.03)
	}
}

// TestMD1OfManyWorkers checks that independent Poisson workers are equivalent to one worker with the sum of their
// rates.
func TestMD1OfManyWorkers(t *testing.T) {
	const rho, workers = 0.7, 50
	service := olaf.Millisecond
	topology := oneSwitch("fifo", engine.MaxSlots, service, Clusters{
		Count: 5, Workers: workers / 5, Arrivals: Poisson, Period: olaf.Duration(float64(service) / rho * workers)})
	topology.Duration = 1000 * olaf.Second
	var d delays
	mustRun(t, topology, Options{Observer: &d})
	near(t, "M/D/1", float64(d.sum)/float64(d.n), float64(service)*(1+rho/(2*(1-rho))), 0.03)
}

// TestDD1KLoss checks D/D/1/K. A server that is never idle serves c of n periodic updates per period; in a burst, one
// goes into service, the slots fill, and the rest is lost.
func TestDD1KLoss(t *testing.T) {
	period := 100 * olaf.Millisecond
	for _, c := range []struct {
		workers, served, slots int
		burst                  bool
		want                   float64
	}{
		{20, 5, 4, false, 75}, {50, 10, 8, false, 80}, {8, 1, 1, false, 87.5},
		{20, 19, 3, true, 80}, {8, 7, 1, true, 75}, {30, 12, 11, true, 60},
	} {
		k := Clusters{Workers: c.workers, Period: period}
		if c.burst {
			k.Phase = Span{0, olaf.Nanosecond}
		}
		r := mustRun(t, oneSwitch("fifo", c.slots, period/olaf.Duration(c.served), k), Options{})
		near(t, fmt.Sprintf("loss of %+v", c), float64(r.Of("loss_packets_pct")), c.want, 0.002)
	}
}

// TestNoLossBelowCapacity checks that a queue with room loses nothing.
func TestNoLossBelowCapacity(t *testing.T) {
	topology := oneSwitch("fifo", 30, olaf.Millisecond, Clusters{Workers: 20, Period: 40 * olaf.Millisecond})
	r := mustRun(t, topology, Options{})
	if r.Of("window_dropped_frames") != 0 {
		t.Errorf("%v updates dropped", r.Of("window_dropped_frames"))
	}
}

// drawTopology returns a small random network: a chain or a tree, any discipline, transmission control, failures,
// background.
func drawTopology(t *rapid.T) *Topology {
	const ms = olaf.Millisecond
	topology := &Topology{
		Duration: olaf.Duration(rapid.Int64Range(1, 800).Draw(t, "duration")) * ms,
		Warmup:   olaf.Duration(rapid.Int64Range(0, 300).Draw(t, "warmup")) * ms,
		Seed:     rapid.Uint64().Draw(t, "seed"), Queue: rapid.SampledFrom(engine.DisciplineNames()).Draw(t, "queue"),
		Update:  olaf.FrameSize(rapid.IntRange(0, 300).Draw(t, "lanes")),
		Timing:  rapid.SampledFrom([]Timing{"", Exact, NS3}).Draw(t, "timing"),
		Servers: []Server{{Name: "ps", Processing: olaf.Duration(rapid.Int64Range(0, 3).Draw(t, "processing")) * ms}},
		Control: Control{Enabled: rapid.Bool().Draw(t, "tc"), Threshold: 20 * ms,
			Slope: rapid.SampledFrom([]tc.Slope{tc.Urgency, tc.Fairness}).Draw(t, "slope"),
			Count: rapid.SampledFrom([]Count{"", CountClusters, CountSenders, CountInside}).Draw(t, "count"), Window: 50 * ms},
	}
	switches := rapid.IntRange(1, 4).Draw(t, "switches")
	for i := range switches {
		topology.Switches = append(topology.Switches, Switch{
			Name: fmt.Sprint("sw", i), Slots: rapid.IntRange(1, 6).Draw(t, "slots"), HoldTx: rapid.Bool().Draw(t, "hold"),
			Profile: rapid.SampledFrom([]string{"", "ideal", "calibrated", "measured-shared"}).Draw(t, "profile"),
			Bypass:  rapid.IntRange(0, 3).Draw(t, "bypass")})
		to := "ps"
		if i > 0 {
			to = fmt.Sprint("sw", rapid.IntRange(0, i-1).Draw(t, "to"))
		}
		topology.Links = append(topology.Links, Link{
			From: fmt.Sprint("sw", i), To: to, Rate: olaf.Rate(rapid.Int64Range(50_000, 30_000_000).Draw(t, "rate")),
			Delay:   olaf.Duration(rapid.Int64Range(0, 20_000).Draw(t, "delay")) * olaf.Microsecond,
			AckRate: olaf.Rate(rapid.SampledFrom([]int64{0, 100_000}).Draw(t, "ackrate"))})
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "entries") {
		period := olaf.Duration(rapid.Int64Range(1, 100).Draw(t, "period")) * ms
		k := Clusters{
			ID: 10 * i, Count: rapid.IntRange(1, 4).Draw(t, "count"), Workers: rapid.IntRange(1, 5).Draw(t, "workers"), Period: period,
			At: Names{fmt.Sprint("sw", rapid.IntRange(0, switches-1).Draw(t, "at")),
				fmt.Sprint("sw", rapid.IntRange(0, switches-1).Draw(t, "at2"))},
			Jitter:   olaf.Duration(rapid.Int64Range(0, int64(period)).Draw(t, "jitter")),
			Arrivals: rapid.SampledFrom([]Arrivals{"", Periodic, Poisson}).Draw(t, "arrivals"),
			Access: Access{Rate: olaf.Rate(rapid.SampledFrom([]int64{0, 20_000_000}).Draw(t, "access")),
				Delay: olaf.Duration(rapid.Int64Range(0, 200).Draw(t, "accessdelay")) * ms},
			Start: olaf.Duration(rapid.Int64Range(0, 200).Draw(t, "start")) * ms,
		}
		if rapid.Bool().Draw(t, "stops") {
			k.Stop = k.Start + 100*ms
		}
		topology.Clusters = append(topology.Clusters, k)
	}
	if rapid.Bool().Draw(t, "background") {
		topology.Background = []Background{{At: fmt.Sprint("sw", switches-1), To: "ps", Rate: olaf.Mbps, Size: 500, Arrivals: Poisson}}
	}
	l := topology.Links[rapid.IntRange(0, switches-1).Draw(t, "changed")]
	for i := range rapid.IntRange(0, 4).Draw(t, "changes") {
		c := Change{At: olaf.Duration(rapid.Int64Range(0, 900).Draw(t, "change at")) * ms, From: l.From, To: l.To}
		if i%2 == 0 {
			c.Link = rapid.SampledFrom([]LinkState{LinkDown, LinkUp}).Draw(t, "state")
		} else {
			c.Rate = olaf.Rate(rapid.Int64Range(50_000, 5_000_000).Draw(t, "new rate"))
		}
		topology.Schedule = append(topology.Schedule, c)
	}
	return topology
}

// TestRandomNetworksConserveUpdates runs random networks, because every run checks conservation itself, and checks that
// the same topology gives the same bytes.
func TestRandomNetworksConserveUpdates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topology := drawTopology(t)
		if topology.Check() != nil {
			t.Skip("a period below one transmission")
		}
		var texts [2][]byte
		for i := range texts {
			r, err := Run(context.Background(), topology, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if texts[i], err = json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Fatalf("two runs differ:\n%s\n%s", texts[0], texts[1])
		}
	})
}

// TestSeedsInOrder checks that results are in the order of seeds, on any number of cores.
func TestSeedsInOrder(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	topology.Duration, topology.Warmup = 2*olaf.Second, 0
	seeds := []uint64{5, 3, 9, 1, 1}
	var texts [2]string
	for i, procs := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		runs, err := RunSeeds(context.Background(), topology, seeds, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for j, r := range runs {
			if r.Seed != seeds[j] {
				t.Errorf("result %d is of seed %d", j, r.Seed)
			}
		}
		text, _ := json.Marshal(runs)
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Error("one and two cores differ")
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	topology := mustPreset(t, "multihop", Scale{})
	topology.Duration = 24 * olaf.Hour
	_, err := Run(ctx, topology, Options{Progress: func(float64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// departures records the frames that leave a simulated switch, to compare with an engine.Port that gets the same input.
type departures []string

func (d *departures) Deliver(_, worker int, o *olaf.Observation) {
	*d = append(*d, fmt.Sprint(o.At, worker, o.Update.Seq, o.Update.Count, o.Update.GenNS, o.Queued))
}

type queueSink struct{ out departures }

func (s *queueSink) Deliver(d *engine.Departure) {
	o := olaf.Observation{At: d.At, Queued: d.Queued, Update: d.Frame.Update}
	s.out.Deliver(0, int(d.Frame.Update.Cluster)*3+int(d.Frame.Update.Worker), &o)
}

// TestSwitchEqualsTwinQueue checks that one switch equals the twin's queue: with the same engine and serialiser,
// departures are equal to the picosecond if a frame takes whole cycles, with engine cycles and without.
func TestSwitchEqualsTwinQueue(t *testing.T) {
	for _, queue := range engine.DisciplineNames() {
		for _, profile := range []engine.Profile{engine.Ideal, engine.Calibrated, engine.Measured, engine.MeasuredShared} {
			for seed := range uint64(20) {
				compareWithQueue(t, queue, profile, seed)
			}
		}
	}
}

func compareWithQueue(t *testing.T, queue string, profile engine.Profile, seed uint64) {
	t.Helper()
	const clusters, perCluster = 9, 3
	end := 40 * olaf.Microsecond
	var sends []send
	state := seed
	for at := olaf.Time(0); at < olaf.Time(end); {
		state = splitmix.MixBits(state)
		at += olaf.Time(state%24) * olaf.Time(olaf.Cycle) // 4 ns … 96 ns, mean 44; also several at once
		sends = append(sends, send{at, int(state >> 32 % (clusters * perCluster))})
	}
	topology := &Topology{
		Duration: end + 100*olaf.Microsecond, Queue: queue, Update: 256,
		Switches: []Switch{{Name: "sw", Slots: 8, HoldTx: true, Profile: string(profile)}},
		Servers:  []Server{{Name: "ps"}},
		Links:    []Link{{From: "sw", To: "ps", Rate: 32 * olaf.Gbps}}, // 16 B a cycle, 16 cycles a frame
		Clusters: []Clusters{{Count: clusters, Workers: perCluster, At: Names{"sw"}}},
		sends:    sends,
	}
	var got departures
	r := mustRun(t, topology, Options{Observer: &got})

	out, err := profile.Output(queue, 32*olaf.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	var want queueSink
	q, err := engine.NewPort(queue, engine.Config{Slots: 8, Clusters: clusters}, out, &want)
	if err != nil {
		t.Fatal(err)
	}
	seq := map[int]uint32{}
	for _, s := range sends {
		u := olaf.Update{GenNS: uint64(s.At.NS()), Seq: seq[s.Worker], Cluster: olaf.ClusterID(s.Worker / perCluster),
			Worker: olaf.WorkerID(s.Worker % perCluster), Count: 1, Lanes: 48}
		seq[s.Worker]++
		q.Offer(s.At, &u, nil)
	}
	q.Drain()
	if strings.Join(got, "\n") != strings.Join(want.out, "\n") {
		for i := range min(len(got), len(want.out)) {
			if got[i] != want.out[i] {
				t.Fatalf("%s %s seed %d: departure %d of %d is %s here and %s from the queue (of %d)", queue, profile, seed, i,
					len(got), got[i], want.out[i], len(want.out))
			}
		}
		t.Fatalf("%s %s seed %d: %d departures here, %d from the queue", queue, profile, seed, len(got), len(want.out))
	}
	st := q.Discipline().Stats()
	for name, class := range map[string]engine.Class{"window_aggregated": engine.Aggregated, "window_replaced": engine.Replaced,
		"window_dropped_frames": engine.DroppedFull} {
		if got := r.Of(name); got != results.Float(st.Class[class]) {
			t.Errorf("%s %s seed %d: %v %s, the queue's %+v", queue, profile, seed, got, name, st.Class)
		}
	}
}

// TestAgesAgreeWithResults checks that results.Collector computes the same ages from the same observations, if worker
// ids are small enough for it.
func TestAgesAgreeWithResults(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{Clusters: 4, WorkersPerCluster: 5})
	topology.Duration, topology.Warmup = 10*olaf.Second, olaf.Second
	for i := range topology.Clusters {
		topology.Clusters[i].Phase = Span{}
	}
	c := &collected{results.NewCollector(results.Config{Declared: system.QueueDeclaration(), Clusters: 4, Workers: 20,
		Window: topology.Window()}), 0}
	r := mustRun(t, topology, Options{Observer: c})
	got := c.Finish(olaf.Counts{})
	for _, p := range []struct {
		name       string
		ours, want results.Float
	}{
		{"aom_cluster", r.Of("aom_cluster_ns"), got.Metrics.Of("aom_cluster_ns")},
		{"aom_worker", r.Of("aom_worker_ns"), got.Metrics.Of("aom_worker_ns")},
		{"jain", r.Of("jain"), got.Metrics.Of("jain")}, {"jain_workers", r.Of("jain_workers"), got.Metrics.Of("jain_workers")},
		{"jain_worker_means", r.Of("jain_worker_means"), got.Metrics.Of("jain_worker_means")},
		{"peak", r.Of("peak_aom_ns"), got.Metrics.Of("peak_aom_ns")},
		{"never", r.Of("never_delivered"), got.Metrics.Of("never_delivered")},
	} {
		near(t, p.name, float64(p.ours), float64(p.want), 1e-12)
	}
}

// collected renumbers workers so that their ids are unique over all clusters.
type collected struct {
	*results.Collector
	n int64
}

func (c *collected) Deliver(_, worker int, o *olaf.Observation) {
	one := *o
	first := worker - int(o.Update.Worker)
	one.Update.Worker = olaf.WorkerID(worker)
	one.Contributors = append([]olaf.Contributor(nil), o.Contributors...)
	for i := range one.Contributors {
		one.Contributors[i].Worker += olaf.WorkerID(first)
	}
	c.n++
	c.Observe(&one)
}

// TestLinkFailure checks that a link that is down delivers nothing and loses the frames on it, and works again
// afterwards.
func TestLinkFailure(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("olaf", 4, 10*ms, Clusters{Count: 3, Workers: 2, Period: 20 * ms})
	topology.Duration = 3 * olaf.Second
	topology.Schedule = []Change{{At: olaf.Second, From: "sw", To: "ps", Link: LinkDown},
		{At: 2 * olaf.Second, From: "sw", To: "ps", Link: LinkUp}}
	var during, after int
	r := mustRun(t, topology, Options{Observer: observer(func(o *olaf.Observation) {
		switch {
		case o.At > olaf.Time(olaf.Second) && o.At <= olaf.Time(2*olaf.Second):
			during++
		case o.At > olaf.Time(2*olaf.Second):
			after++
		}
	})})
	if during != 0 || after < 90 || r.Ports[0].Values.Of("lost_on_link") != 1 {
		t.Errorf("%v deliveries while down, %v after, %v lost on the link", during, after, r.Ports[0].Values.Of("lost_on_link"))
	}
	if r.Of("acks_lost") != 0 {
		t.Errorf("%v ACKs lost, though all deliveries were before or after", r.Of("acks_lost"))
	}
}

type observer func(*olaf.Observation)

func (f observer) Deliver(_, _ int, o *olaf.Observation) { f(o) }

// TestRateChange checks that a new rate applies from the next frame on.
func TestRateChange(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("fifo", 100, 10*ms, Clusters{Workers: 1, Period: 5 * ms, Phase: Span{0, olaf.Nanosecond}})
	topology.Duration = 100 * ms
	topology.Schedule = []Change{{At: 25 * ms, From: "sw", To: "ps", Rate: olaf.Mbps / 5}}
	var at []olaf.Time
	mustRun(t, topology, Options{Observer: observer(func(o *olaf.Observation) { at = append(at, o.At) })})
	want := fmt.Sprint([]olaf.Time{olaf.Time(10 * ms), olaf.Time(20 * ms), olaf.Time(30 * ms), olaf.Time(70 * ms)})
	if fmt.Sprint(at) != want {
		t.Errorf("deliveries at %v, want %s", at, want)
	}
}

// TestBackgroundSharesTheLink checks that background traffic bypasses the engine and alternates with updates on the
// link.
func TestBackgroundSharesTheLink(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("fifo", 4, 10*ms, Clusters{Workers: 4, Period: 10 * ms})
	topology.Background = []Background{{At: "sw", To: "ps", Rate: 4 * olaf.Mbps, Size: 1000}}
	topology.Duration = 20 * olaf.Second
	r := mustRun(t, topology, Options{})
	near(t, "updates", float64(r.Of("window_delivered_frames")), 1000, 0.01)
	near(t, "background", float64(r.Background[1]), 1000, 0.01)
	near(t, "utilisation", float64(r.Ports[0].Values.Of("utilisation")), 1, 0.001)
	if r.Ports[0].Values.Of("bypass_dropped") == 0 {
		t.Error("no background packet was dropped, though it offers five times the link")
	}
}

// TestControlWithholds checks that transmission control changes nothing while N is below the number of slots, and above
// it withholds at the rate of the paper's rule.
func TestControlWithholds(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("olaf", 10, ms/2, Clusters{Count: 10, Workers: 1, Period: 100 * ms, Jitter: 50 * ms,
		Access: Access{Delay: ms}})
	// The threshold exceeds every gap between ACKs, so that f stays 0 and Ps is Qmax/N.
	topology.Control = Control{Enabled: true, Threshold: olaf.Hour, Slope: tc.Urgency, Count: CountClusters}
	if r := mustRun(t, topology, Options{}); r.Of("window_withheld") != 0 {
		t.Errorf("%v withheld with as many slots as clusters", r.Of("window_withheld"))
	}
	topology.Switches[0].Slots = 4
	topology.Control.Window = 10 * olaf.Second
	topology.Warmup = 20 * olaf.Second
	r := mustRun(t, topology, Options{})
	near(t, "share sent", float64(r.Of("window_sent"))/float64(r.Of("window_generated")), 0.4, 0.03)
}

// TestRewardFilterInTheNetwork checks that ports filter by reward, that no update is lost unaccounted, and that a threshold
// beyond all rewards changes nothing.
func TestRewardFilterInTheNetwork(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	topology.Queue, topology.Duration = "olaf", 5*olaf.Second
	off := mustRun(t, topology, Options{})
	topology.RewardFilter, topology.RewardThreshold = true, 1000
	loose := mustRun(t, topology, Options{})
	compareValues(t, "threshold beyond all rewards", loose.Values, off.Values)
	topology.RewardThreshold = 0.5
	tight := mustRun(t, topology, Options{})
	merged := func(r *Result) float64 { return float64(r.Ports[0].Values.Of("aggregated")) }
	if m := merged(tight); m == 0 || m > merged(off)/2 {
		t.Errorf("%v updates merged within 0.5 of reward, %v without filter; want some, and less than half", m, merged(off))
	}
}

// TestAckBringsTheWorstHop checks that an ACK brings the status of the most congested hop, wherever it is.
func TestAckBringsTheWorstHop(t *testing.T) {
	for _, slots := range [][2]int{{2, 8}, {8, 2}} {
		topology := mustPreset(t, "multihop", Scale{})
		topology.Switches[0].Slots, topology.Switches[2].Slots = slots[0], slots[1]
		topology.Control = Control{Enabled: true, Threshold: olaf.Hour, Count: CountClusters}
		topology.Duration = 10 * olaf.Second
		s := runToEnd(t, topology)
		status, _, ok := s.listeners[0].Last(olaf.Time(s.end))
		want := tc.Status{Active: 5, Slots: 2} // SW1 serves five clusters
		if slots[1] == 2 {
			want.Active = 10 // SW3 serves ten
		}
		if status.Occupancy = 0; !ok || status != want {
			t.Errorf("slots %v: the workers heard %+v, want %+v", slots, status, want)
		}
	}
}

// TestHotStructsFitCacheLines checks sizes, because with a hundred thousand workers each cache line is a memory access.
func TestHotStructsFitCacheLines(t *testing.T) {
	if s := unsafe.Sizeof(worker{}); s > 64 {
		t.Errorf("worker has %d bytes", s)
	}
	if s := unsafe.Sizeof(workerMeter{}); s > 64 {
		t.Errorf("workerMeter has %d bytes", s)
	}
}
