package netsim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	wire "github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results"
)

// waitingHop returns the multi-hop network of Table 3 with closed-loop workers, for 20 seconds.
func waitingHop(t testing.TB, w Waiting) *Topology {
	t.Helper()
	top, err := Preset(system.All(), "multihop", Scale{Interval2: 300 * olaf.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	top.Queue, top.Duration, top.Waiting = "fifo", 20*olaf.Second, &w
	return top
}

// TestSynchronousClusters checks that synchronous workers take a round trip and a gradient per update, lose nothing for
// good, and all contribute to every sum.
func TestSynchronousClusters(t *testing.T) {
	for _, w := range []Waiting{{System: "iswitch"}, {System: "switchml", Packet: 1024}} {
		runs, err := RunSeeds(context.Background(), waitingHop(t, w), []uint64{1, 2}, Options{}, nil)
		if err != nil {
			t.Fatal(w.System, err)
		}
		for _, r := range runs {
			for g, limits := range [][2]float64{{400, 500}, {600, 700}} {
				v := r.Groups[g].Values
				rounds := float64(v.Of("window_sent")) / 50
				if between := 20e3 / rounds; between < limits[0] || between > limits[1] {
					t.Errorf("%s, %s: %.0f ms between updates, want %g to %g", w.System, r.Groups[g].Group, between, limits[0],
						limits[1])
				}
				if v.Of("window_delivered_updates") != 10*v.Of("window_delivered_frames") || v.Of("loss_updates_pct") != 0 ||
					v.Of("never_delivered") != 0 {
					t.Errorf("%s, %s: %v", w.System, r.Groups[g].Group, v)
				}
				if !(v.Of("aom_worker_ns") >= v.Of("aom_cluster_ns")) {
					t.Errorf("%s: a worker is older than the newest: %v", w.System, v)
				}
			}
			if late := r.Of("window_sent") - r.Of("window_delivered_updates"); late < 0 || late > 100 {
				t.Errorf("%s: %g updates are on their way at the end", w.System, float64(late))
			}
			if len(r.Ports) != 3 || !slices.ContainsFunc(r.Ports,
				func(p PortResult) bool { return p.Port == "sw3→ps" && p.Values.Of("left") > 0 }) {
				t.Errorf("%s: ports %+v", w.System, r.Ports)
			}
			if r.Waited.Stalled != 0 || r.Waited.Endpoints.Of("packets_inexact") != 0 || r.Events == 0 {
				t.Errorf("%s: %d events, %d clusters stand still; %v", w.System, r.Events, r.Waited.Stalled, r.Waited.Endpoints)
			}
		}
	}
}

// TestAsynchronousClusters checks that asynchronous workers make exactly the gradients of open-loop runs of the
// topology, and that a sum of several names no contributors.
func TestAsynchronousClusters(t *testing.T) {
	bound := 1
	top := waitingHop(t, Waiting{System: "iswitch", Mode: "async", H: 5, Bound: &bound})
	r, err := Run(context.Background(), top, Options{})
	if err != nil || r.Waited.Stalled != 0 {
		t.Fatal(err)
	}
	top.Waiting = nil
	own, err := Run(context.Background(), top, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Of("window_generated") != own.Of("window_generated") ||
		r.Of("window_generated") != r.Of("window_sent")+r.Of("window_withheld") {
		t.Errorf("%g gradients, %g sent and %g withheld; the topology's own runs have %g", r.Of("window_generated"),
			r.Of("window_sent"), r.Of("window_withheld"), own.Of("window_generated"))
	}
	if r.Of("aom_worker_ns").Known() || !r.Of("aom_cluster_ns").Known() {
		t.Errorf("ages %g of clusters, %g of workers", r.Of("aom_cluster_ns"), r.Of("aom_worker_ns"))
	}
	if lost := r.Of("window_dropped_updates"); lost != 5*r.Of("window_dropped_frames") || lost == 0 {
		t.Errorf("%g updates were lost in %g frames: twice the bottleneck's rate is offered", lost, r.Of("window_dropped_frames"))
	}
}

// observed stores the deliveries.
type observed struct {
	frames []olaf.Observation
	worker []int
}

func (o *observed) Deliver(_, worker int, seen *olaf.Observation) {
	one := *seen
	one.Contributors = slices.Clone(seen.Contributors)
	o.frames, o.worker = append(o.frames, one), append(o.worker, worker)
}

// TestClosedLoopIsObserved checks that the Collector of benches gets the same numbers from the observer, that they
// balance, and that a sum of one gradient, or of all workers, names its contributors.
func TestClosedLoopIsObserved(t *testing.T) {
	for name, w := range map[string]Waiting{
		"everybody": {System: "switchml", Loss: 0.01}, "one": {System: "iswitch", Mode: "async", H: 1},
		"some":  {System: "iswitch", Mode: "async", H: 4},
		"lossy": {System: "iswitch", Mode: "async", H: 2, Loss: 0.02}, "server": {System: "atp"},
		"inexact": {System: "iswitch", Loss: 0.02, Recovery: "fbcast"},
	} {
		top, o := waitingHop(t, w), new(observed)
		r, err := Run(context.Background(), top, Options{Observer: o})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := results.NewCollector(top.CollectorConfig())
		named := 0
		next := map[[2]int]uint32{} // by cluster and worker
		for i := range o.frames {
			f := &o.frames[i]
			c.Observe(f)
			who := [2]int{int(f.Update.Cluster), int(f.Update.Worker)}
			if f.Queued != -1 || f.Update.Lanes != (1000-64)/4 || o.worker[i]/10 != who[0]-1 || f.Update.Seq < next[who] ||
				f.Update.GenNS >= uint64(f.At.NS()) {
				t.Fatalf("%s: frame %d of worker %d: %+v", name, i, o.worker[i], f)
			}
			next[who] = f.Update.Seq + 1
			if len(f.Contributors) > 0 {
				named++
			}
			if int(f.Update.Worker) != o.worker[i]%10 || len(f.Contributors) > 0 && len(f.Contributors) != int(f.Update.Count) {
				t.Fatalf("%s: frame %d of worker %d: %+v", name, i, o.worker[i], f)
			}
		}
		run := c.Finish(r.Totals.Clone())
		if !run.Valid() {
			t.Errorf("%s: %v", name, run.Invalid)
		}
		for m, v := range r.Values.All {
			if kept := run.Metrics.Of(m.Name); run.Metrics.Has(m.Name) && kept != v && (kept.Known() || v.Known()) {
				t.Errorf("%s: %s is %v, by the collector %v", name, m.Name, v, kept)
			}
		}
		if all := name == "everybody" || name == "one" || name == "server"; name != "inexact" &&
			(all != (named == len(o.frames)) || r.Of("aom_worker_ns").Known() != all) {
			t.Errorf("%s: %d of %d frames say whose they are, workers are %v old", name, named, len(o.frames), r.Of("aom_worker_ns"))
		}
		if run.Metrics.Of("utilisation").Known() {
			t.Errorf("%s: nobody knows how long its frames are, but a utilisation of %v", name, run.Metrics.Of("utilisation"))
		}
		if w.Loss > 0 && !top.sync(t) && r.Totals.Of("flushed") == 0 {
			t.Errorf("%s: links lost nothing: %v", name, r.Totals)
		}
	}
}

func (t *Topology) sync(tb *testing.T) bool {
	tb.Helper()
	_, mode, err := t.Waiting.resolveMode(t.systems)
	if err != nil {
		tb.Fatal(err)
	}
	return mode.Sync
}

// slow is a watcher that runs step by step and inspects every snapshot.
type slow struct {
	looks  int
	most   int // slots in use
	events uint64
	until  olaf.Time
	wrong  string
}

func (s *slow) Before(last, next olaf.Time, look func(olaf.Time) *Snapshot) (olaf.Time, bool) {
	v := look(next)
	s.looks++
	if v.Fate.Sent != v.Fate.sumParts() || v.Now != next || v.Waits == "" || len(v.Ports) != 3 {
		s.wrong = fmt.Sprintf("at %v: %+v", next, v)
	}
	if v.Events < s.events || last > 0 && v.Events == 0 {
		s.wrong = fmt.Sprintf("at %v: %d events after %d", next, v.Events, s.events)
	}
	s.events = v.Events
	for _, p := range v.Ports {
		s.most = max(s.most, p.Occupancy)
		if use := p.Values.Of("utilisation"); p.Occupancy > p.Slots || use > 1.000001 {
			s.wrong = fmt.Sprintf("at %v: %s holds %d, in use %v", next, p.Port, p.Occupancy, use)
		}
	}
	return next + olaf.Time(10*olaf.Millisecond), s.until == 0 || next < s.until
}

// TestWatchingClosedLoopWorkers checks that watching changes nothing, and that a run ended by the watcher returns its
// results so far.
func TestWatchingClosedLoopWorkers(t *testing.T) {
	top := waitingHop(t, Waiting{System: "switchml"})
	alone, err := Run(context.Background(), top, Options{})
	if err != nil {
		t.Fatal(err)
	}
	share := 0.0
	s := new(slow)
	watched, err := Run(context.Background(), top, Options{Watcher: s, Progress: func(v float64) { share = v }})
	if err != nil || s.wrong != "" {
		t.Fatal(err, s.wrong)
	}
	a, _ := json.Marshal(alone)
	b, _ := json.Marshal(watched)
	if !bytes.Equal(a, b) || !alone.Totals.Equal(watched.Totals) {
		t.Errorf("watched:\n%s\nalone:\n%s", b, a)
	}
	if s.looks < 1000 || s.most < 2 || share < 0.99 {
		t.Errorf("%d looks, at most %d slots in use, %g of the time", s.looks, s.most, share)
	}
	s = &slow{until: olaf.Time(10 * olaf.Second)}
	stopped, err := Run(context.Background(), top, Options{Watcher: s})
	if err != nil || stopped.Time < 10*olaf.Second || stopped.Time > 10*olaf.Second+200*olaf.Millisecond ||
		stopped.Of("window_sent") >= alone.Of("window_sent") {
		t.Errorf("%v: ended at %v with %v sent", err, stopped.Time, stopped.Of("window_sent"))
	}
}

// TestRecordOwnFrames checks that the recorded packets at the server are in the system's own frames: those that reach a
// switch in its place, or those that a separate server receives.
func TestRecordOwnFrames(t *testing.T) {
	for _, c := range []struct {
		waiting Waiting
		format  *wire.Format
	}{{Waiting{System: "iswitch"}, wire.ISwitch}, {Waiting{System: "switchml"}, wire.SwitchML},
		{Waiting{System: "atp"}, wire.ATPReleased}} {
		top := waitingHop(t, c.waiting)
		packets, last := 0, int64(0)
		r, err := Run(context.Background(), top, Options{Record: func(p *capture.Packet) error {
			v, err := c.format.DecodeTruncated(p.Data, p.Wire)
			if err != nil {
				return err
			}
			var data program.Packet
			if v.Packet(&data); data.Kind != program.Data || p.UnixNS < last {
				return fmt.Errorf("%+v at %d", data, p.UnixNS)
			}
			packets, last = packets+1, p.UnixNS
			return nil
		}})
		if err != nil {
			t.Fatalf("%s: %v", c.waiting.System, err)
		}
		if least := int(r.Totals.Of("delivered")) * r.Waited.packets(t, top); packets < least {
			t.Errorf("%s: %d packets are recorded of %d sums", c.waiting.System, packets, r.Totals.Of("delivered"))
		}
		refused := errors.New("no room")
		if _, err := Run(context.Background(), top, Options{Record: func(*capture.Packet) error { return refused }}); !errors.Is(err,
			refused) {
			t.Errorf("%s: %v", c.waiting.System, err)
		}
	}
}

// packets returns the number of packets per gradient.
func (*Waited) packets(t *testing.T, top *Topology) int {
	t.Helper()
	j, err := NewJobs(top)
	if err != nil {
		t.Fatal(err)
	}
	return j.Job.Packets()
}

// TestClosedLoopInAFile checks that a file can contain every setting, and that mistakes are reported with their lines.
func TestClosedLoopInAFile(t *testing.T) {
	bound := 0
	for _, w := range []Waiting{
		{System: "switchml", Packet: 1024, Slots: 12, Timeout: olaf.Second},
		{System: "iswitch", Mode: "async", H: 3, Bound: &bound, Loss: 0.5},
		{System: "iswitch", Profile: "isw-x", Recovery: "help", Slots: 40, Wrap: true}, {System: "atp", Window: 5, Congestion: true},
	} {
		text, err := waitingHop(t, w).Text()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseTopology(system.All(), "", text)
		if err != nil || back.Resolve() != nil {
			t.Fatalf("%v, %v:\n%s", err, back.Resolve(), text)
		}
		if back.Waiting.Pos = (Pos{}); !reflect.DeepEqual(back.Waiting, &w) {
			t.Errorf("%+v is read back as %+v", w, back.Waiting)
		}
	}
	text, err := waitingHop(t, Waiting{System: "switchml"}).Text()
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		"switchml":                "",
		"swichml":                 `unknown system "swichml"`,
		"ring":                    "the sums of ring do not go on to a server above the switches; those of iswitch, switchml, atp do",
		"switchml\n    h: 3":      "--h does not apply to switchml in mode sync",
		"switchml\n    mode: any": `switchml has no mode "any"`,
		"switchml\n    loss: 2":   "a loss of 2; it must be 0 to 1",
	} {
		top, err := ParseTopology(system.All(), "net.yaml",
			bytes.Replace(text, []byte("system: switchml"), []byte("system: "+change), 1))
		if err == nil {
			err = top.Resolve()
		}
		if want == "" && err == nil {
			continue
		}
		if !errors.Is(err, ErrTopology) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "net.yaml:") {
			t.Errorf("%q: %v", change, err)
		}
	}
}

// TestATPLosesTheSameFourAgain checks that an ATP cluster stalls if a sum and its repetition were both lost: of ten
// packets that are resent at one instant, a port with five slots drops the same four every time.
func TestATPLosesTheSameFourAgain(t *testing.T) {
	j, err := NewJobs(waitingHop(t, Waiting{System: "atp"}))
	if err != nil {
		t.Fatal(err)
	}
	sent, heard := map[uint64]int{}, map[uint64]int{} // by job, sequence number and worker
	j.Job.Tap = func(f *closedloop.Frame) {
		if f.At < olaf.Time(10*olaf.Second) || f.Packet.Kind != program.Data {
			return
		}
		key := uint64(f.Packet.Job)<<40 | f.Packet.Seg<<16 | f.Packet.Bitmap
		switch workers := j.Network.Jobs * j.Network.Workers; {
		case f.From < workers:
			sent[key]++
		case f.To == workers+j.Network.Jobs: // the root
			heard[key]++
		}
	}
	r, err := j.runOnce(context.Background(), Options{})
	if err != nil || r.Waited.Stalled == 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	lost, through := 0, 0
	for key, n := range sent {
		switch {
		case n < 4: // of a cluster that has not stalled
		case heard[key] == 0:
			lost++
		case heard[key] == n:
			through++
		default:
			t.Errorf("%x is sent %d times and heard %d times", key, n, heard[key])
		}
	}
	if lost != 4*r.Waited.Stalled || through != 6*r.Waited.Stalled {
		t.Errorf("of %d clusters %d packets are always lost and %d never", r.Waited.Stalled, lost, through)
	}
}

// TestClustersRefuse checks that stalled clusters are counted and that invalid settings are rejected.
func TestClustersRefuse(t *testing.T) {
	r, err := Run(context.Background(), waitingHop(t, Waiting{System: "switchml", Loss: 1}), Options{})
	if err != nil || r.Waited.Stalled != 10 {
		t.Errorf("%v, %+v", err, r)
	}
	if err := waitingHop(t, Waiting{System: "ring"}).Resolve(); !errors.Is(err, system.ErrOptions) {
		t.Errorf("a ring: %v", err)
	}
	if err := waitingHop(t, Waiting{System: "iswitch", H: 11}).Resolve(); !errors.Is(err, closedloop.ErrConfig) {
		t.Errorf("H of 11: %v", err)
	}
	for name, change := range map[string]func(*Topology){
		"control":      func(t *Topology) { t.Control.Enabled = true },
		"timing":       func(t *Topology) { t.Timing = NS3 },
		"two homes":    func(t *Topology) { t.Clusters[1].At = Names{"sw1", "sw2"} },
		"unlike":       func(t *Topology) { t.Clusters[1].Workers = 3 },
		"a stop":       func(t *Topology) { t.Clusters[1].Stop = olaf.Second },
		"cycles":       func(t *Topology) { t.Switches[0].Profile = "calibrated" },
		"a discipline": func(t *Topology) { t.Queue = "olaf" },
		"its own":      func(t *Topology) { t.Switches[0].Queue = "olaf" },
		"no slot":      func(t *Topology) { t.Switches[0].HoldTx, t.Switches[0].Slots = true, 1 },
		"a change": func(t *Topology) {
			t.Schedule = []Change{{At: 1, From: "sw1", To: "sw3", Rate: olaf.Gbps}}
		},
		"background": func(t *Topology) {
			t.Background = []Background{{At: "sw1", To: "ps", Rate: olaf.Mbps, Size: 100}}
		},
	} {
		top := waitingHop(t, Waiting{System: "switchml"})
		change(top)
		if err := top.Resolve(); !errors.Is(err, ErrTopology) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
