package netsim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"pgregory.net/rapid"
)

// TestLinesAndPools compares a line with a slice that loses its front, and checks that a pool never allocates an index
// twice.
func TestLinesAndPools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l line[int]
		var p pool[int]
		var want []int
		taken := map[int32]bool{}
		for step := range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(want) > 0 && rapid.IntRange(0, 2).Draw(t, "drop") == 0 {
				l.drop()
				want = want[1:]
			} else {
				*l.push() = step
				want = append(want, step)
			}
			for i, v := range want {
				if *l.at(i) != v {
					t.Fatalf("step %d: %d at place %d, want %d", step, *l.at(i), i, v)
				}
			}
			if len(taken) > 0 && rapid.Bool().Draw(t, "give") {
				for i := range taken {
					p.give(i)
					delete(taken, i)
					break
				}
			} else if i := p.take(); taken[i] || int(i) >= len(p.items) {
				t.Fatalf("step %d: %d is taken already, of %d", step, i, len(p.items))
			} else {
				taken[i] = true
			}
			if l.len() != len(want) || p.len() != len(taken) {
				t.Fatalf("step %d: %d in line, want %d; %d taken, want %d", step, l.len(), len(want), p.len(), len(taken))
			}
		}
		if len(p.items) > 100 {
			t.Fatalf("%d items", len(p.items))
		}
	})
	var p pool[int]
	first := p.take()
	p.give(first)
	if again := p.take(); again != first || len(p.items) != 1 {
		t.Errorf("%d after %d was given back, %d items", again, first, len(p.items))
	}
}

// TestGeneratedUnwraps checks that a 48-bit stamp unwraps to the last instant with these bits that is not after the
// reception.
func TestGeneratedUnwraps(t *testing.T) {
	const wrap = int64(olaf.GenModulus)
	for _, c := range []struct{ at, stamp, want int64 }{
		{5, 5, 5}, {5, 0, 0}, {wrap, 0, wrap}, {wrap, 1, 1}, {wrap + 5, wrap - 1, wrap - 1}, {wrap + 5, 6, 6}, {wrap + 5, 5, wrap + 5},
		{3*wrap + 7, 7, 3*wrap + 7}, {3*wrap + 7, 8, 2*wrap + 8},
	} {
		at := olaf.Time(c.at) * olaf.Time(olaf.Nanosecond)
		if got := olaf.UnwrapStamp(at, uint64(c.stamp)); got.NS() != c.want || got%olaf.Time(olaf.Nanosecond) != 0 {
			t.Errorf("%d received at %d ns was generated at %d ns, want %d", c.stamp, c.at, got.NS(), c.want)
		}
	}
}

// TestScriptOfSends checks that a file of sends is split by worker, each in the order of the file, with line numbers
// for simultaneous sends.
func TestScriptOfSends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const workers = 4
		var sends []send
		at := olaf.Time(0)
		for range rapid.IntRange(0, 30).Draw(t, "sends") {
			at += olaf.Time(rapid.IntRange(0, 2).Draw(t, "gap"))
			sends = append(sends, send{at, rapid.IntRange(0, workers-1).Draw(t, "worker")})
		}
		s := newScript(sends, workers)
		for w := range workers {
			seq := uint32(0)
			for i, x := range sends {
				if x.Worker != w {
					continue
				}
				if at, place := s.sendOf(w, seq); at != int64(x.At) || place != uint64(i+1) {
					t.Fatalf("send %d of worker %d is at %d in place %d, want %d and %d", seq, w, at, place, x.At, i+1)
				}
				seq++
			}
			if at, place := s.sendOf(w, seq); at != never || place != 0 {
				t.Fatalf("worker %d sends once more at %d, in place %d", w, at, place)
			}
		}
	})
}

// TestSpansAndShares checks the text forms of spans and shares.
func TestSpansAndShares(t *testing.T) {
	const us = olaf.Microsecond
	for text, want := range map[string]Span{"54us": {0, 54 * us}, "0..54us": {0, 54 * us}, " 0 ..54us": {0, 54 * us},
		"2us..3us": {2 * us, 3 * us}, "3us..3us": {3 * us, 3 * us}, "=5us": {5 * us, 5 * us}, "=0": {}, "0us": {}} {
		var s Span
		if text == "=0" {
			if err := s.UnmarshalText([]byte(text)); err == nil {
				t.Errorf("%s: %v", text, s)
			}
			continue
		}
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want || s.IsZero() != (want == Span{}) {
			t.Errorf("%s: %v, %v; want %v", text, s, err, want)
			continue
		}
		back, err := s.MarshalText()
		var again Span
		if err != nil || again.UnmarshalText(back) != nil || again != s {
			t.Errorf("%s is written as %s, which is %v; %v", text, back, again, err)
		}
	}
	for _, text := range []string{"", "5", "3us..2us", "-1us..2us", "=-1us", "x..2us", "2us..x", "..", "=3"} {
		s := Span{1, 2}
		if err := s.UnmarshalText([]byte(text)); err == nil || s != (Span{1, 2}) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	for text, want := range map[string]float64{"0%": 0, "10%": 0.1, "99.5%": 0.995, "100%": -1, "-1%": -1, "10": -1, "%": -1,
		"NaN%": -1, "x%": -1} {
		p := Percent(0.5)
		err := p.UnmarshalText([]byte(text))
		if want < 0 {
			if err == nil || p != 0.5 {
				t.Errorf("%s: %v, %v", text, p, err)
			}
			continue
		}
		back, _ := p.MarshalText()
		if err != nil || math.Abs(float64(p)-want) > 1e-12 || string(back) != text {
			t.Errorf("%s: %v, written %s, %v", text, p, back, err)
		}
	}
	for want, k := range map[string]Clusters{
		"clusters 3\n1 worker each, every 2ms": {ID: 3, Workers: 1, Period: 2 * olaf.Millisecond},
		"clusters 3–4\n2 workers each, Poisson, mean 2ms": {ID: 3, Count: 2, Workers: 2, Period: 2 * olaf.Millisecond,
			Arrivals: Poisson},
		"clusters 0–9\n2 workers each, every 2ms": {Count: 10, Workers: 2, Period: 2 * olaf.Millisecond,
			Arrivals: Periodic},
		"clusters 65535\n65536 workers each, Poisson, mean 1ps": {ID: 65535, Count: 1, Workers: 65536, Period: 1, Arrivals: Poisson},
	} {
		if got := k.formatLabel(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRescaleKeepsTheLoad checks that rescaling distributes clusters evenly over entries, numbers them consecutively,
// and keeps the load of links and queues.
func TestRescaleKeepsTheLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.IntRange(1, 4).Draw(t, "entries")
		topology := &Topology{Switches: []Switch{{Slots: 6}, {Slots: 1}, {}}, Links: []Link{{Rate: 840 * olaf.Mbps}}}
		count := rapid.IntRange(1, 3).Draw(t, "count")
		for i := range entries {
			topology.Clusters = append(topology.Clusters,
				Clusters{ID: 100 * i, Count: count, Workers: 2, Period: olaf.Second, Jitter: 5, At: Names{"a"}})
		}
		s := Scale{Clusters: rapid.IntRange(0, 20).Draw(t, "clusters"), WorkersPerCluster: rapid.IntRange(0, 5).Draw(t, "workers")}
		was, wasWorkers := count*entries, 2*count*entries
		if err := topology.Rescale(s); err != nil {
			t.Fatal(err)
		}
		clusters, each := was, 2
		if s.Clusters > 0 {
			clusters = s.Clusters
		}
		if s.WorkersPerCluster > 0 {
			each = s.WorkersPerCluster
		}
		total, id := 0, 0
		for i, k := range topology.Clusters {
			total += k.Count
			if n := len(topology.Clusters); k.Count < clusters/n || k.Count > (clusters+n-1)/n || k.Workers != each ||
				k.Period != olaf.Second || k.Jitter != 5 {
				t.Fatalf("entry %d of %d clusters: %+v", i, clusters, k)
			}
			if want := 100 * i; s.Clusters == 0 && k.ID != want || s.Clusters > 0 && k.ID != id {
				t.Fatalf("entry %d begins with %d", i, k.ID)
			}
			id += k.Count
		}
		if total != clusters {
			t.Fatalf("%d clusters, want %d", total, clusters)
		}
		if want := olaf.Rate(840 * float64(olaf.Mbps) * float64(clusters*each) / float64(wasWorkers)); topology.Links[0].Rate != want {
			t.Fatalf("%v, want %v", topology.Links[0].Rate, want)
		}
		for i, slots := range []int{max(1, 6*clusters/was), max(1, clusters/was), 0} {
			if topology.Switches[i].Slots != slots {
				t.Fatalf("switch %d has %d slots, want %d", i, topology.Switches[i].Slots, slots)
			}
		}
	})
	for _, s := range []Scale{{Clusters: -1}, {WorkersPerCluster: -1}} {
		if _, err := Preset(system.All(), "single", s); !errors.Is(err, ErrTopology) ||
			!strings.Contains(err.Error(), "both must be positive") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	five, jitter := make([]Clusters, 5), olaf.Duration(3)
	topology := &Topology{Clusters: five, Timing: NS3, Links: []Link{{Rate: 5}}}
	if err := topology.Rescale(Scale{Clusters: 9, Interval: 10, Interval2: 20, Jitter: &jitter}); err != nil ||
		topology.Links[0].Rate != 5 {
		t.Errorf("ns-3's rates stay: %+v, %v", topology.Links, err)
	}
	for i, want := range []olaf.Duration{10, 10, 10, 20, 20} {
		if k := topology.Clusters[i]; k.Period != want || k.Jitter != 3 {
			t.Errorf("entry %d: %+v, want a period of %v", i, k, want)
		}
	}
	for _, topology := range []*Topology{{}, {Clusters: make([]Clusters, 1)},
		{Clusters: []Clusters{{At: Names{"b"}}}, Links: []Link{{From: "a", To: "b"}}}} {
		if err := topology.Rescale(Scale{X1: 1}); !errors.Is(err, ErrTopology) {
			t.Errorf("%+v: %v", topology, err)
		}
	}
}

// TestHostsOfATopology checks the delays, periods, rates and slots that closed-loop hosts get from a topology.
func TestHostsOfATopology(t *testing.T) {
	const ms = olaf.Millisecond
	top := waitingHop(t, Waiting{System: "switchml"})
	top.Switches[1].HoldTx = true
	top.Links[1].Delay, top.Clusters[1].Period = 70*ms, 250*ms
	top.Servers[0].Processing = 3
	j, err := NewJobs(top)
	if err != nil {
		t.Fatal(err)
	}
	if trip := 2 * (50*ms + 70*ms + 50*ms); j.roundTrip() != trip || j.patience != 4*(trip+250*ms) || j.Options.Timeout != j.patience {
		t.Errorf("a round trip of %v, patience of %v, timeout %v", j.roundTrip(), j.patience, j.Options.Timeout)
	}
	n := j.Network
	if n.Workers != 10 || n.Jobs != 10 || n.Link.Rate != unlimited || n.Link.Delay != 50*ms || len(n.Hops.Homes) != 10 ||
		j.Options.Jobs != 10 {
		t.Errorf("%+v", n)
	}
	slots, parents := []int{}, []int{}
	for _, h := range n.Hops.Switches {
		slots, parents = append(slots, h.Slots), append(parents, h.Parent)
	}
	if fmt.Sprint(slots, parents, n.Hops.Homes) != "[0 8 5 4] [0 0 1 1] [2 2 2 2 2 3 3 3 3 3]" {
		t.Errorf("slots %v, parents %v, homes %v", slots, parents, n.Hops.Homes)
	}
	if j.Job.Limit != 25*olaf.Second || j.Job.ServerApply != 3 || j.Job.Updates != 2*250+100 || j.Job.Layout.Values != (1000-64)/4 {
		t.Errorf("%+v", j.Job)
	}
	top.Waiting, top.Clusters[0].Access.Rate, top.Clusters[1].Access.Rate = &Waiting{System: "iswitch", Mode: "async", Timeout: 7},
		5*olaf.Mbps, 5*olaf.Mbps
	if j, err = NewJobs(top); err == nil {
		t.Errorf("a timeout of a system that has none: %+v", j.Options)
	}
	top.Waiting.Timeout = 0
	if j, err = NewJobs(top); err != nil || j.Job.Updates != 10*600 || j.Network.Link.Rate != 5*olaf.Mbps || j.Options.Timeout != 0 {
		t.Errorf("%+v, %v", j, err)
	}
	top.Waiting = &Waiting{System: "switchml", Timeout: 7}
	if j, err = NewJobs(top); err != nil || j.patience != 7 || j.Options.Timeout != 7 {
		t.Errorf("%+v, %v", j, err)
	}
}

// TestClosedLoopRefusals checks that every feature for open-loop workers only is rejected with its line.
func TestClosedLoopRefusals(t *testing.T) {
	for want, c := range map[string]struct {
		line   int
		change func(*Topology)
	}{
		"clusters have several servers": {21, func(t *Topology) {
			t.Servers = append(t.Servers, Server{Name: "x"})
			t.Clusters[0].Server, t.Clusters[1].Server = "ps", "ps"
		}},
		"updates are sent at instants of a file": {1, func(t *Topology) { t.Sends = "x.csv" }},
		"instants are those of ns-3":             {1, func(t *Topology) { t.Timing = NS3 }},
		"transmission control withholds updates": {2, func(t *Topology) { t.Control.Enabled = true }},
		"there is traffic beside the training's": {40,
			func(t *Topology) { t.Background = []Background{{At: "sw1", To: "ps", Rate: 1, Size: 1}} }},
		"links change": {50,
			func(t *Topology) { t.Schedule = []Change{{From: "sw1", To: "sw3", Rate: 1}} }},
		"workers of a cluster are on 2 switches": {31,
			func(t *Topology) { t.Clusters[1].At = Names{"sw1", "sw2"} }},
		"a cluster stops": {31, func(t *Topology) { t.Clusters[1].Stop = 1 }},
		"clusters differ in their workers or the links of these": {31, func(t *Topology) { t.Clusters[1].Workers = 9 }},
		"clusters differ in their workers or the links of these: rate": {31,
			func(t *Topology) { t.Clusters[1].Access.Rate = olaf.Gbps }},
		"clusters differ in their workers or the links of these: delay": {31, func(t *Topology) { t.Clusters[1].Access.Delay++ }},
		"clusters differ in their workers or the links of these: bytes": {31, func(t *Topology) { t.Clusters[1].Access.Overhead++ }},
		"ports store only the frame on the wire": {12,
			func(t *Topology) { t.Switches[2].HoldTx, t.Switches[2].Slots = true, 1 }},
		"a switch has a queue of its own": {12, func(t *Topology) { t.Switches[2].Queue = "olaf" }},
		"engines take cycles": {12,
			func(t *Topology) { t.Switches[2].Profile = "calibrated" }},
	} {
		top := waitingHop(t, Waiting{System: "switchml"})
		c.change(top)
		numberLines(top)
		want, _, _ = strings.Cut(want, ": ")
		want = fmt.Sprintf("%s:%d: %s, which closed-loop workers do not support", top.File, c.line, want)
		if _, err := top.buildWay(); !errors.Is(err, ErrTopology) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, change := range map[string]func(*Topology){
		"as it is": func(*Topology) {}, "two slots": func(t *Topology) {
			t.Switches[2].HoldTx, t.Switches[2].Slots = true,
				2
		}, "one slot": func(t *Topology) { t.Switches[2].Slots = 1 },
		"ideal":          func(t *Topology) { t.Switches[2].Profile = "ideal" },
		"the same queue": func(t *Topology) { t.Switches[2].Queue = "fifo" }, "a start": func(t *Topology) { t.Clusters[1].Start = 1 },
	} {
		top := waitingHop(t, Waiting{System: "switchml"})
		change(top)
		if w, err := top.buildWay(); err != nil || len(w.switches) != 3 || len(w.homes) != 10 {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
}

// numberLines gives every part of a topology a separate line: switches from 10, servers from 20, clusters from 30,
// other traffic from 40, changes from 50.
func numberLines(t *Topology) {
	t.File, t.Line, t.Control.Line = "t.yaml", 1, 2
	for i := range t.Switches {
		t.Switches[i].Line = 10 + i
	}
	for i := range t.Servers {
		t.Servers[i].Line = 20 + i
	}
	for i := range t.Clusters {
		t.Clusters[i].Line = 30 + i
	}
	for i := range t.Background {
		t.Background[i].Line = 40 + i
	}
	for i := range t.Schedule {
		t.Schedule[i].Line = 50 + i
	}
}

// TestExpectationErrorsHaveLines checks that an error about an expectation gets the line in the file that contains it;
// other errors, and files without expectations, are unchanged.
func TestExpectationErrorsHaveLines(t *testing.T) {
	const text = "schema: " + topologySchema + "\nname: x\n"
	wrong, other := olaf.InField("expect", errors.New("too far")), errors.New("another")
	for _, c := range []struct {
		text, file string
		err        error
		want       string
	}{
		{text + "expect: x.yaml\n", "t.yaml", wrong, "t.yaml:3: "}, {text + "expect: x.yaml\n", "t.yaml", other, ""},
		{text, "t.yaml", wrong, ""}, {text + "expect: x.yaml\n", "", wrong, ""},
	} {
		top, err := ParseTopology(system.All(), c.file, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := top.LocateExpectation(c.err); got.Error() != c.want+c.err.Error() || errors.Is(got, ErrTopology) != (c.want != "") {
			t.Errorf("%q of %q: %v, want %q before it", c.text, c.file, got, c.want)
		}
	}
}

// TestPausesOfARun checks that a run pauses after a million events, or after some thousands with a watcher, and at its
// end.
func TestPausesOfARun(t *testing.T) {
	topology := mustPreset(t, "single", Scale{})
	seen := 0
	r := mustRun(t, topology, Options{Watcher: patient(func() { seen++ })})
	if least := int(r.Events / often); seen < least || seen > least+2 || least < 5 {
		t.Errorf("asked %d times in %d events", seen, r.Events)
	}
	told := 0
	mustRun(t, topology, Options{Progress: func(float64) { told++ }})
	if most := int(r.Events / seldom); told > most {
		t.Errorf("told %d times in %d events", told, r.Events)
	}
}

// patient is a watcher that need not be called again.
type patient func()

func (p patient) Before(_, _ olaf.Time, _ func(olaf.Time) *Snapshot) (olaf.Time, bool) {
	p()
	return math.MaxInt64, true
}

// TestStalledAfterTenTimeouts checks that a cluster counts as stalled only after ten timeouts.
func TestStalledAfterTenTimeouts(t *testing.T) {
	e := &loopMeter{Jobs: &Jobs{patience: 7}, deliveries: []closedloop.Delivery{{At: 0}, {At: 5}, {At: 30}}}
	for end, want := range map[olaf.Time]int{0: 0, 70: 0, 71: 1, 75: 1, 76: 2, 100: 2, 101: 3} {
		if got := e.countStalled(end); got != want {
			t.Errorf("at %d: %d stand still, want %d", end, got, want)
		}
	}
}

// TestTitles checks that a network is named after its closed-loop system, or after its queue and transmission control.
func TestTitles(t *testing.T) {
	for want, top := range map[string]*Topology{
		"fifo: fifo": {Queue: "fifo"}, "olaf tc: olaf": {Queue: "olaf", Control: Control{Enabled: true}},
		"iswitch async: iswitch":  {Queue: "fifo", Waiting: &Waiting{System: "iswitch", Mode: "async"}},
		"switchml sync: switchml": {Queue: "fifo", Control: Control{Enabled: true}, Waiting: &Waiting{System: "switchml"}},
		"unheard: unheard":        {Queue: "fifo", Waiting: &Waiting{System: "unheard"}},
	} {
		top.systems = system.All()
		if got := top.Title() + ": " + top.System(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	top := waitingHop(t, Waiting{System: "switchml"})
	if from, err := top.CaptureInterface(); err != nil || from == nil ||
		*from != closedloop.CaptureInterface("ps", mustJobs(t, top).parts.Frame, false) {
		t.Errorf("%+v, %v", from, err)
	}
	top.Waiting.System = "unheard"
	if from, err := top.CaptureInterface(); err == nil {
		t.Errorf("%+v", from)
	}
	top.Waiting = nil
	if from, err := top.CaptureInterface(); err != nil || from != nil {
		t.Errorf("%+v, %v", from, err)
	}
}

func mustJobs(t *testing.T, top *Topology) *Jobs {
	t.Helper()
	j, err := NewJobs(top)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestCheckPatienceOfRuns checks that no run counts as one, that the cost grows with the number of runs, and that just
// under ten minutes is accepted.
func TestCheckPatienceOfRuns(t *testing.T) {
	topology := mustPreset(t, "single", Scale{})
	topology.Duration = 30 * 24 * olaf.Hour
	events, err := topology.EstimateEvents()
	if err != nil {
		t.Fatal(err)
	}
	for runs, times := range map[int]float64{-1: 1, 0: 1, 1: 1, 2: 2, 7: 7} {
		want := fmt.Sprintf("about %.2g events, %s on one core", times*events, closedloop.FormatDuration(times*events/eventsPerSecond))
		if err := topology.CheckPatience(runs); !errors.Is(err, closedloop.ErrLong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d runs: %v, want %q", runs, err, want)
		}
	}
	topology = mustPreset(t, "single", Scale{})
	if events, err = topology.EstimateEvents(); err != nil {
		t.Fatal(err)
	}
	most := int(eventsPerSecond * 600 / events)
	if err := topology.CheckPatience(most); err != nil {
		t.Errorf("%d runs: %v", most, err)
	}
	if err := topology.CheckPatience(most + 1); !errors.Is(err, closedloop.ErrLong) {
		t.Errorf("%d runs: %v", most+1, err)
	}
}

// TestServersDoNotForward checks that servers do not forward and that each is reached by its own link.
func TestServersDoNotForward(t *testing.T) {
	for _, c := range []struct{ to, via, want string }{
		{"ps2", "ps1", "the route to ps2 leads through the server ps1, which does not forward"},
		{"ps1", "ps2", "the route to ps1 leads through the server ps2, which does not forward"}, {"ps1", "ps1", ""}, {"ps2", "ps2", ""},
	} {
		top := &Topology{
			Duration: olaf.Second, Queue: "fifo", Update: 64, Switches: []Switch{{Name: "a", Slots: 1}},
			Servers:  []Server{{Name: "ps1"}, {Name: "ps2"}},
			Links:    []Link{{From: "a", To: "ps1", Rate: 1}, {From: "a", To: "ps2", Rate: 1}},
			Routes:   []Route{{At: "a", To: c.to, Via: c.via}},
			Clusters: []Clusters{{Workers: 1, At: Names{"a"}, Server: c.to, Period: olaf.Second}},
		}
		if err := top.Resolve(); c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("to %s via %s: %v", c.to, c.via, err)
		}
	}
}

// TestBusyUntilTheLastBit checks that a link is busy from the start of a frame to its last bit, even if merges delay it
// on the way.
func TestBusyUntilTheLastBit(t *testing.T) {
	for _, profile := range []string{"ideal", "measured", "measured-shared"} {
		topology := oneSwitch("olaf", 4, olaf.Microsecond, Clusters{Count: 2, Workers: 3, Period: 300 * olaf.Nanosecond})
		topology.Update, topology.Links[0].Rate, topology.Duration, topology.Switches[0].Profile = 1024, 100*olaf.Gbps,
			100*olaf.Microsecond, profile
		// A frame, one behind it into which two more merge, and another one after a pause.
		if err := topology.SetSends("sends.csv", strings.NewReader("0,0\n1,3\n5,4\n20,5\n2000,0\n")); err != nil {
			t.Fatal(err)
		}
		var left []olaf.Observation
		r := mustRun(t, topology, Options{Observer: observer(func(o *olaf.Observation) { left = append(left, *o) })})
		if len(left) != 3 || left[1].Update.Count != 3 {
			t.Fatalf("%s: %+v", profile, left)
		}
		want := float64(left[1].At) + float64(left[2].Queued)
		near(t, profile, float64(r.Ports[0].Values.Of("utilisation"))*float64(topology.Duration), want, 1e-9)
		if held := left[0].Queued > 82*olaf.Nanosecond; held != (profile == "measured-shared") {
			t.Errorf("%s: the first frame took %v", profile, left[0].Queued)
		}
	}
}

// TestCablesFailBothWays checks that a cable between two switches fails and recovers in both directions, whichever end
// the schedule names first.
func TestCablesFailBothWays(t *testing.T) {
	const ms = olaf.Millisecond
	for _, ends := range [][2]string{{"a", "b"}, {"b", "a"}} {
		topology := &Topology{
			Duration: 3 * olaf.Second, Queue: "fifo", Update: 1000, Acks: AcksNone,
			Switches: []Switch{{Name: "a", Slots: 9}, {Name: "b", Slots: 9}}, Servers: []Server{{Name: "psa"}, {Name: "psb"}},
			Links: []Link{{From: "a", To: "b", Rate: olaf.Gbps}, {From: "a", To: "psa", Rate: olaf.Gbps},
				{From: "b", To: "psb", Rate: olaf.Gbps}},
			Clusters: []Clusters{
				{ID: 0, Workers: 1, At: Names{"a"}, Server: "psb", Period: 10 * ms},
				{ID: 1, Workers: 1, At: Names{"b"}, Server: "psa", Period: 10 * ms},
			},
			Schedule: []Change{{At: olaf.Second, From: ends[0], To: ends[1], Link: LinkDown},
				{At: 2 * olaf.Second, From: ends[0], To: ends[1], Link: LinkUp}},
		}
		var during, after [2]int
		mustRun(t, topology, Options{Observer: observer(func(o *olaf.Observation) {
			switch at := olaf.Duration(o.At); {
			case at > olaf.Second && at < 2*olaf.Second:
				during[o.Update.Cluster]++
			case at > 2*olaf.Second:
				after[o.Update.Cluster]++
			}
		})})
		if during != [2]int{} || after[0] < 100 || after[1] < 100 {
			t.Errorf("%v: %d delivered while it was down, %d afterwards", ends, during, after)
		}
	}
}

// TestLineOfOneRoute checks that a loop made by one route is reported with that route's line, wherever the path starts.
func TestLineOfOneRoute(t *testing.T) {
	for name, homes := range map[string]string{"from before the route": "a", "from the route": "b"} {
		topology, err := ParseTopology(system.All(), "circle.yaml", []byte(strings.Join([]string{
			"schema: " + topologySchema, "name: circle", "duration: 1s", "seed: 1", "queue: fifo", "update: 64B",
			"switches: [{name: a, slots: 1}, {name: b, slots: 1}]", "servers: [{name: ps}]",
			"links: [{from: a, to: b, rate: 1Gbps}, {from: b, to: ps, rate: 1Gbps}]", "routes:", "  - {at: b, to: ps, via: a}",
			"clusters: [{id: 0, workers: 1, at: " + homes + ", period: 1s}]", "",
		}, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if err := topology.Resolve(); err == nil ||
			!strings.HasPrefix(err.Error(), "circle.yaml:11: the routes to ps go in a circle: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingIsSentAtTheStop checks that workers and background traffic send nothing at their stop, but do just before.
func TestNothingIsSentAtTheStop(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("fifo", 100, ms/10, Clusters{Workers: 1, Period: 10 * ms})
	topology.Background = []Background{{At: "sw", To: "ps", Rate: olaf.Mbps, Size: 1000}}
	s := newReadySim(t, topology)
	worker, extra := &s.workers[0], &s.extras[0].w
	for n, late := range map[int]olaf.Duration{3: 0, 4: 1} {
		topology.Clusters[0].Stop = olaf.Duration(worker.offset+3*worker.period) + late
		topology.Background[0].Stop = olaf.Duration(extra.offset+3*extra.period) + late
		r := mustRun(t, topology, Options{})
		if r.Of("window_sent") != results.Float(n) || r.Background != [2]uint64{uint64(n), uint64(n)} {
			t.Errorf("%v after the fourth: %v updates and %v background packets, want %d", late, r.Of("window_sent"), r.Background, n)
		}
	}
}

// TestLostGradientsLeaveFlight checks that gradients lost on a link are no longer in flight, unless workers resend them
// or they were already at the server.
func TestLostGradientsLeaveFlight(t *testing.T) {
	for _, c := range []struct {
		sync bool
		kind program.Kind
		want int
	}{{false, program.Data, 2}, {false, program.Result, 0}, {true, program.Data, 0}, {true, program.Result, 0}} {
		e := &loopMeter{Jobs: &Jobs{Mode: &system.Mode{Sync: c.sync}}, deliveries: []closedloop.Delivery{{}, {Out: make([]olaf.Contributor, 3)}}}
		p := program.Packet{Job: closedloop.FirstJob + 1, Kind: c.kind, Trace: program.Trace{Vectors: 2}}
		e.OnLoss(0, &p)
		if e.lost != (losses{uint64(c.want / 2), uint64(c.want)}) || len(e.deliveries[1].Out) != 3-c.want || e.dropped != (losses{}) {
			t.Errorf("%+v: %+v lost, %d left", c, e.lost, len(e.deliveries[1].Out))
		}
	}
}

// TestWindowBeginsAtWarmUpEnd checks that events at the end of the warm-up count in the window, and those a picosecond
// earlier only in the totals.
func TestWindowBeginsAtWarmUpEnd(t *testing.T) {
	topology := oneSwitch("fifo", 4, olaf.Millisecond, Clusters{Workers: 2, Period: olaf.Second})
	topology.Warmup = olaf.Second
	n, err := buildNetwork(topology)
	if err != nil {
		t.Fatal(err)
	}
	const from = int64(olaf.Second)
	for at, within := range map[int64]uint64{from - 1: 0, from: 1, from + 1: 1} {
		m, w := newMeter(topology, n), worker{}
		u := olaf.Update{Count: 3}
		m.countSend(&w, at)
		m.countWithhold(0, at)
		m.countMerge(0, engine.Aggregated, at)
		m.countMerge(0, engine.Replaced, at)
		m.countDrop(0, &u, at)
		m.recordFrame(0, olaf.Time(at), olaf.Time(at-5), 7)
		m.deliverWorker(1, olaf.Time(at), olaf.Time(at-5))
		total := tally{countGenerated: 2, countSent: 1, countWithheld: 1, countAggregated: 1, countReplaced: 1, countDropped: 1,
			countDroppedUpdates: 3, countDelivered: 1, countUpdates: 7}
		want := tally{countWithheld: within, countAggregated: within, countReplaced: within, countDropped: within,
			countDroppedUpdates: 3 * within, countDelivered: within, countUpdates: 7 * within}
		if m.total != total || m.clusters[0].tally != want || uint64(w.sent) != within || uint64(m.workers[1].received) != within ||
			m.workers[0].received != 0 {
			t.Errorf("at %d: %v, %v in the window, %d sent, %d received", at, m.total, m.clusters[0].tally, w.sent,
				m.workers[1].received)
		}
	}
}

// TestTwoUpdatesOfAWorkerInOneFrame checks that two updates of a worker in one delivery count as one reception for its
// age, that of the newer update.
func TestTwoUpdatesOfAWorkerInOneFrame(t *testing.T) {
	topology := oneSwitch("fifo", 4, olaf.Millisecond, Clusters{Workers: 1, Period: olaf.Second})
	n, err := buildNetwork(topology)
	if err != nil {
		t.Fatal(err)
	}
	m := newMeter(topology, n)
	for _, gens := range [][]olaf.Time{{10, 30}, {120, 110}} {
		at := gens[1] + 20
		m.recordFrame(0, at, max(gens[0], gens[1]), 2)
		for _, g := range gens {
			m.deliverWorker(0, at, g)
		}
	}
	if age := ageAt(m.workers[0].age, 130); m.workers[0].age.Deliveries() != 2 || age != results.Float(olaf.Duration(10).NS()) {
		t.Errorf("%d deliveries, %v ns old", m.workers[0].age.Deliveries(), age)
	}
	if age := ageAt(newMeter(topology, n).workers[0].age, 130); age.Known() {
		t.Errorf("%v ns old before anything came", age)
	}
}

// TestWorkersStayInEntryRange checks that a worker's period and phase are within its entry's range and come close to
// both ends, and that equal seeds give equal workers.
func TestWorkersStayInEntryRange(t *testing.T) {
	const us = olaf.Microsecond
	for name, k := range map[string]Clusters{
		"anywhere": {Period: 100 * us}, "a span": {Period: 100 * us, Phase: Span{20 * us, 30 * us}, Start: 7 * us},
		"an instant":   {Period: 100 * us, Phase: Span{40 * us, 40 * us}},
		"spread":       {Period: 100 * us, Spread: 0.1, Phase: Span{0, 50 * us}},
		"a nanosecond": {Period: 100 * us, Phase: Span{0, olaf.Nanosecond}},
	} {
		span := k.Phase
		if span.IsZero() {
			span.To = k.Period
		}
		offsets, periods := Span{From: math.MaxInt64}, Span{From: math.MaxInt64}
		for i := range 2000 {
			w := k.newWorker(5, i)
			if w != k.newWorker(5, i) || w.gen != int64(k.Start) {
				t.Fatalf("%s: worker %d is %+v", name, i, w)
			}
			offset := olaf.Duration(w.offset) - k.Start
			offsets.From, offsets.To = min(offsets.From, offset), max(offsets.To, offset)
			periods.From, periods.To = min(periods.From, olaf.Duration(w.period)), max(periods.To, olaf.Duration(w.period))
		}
		wide := span.To - span.From
		if offsets.From < span.From || offsets.From > span.From+wide/50 || offsets.To > max(span.From, span.To-olaf.Nanosecond) ||
			offsets.To < span.To-wide/50-olaf.Nanosecond {
			t.Errorf("%s: phases from %v to %v", name, offsets.From, offsets.To)
		}
		share := olaf.Duration(float64(k.Period) * float64(k.Spread))
		if periods.From < k.Period-share || periods.From > k.Period-share*9/10 || periods.To > k.Period+share ||
			periods.To < k.Period+share*9/10 {
			t.Errorf("%s: periods from %v to %v", name, periods.From, periods.To)
		}
	}
	if a, b := (&Clusters{Period: us}).newWorker(1, 0), (&Clusters{Period: us}).newWorker(2, 0); a.base == b.base {
		t.Error("seeds make no difference")
	}
}

// TestGenerations checks that periodic updates are a period apart plus less than the jitter, in whole nanoseconds, and
// that random gaps have the period as mean and ln 2 of it as median.
func TestGenerations(t *testing.T) {
	k := Clusters{Period: 100 * olaf.Microsecond, Jitter: 10 * olaf.Microsecond}
	w := k.newWorker(3, 1)
	src := source{jitter: uint64(k.Jitter) / 1000}
	late := Span{From: math.MaxInt64}
	for w.seq = range uint32(2000) {
		d := olaf.Duration(src.generationTime(&w) - w.offset - int64(w.seq)*w.period)
		late.From, late.To = min(late.From, d), max(late.To, d)
		if d%olaf.Nanosecond != 0 {
			t.Fatalf("update %d is %v late", w.seq, d)
		}
	}
	if late.From < 0 || late.From > k.Jitter/50 || late.To >= k.Jitter || late.To < k.Jitter*49/50 {
		t.Errorf("late by %v to %v", late.From, late.To)
	}
	src = source{poisson: true}
	w.gen = 5000
	first, short := w.gen, 0
	const n = 20_000
	for w.seq = range uint32(n) {
		gen := src.generationTime(&w)
		gap := gen - w.gen
		if gap < 0 || gap%1000 != 0 {
			t.Fatalf("a gap of %d ps", gap)
		}
		if float64(gap) < math.Ln2*float64(w.period) {
			short++
		}
		w.gen = gen
	}
	near(t, "mean gap", float64(w.gen-first)/n, float64(w.period), 0.03)
	near(t, "median gap", float64(short)/n, 0.5, 0.03)
}

// TestSendsAtTheirLimits checks lines of a file of sends at both ends of their ranges.
func TestSendsAtTheirLimits(t *testing.T) {
	last := int64(maxSimulated / olaf.Nanosecond)
	for text, want := range map[string]string{
		"0,0": "", fmt.Sprintf(" %d , 3 ", last): "", fmt.Sprintf("%d,0", last+1): "is outside of 0 to",
		"-1,0": "time -1 ns is outside of 0 to", "0,4": "worker 4 does not exist; the topology has workers 0 to 3",
		"0,-1": "worker -1 does not exist",
		"0":    "is not a line of", "0,x": "is not a line of", "x,0": "is not a line of", "0,0,0": "is not a line of",
	} {
		sends, err := readSends("s.csv", strings.NewReader("TIME_NS, Worker\n\n"+text+"\n"), 4)
		if want == "" && (err != nil || len(sends) != 1) || want != "" &&
			(!errors.Is(err, ErrTopology) || !strings.HasPrefix(err.Error(), "s.csv:3: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v", text, sends, err)
		}
	}
	for text, want := range map[string]string{"": "s.csv:1: there are no sends", sendsHeader: "s.csv:1: there are no sends",
		"0,0\n" + sendsHeader: "s.csv:2: ", strings.Repeat("1", 1<<17): "s.csv: cannot be read as lines of"} {
		if _, err := readSends("s.csv", strings.NewReader(text), 4); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	sends, err := readSends("s.csv", strings.NewReader("7,1\n5,3\n7,0\n5,2\n"), 4)
	if err != nil || fmt.Sprint(sends) != "[{5ns 3} {5ns 2} {7ns 1} {7ns 0}]" {
		t.Errorf("%v, %v", sends, err)
	}
	a, b, c := &Topology{sends: sends}, &Topology{sends: sends[:3]}, &Topology{}
	if a.SendsDigest() == b.SendsDigest() || len(a.SendsDigest()) != 64 || c.SendsDigest() != "" {
		t.Errorf("%s, %s, %q", a.SendsDigest(), b.SendsDigest(), c.SendsDigest())
	}
}

// TestWithParameter checks that a parameter of all workers is set in a copy, and that a phase of 0 is one instant.
func TestWithParameter(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	for name, want := range map[string]Clusters{"phase": {Phase: Span{0, 5}}, "jitter": {Jitter: 5}, "period": {Period: 5},
		"speed": {}} {
		v := olaf.Duration(5)
		if name == "phase" {
			v = 5 * olaf.Nanosecond
			want.Phase.To = v
		}
		got := topology.With(name, v)
		for i, k := range got.Clusters {
			was, want := topology.Clusters[i], want
			if want.Phase.IsZero() {
				want.Phase = was.Phase
			}
			if want.Jitter == 0 {
				want.Jitter = was.Jitter
			}
			if want.Period == 0 {
				want.Period = was.Period
			}
			if k.Phase != want.Phase || k.Jitter != want.Jitter || k.Period != want.Period || k.Workers != was.Workers {
				t.Errorf("%s: %+v", name, k)
			}
		}
	}
	if k := topology.With("phase", 0).Clusters[0]; k.Phase != (Span{0, olaf.Nanosecond}) {
		t.Errorf("%+v", k.Phase)
	}
	topology.Duration = -1
	if _, err := RunSeeds(t.Context(), topology, []uint64{9}, Options{}, nil); !errors.Is(err, ErrTopology) ||
		!strings.HasPrefix(err.Error(), "seed 9: ") {
		t.Error(err)
	}
}

// TestSourcesOfEntries checks the common state of an entry's workers: the slowest link takes its time, no link takes
// none, and nothing continues after the end.
func TestSourcesOfEntries(t *testing.T) {
	s := &sim{t: &Topology{Update: 100}, end: 1000}
	for _, c := range []struct {
		k    Clusters
		want source
	}{
		{Clusters{}, source{end: 1000}},
		{Clusters{Access: Access{Rate: olaf.BitPerSecond, Overhead: 3, Delay: 5}},
			source{end: 1000, transmit: 103 * 8 * int64(olaf.Second), delay: 5}},
		{Clusters{Start: 7, Stop: 999, Jitter: 5999, Arrivals: Poisson}, source{poisson: true, jitter: 5, start: 7, end: 999}},
		{Clusters{Stop: 1001, Jitter: 1000, Arrivals: Periodic}, source{jitter: 1, end: 1000}},
	} {
		got := s.newSource(&c.k)
		if got.poisson != c.want.poisson || got.jitter != c.want.jitter || got.start != c.want.start || got.end != c.want.end ||
			got.transmit != c.want.transmit || got.delay != c.want.delay {
			t.Errorf("%+v: %+v", c.k, got)
		}
	}
}

// TestUnbalancedAccountIsAnError checks that an account that does not balance is an error, for updates as well as for
// frames.
func TestUnbalancedAccountIsAnError(t *testing.T) {
	for name, tamper := range map[string]func(*sim){
		"as it is": func(*sim) {}, "an update that nobody sent": func(s *sim) { s.meter.total[countUpdates]++ },
		"one that was never generated": func(s *sim) { s.meter.total[countWithheld]++ },
		"a frame that no link lost":    func(s *sim) { s.ports[0].updateFramesLost++ },
	} {
		topology := oneSwitch("olaf", 4, 10*olaf.Millisecond, Clusters{Count: 3, Workers: 2, Period: 20 * olaf.Millisecond})
		topology.Duration = olaf.Second
		s := runToEnd(t, topology)
		tamper(s)
		if r, err := s.makeResult(); name == "as it is" && (err != nil || r == nil) || name != "as it is" &&
			(!errors.Is(err, ErrAccounting) || r != nil) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestSlowestChange checks that a link can become as slow as one bit per second, so that nothing more arrives in time.
func TestSlowestChange(t *testing.T) {
	const ms = olaf.Millisecond
	topology := oneSwitch("fifo", 100, ms, Clusters{Workers: 1, Period: 10 * ms})
	topology.Duration = olaf.Second
	topology.Schedule = []Change{{At: 500 * ms, From: "sw", To: "ps", Rate: olaf.BitPerSecond}}
	if r := mustRun(t, topology, Options{}); r.Of("window_delivered_frames") != 50 {
		t.Errorf("%v frames", r.Of("window_delivered_frames"))
	}
}

// TestPictureAtTheEnd checks that a snapshot at the end of a run equals its result.
func TestPictureAtTheEnd(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	topology.Control.Enabled, topology.Duration = true, 10*olaf.Second
	s := runToEnd(t, topology)
	v, totals := s.takeSnapshot(olaf.Time(s.end)), s.sumTotals(metric.Values{})
	if v.Withheld == 0 || int64(v.Withheld) != totals.Of("tc_withheld") || int64(v.Fate.Sent) != totals.Of("sent") ||
		int64(v.Fate.Delivered) != totals.Of("count_delivered") {
		t.Errorf("%d withheld, %+v; the account says %v", v.Withheld, v.Fate, totals)
	}
	if v.Topology != "multihop" || v.Queue != "olaf" || !v.Control || v.Seed != 1 || v.Now != v.End ||
		v.Warmup != olaf.Time(5*olaf.Second) || v.End != olaf.Time(15*olaf.Second) || v.Workers != 100 || v.Events != s.events ||
		v.Waits != "" {
		t.Errorf("%+v", v)
	}
	if len(v.Clusters) != 10 || len(v.Groups) != 2 || v.Clusters[9].Cluster != 10 || v.Clusters[9].Workers != 10 ||
		v.Clusters[9].Group != "S2" {
		t.Errorf("%+v", v.Clusters)
	}
}

// TestRunsRefuse checks that Run returns the errors of its topology, open or closed loop.
func TestRunsRefuse(t *testing.T) {
	waits, alone, unsent := waitingHop(t, Waiting{System: "switchml"}), mustPreset(t, "single", Scale{}),
		mustPreset(t, "single", Scale{})
	waits.Duration, alone.Duration, unsent.Sends = 0, 0, "sends.csv"
	for want, top := range map[string]*Topology{"duration is 0ps": alone, "duration is 0ps; give the time": waits,
		"the sends of sends.csv were not loaded": unsent} {
		if r, err := Run(t.Context(), top, Options{}); r != nil || !errors.Is(err, ErrTopology) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", want, r, err)
		}
	}
	waits = waitingHop(t, Waiting{System: "iswitch", H: 11})
	if r, err := Run(t.Context(), waits, Options{}); r != nil || !errors.Is(err, closedloop.ErrConfig) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLinksStaySmall checks that a link's rings are only as long as its frames in flight require, no matter how many
// have passed.
func TestLinksStaySmall(t *testing.T) {
	for name, inside := range map[string]func(int) int{"of many": func(i int) int { return i % 10 },
		"of one": func(int) int { return 1 }} {
		var l link
		for i := range 10_000 {
			l.pushFrame(make([]olaf.Contributor, inside(i)))
			if i >= 4 {
				l.dropFirst()
			}
		}
		if l.len() != 4 || len(l.items) > 8 || len(l.inside) > 128 {
			t.Errorf("frames %s: %d in room for %d, with room for %d contributors", name, l.len(), len(l.items), len(l.inside))
		}
	}
}

// TestPortsOfAPicture checks that a snapshot contains exactly the ports that a packet can pass, from the start.
func TestPortsOfAPicture(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	topology.Switches = append(topology.Switches, Switch{Name: "aside", Slots: 1})
	topology.Links = append(topology.Links, Link{From: "aside", To: "sw3", Rate: olaf.Gbps})
	s := newReadySim(t, topology)
	for _, over := range []bool{false, true} {
		if over {
			if err := s.runEvents(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var names []string
		for _, p := range s.takeSnapshot(olaf.Time(s.now)).Ports {
			names = append(names, p.Port)
		}
		if !slices.Equal(names, []string{"sw1→sw3", "sw2→sw3", "sw3→ps"}) {
			t.Errorf("over %t: %v", over, names)
		}
	}
}

// TestLastClusterID checks that the largest cluster id works like others.
func TestLastClusterID(t *testing.T) {
	topology := oneSwitch("olaf", 4, 10*olaf.Millisecond, Clusters{ID: maxClusterID, Workers: 2, Period: 20 * olaf.Millisecond})
	topology.Duration = olaf.Second
	if r := mustRun(t, topology, Options{}); r.Clusters[0].Cluster != maxClusterID || r.Of("window_delivered_frames") < 40 {
		t.Errorf("cluster %d, %v frames", r.Clusters[0].Cluster, r.Of("window_delivered_frames"))
	}
}

// TestDirectionsLoseDifferentFrames checks that no two directions of a network's links, including workers' links, lose
// the same frames.
func TestDirectionsLoseDifferentFrames(t *testing.T) {
	topology := oneSwitch("fifo", 4, olaf.Millisecond, Clusters{Workers: 5, Period: olaf.Second, Access: Access{Loss: 0.5}})
	topology.Switches = append(topology.Switches, Switch{Name: "above", Slots: 4})
	topology.Links[0].To = "above"
	topology.Links = append(topology.Links, Link{From: "above", To: "ps", Rate: olaf.Gbps})
	for i := range topology.Links {
		topology.Links[i].Loss = 0.5
	}
	n, err := buildNetwork(topology)
	if err != nil {
		t.Fatal(err)
	}
	s := newSim(topology, n, Options{})
	var all []*closedloop.Direction
	for i := range s.ports {
		all = append(all, &s.ports[i].up, &s.ports[i].down.Direction)
	}
	for i := range s.cables {
		all = append(all, &s.cables[i].up, &s.cables[i].down)
	}
	seen := map[uint64]int{}
	for i, d := range all {
		pattern := uint64(0)
		for range 64 {
			if pattern <<= 1; d.Carry(1, 1) {
				pattern |= 1
			}
		}
		if other, twice := seen[pattern]; twice {
			t.Errorf("directions %d and %d of %d lose the same frames", other, i, len(all))
		}
		seen[pattern] = i
	}
	if len(all) < 14 {
		t.Errorf("%d directions", len(all))
	}
}
