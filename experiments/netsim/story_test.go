package netsim

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results/metric"
)

// everything is a network with all features: two paths to one of two servers, a route that is not the shortest, all
// kinds of links, arrivals and background, and links that fail, slow down and recover.
const everything = `schema: olafctl.topology/v1
name: everything
duration: 900ms
warmup: 100ms
seed: 3
queue: olaf
update: 512B
transmission_control: {enabled: true, threshold: 2ms, slope: threshold, count: clusters, window: 20ms}
switches:
  - {name: a, slots: 4}
  - {name: b, slots: 3, queue: fifo, slot_held_during_tx: true}
  - {name: c, slots: 4, profile: calibrated, bypass_slots: 2}
  - {name: d, slots: 6}
servers:
  - {name: ps1, processing: 200us}
  - {name: ps2}
links:
  - {from: a, to: c, rate: 3Mbps, delay: 100us, overhead: 24B}
  - {from: a, to: b, rate: 2Mbps, delay: 50us, ack_rate: 1Mbps}
  - {from: b, to: d, rate: 2Mbps, delay: 700us}
  - {from: c, to: d, rate: 2Mbps, delay: 10us, overhead: 24B, ack_rate: 10Mbps}
  - {from: d, to: ps1, rate: 2Mbps, delay: 1ms, overhead: 24B}
  - {from: c, to: ps2, rate: 1Mbps, delay: 20us}
routes:
  - {at: a, to: ps1, via: b}
clusters:
  - {group: near, id: 1, count: 2, workers: 4, at: [a, b], server: ps1, period: 20ms, jitter: 3ms, spread: 10%, access: {rate: 10Mbps, delay: 30us, overhead: 24B}}
  - {group: far, id: 7, workers: 5, at: [a, c, a], server: ps2, arrivals: poisson, period: 15ms, access: {delay: 2ms}, start: 50ms, stop: 800ms}
  - {id: 9, count: 2, workers: 3, at: b, server: ps1, period: 10ms, phase: 2ms..3ms}
  - {group: near, id: 20, workers: 1, at: c, server: ps2, period: 30ms, phase: =5ms}
  - {id: 30, workers: 2, at: d, server: ps1, period: 400ms, start: 950ms}
background:
  - {at: c, to: ps2, rate: 300kbps, size: 700B, arrivals: poisson, start: 10ms}
  - {at: b, to: ps1, rate: 200kbps, size: 100B, stop: 700ms}
schedule:
  - {at: 300ms, from: b, to: d, link: down}
  - {at: 350ms, from: b, to: d, link: up}
  - {at: 400ms, from: c, to: ps2, rate: 500kbps}
  - {at: 500ms, from: d, to: ps1, rate: 4Mbps}
  - {at: 600ms, from: c, to: ps2, link: down}
  - {at: 610ms, from: c, to: ps2, link: up}
`

func numbers(v metric.Values) string {
	var b strings.Builder
	for m, x := range v.All {
		if x.Known() {
			fmt.Fprintf(&b, " %s=%v", m.Name, float64(x))
		}
	}
	return b.String()
}

// writeRun writes all results of a run.
func writeRun(t *testing.T, b *bytes.Buffer, name string, topology *Topology) {
	t.Helper()
	var rx bytes.Buffer
	w := trace.NewRxWriter(&rx)
	r := mustRun(t, topology, Options{Workers: true, Observer: w})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "== %s: %s %s control=%t seed=%d window=%s time=%v events=%d background=%v\n", name, r.Topology, r.Queue, r.Control,
		r.Seed, r.Window, r.Time, r.Events, r.Background)
	fmt.Fprintf(b, "run%s\nsweep%s\ntotals", numbers(r.Values), numbers(r.swept))
	for _, c := range r.Totals.Ledger().Counters {
		if n := r.Totals.Of(c.Name); n != 0 {
			fmt.Fprintf(b, " %s=%d", c.Name, n)
		}
	}
	b.WriteByte('\n')
	for _, g := range r.Groups {
		fmt.Fprintf(b, "group %s of %d, %d workers%s\n", g.Group, g.Clusters, g.Workers, numbers(g.Values))
	}
	for _, c := range r.Clusters {
		fmt.Fprintf(b, "cluster %d of %s%s\n", c.Cluster, c.Group, numbers(c.Values))
	}
	for _, p := range r.Ports {
		fmt.Fprintf(b, "port %s %s %d%s\n", p.Port, p.Queue, p.Slots, numbers(p.Values))
	}
	for i, w := range r.Workers {
		if i < 40 {
			fmt.Fprintf(b, "worker %+v\n", w)
		}
	}
	for i, line := range strings.SplitAfter(rx.String(), "\n") {
		if i%50 == 1 {
			fmt.Fprintf(b, "received %s", line)
		}
	}
}

func short(t *testing.T, preset string, of olaf.Duration) *Topology {
	topology := mustPreset(t, preset, Scale{})
	topology.Duration, topology.Warmup = of, of/10
	return topology
}

// TestStories compares all results of runs with the golden file, to the last digit.
func TestStories(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct{ name, old, new string }{
		{"as it is", "seed", "seed"},
		{"senders", "count: clusters", "count: senders"},
		{"inside", "count: clusters", "count: inside"},
		{"no control", "enabled: true", "enabled: false"},
		{"another slope", "slope: threshold", "slope: 1/threshold"},
		{"timing of ns-3", "seed: 3", "seed: 3\ntiming: ns3"},
		{"no acks", "seed: 3", "seed: 3\nacks: none"},
		{"drop-tail", "queue: olaf", "queue: fifo"},
		{"slow access", "access: {delay: 2ms}, start: 50ms, stop: 800ms", "access: {rate: 300kbps, delay: 2ms}"},
	} {
		writeRun(t, &b, c.name, mustParse(t, strings.Replace(everything, c.old, c.new, 1)))
	}
	golden(t, "everything.golden", b.String())
	b.Reset()
	writeRun(t, &b, "multihop", short(t, "multihop", 4*olaf.Second))
	writeRun(t, &b, "fat-tree", short(t, "fat-tree", 60*olaf.Millisecond))
	writeRun(t, &b, "rack", short(t, "rack", 100*olaf.Millisecond))
	writeRun(t, &b, "single", short(t, "single", 3*olaf.Millisecond))
	sends := short(t, "ns3-fifo", olaf.Second)
	if err := sends.SetSends("sends.csv", strings.NewReader("5000,1\n5000,99\n7000,1\n5000,1\n900000000,50\n")); err != nil {
		t.Fatal(err)
	}
	writeRun(t, &b, "sends", sends)
	unpaced := short(t, "single", olaf.Millisecond)
	unpaced.Clusters[0].Period, unpaced.Clusters[0].Jitter = 0, 0
	if err := unpaced.SetSends("sends.csv", strings.NewReader("5000,1\n5000,9\n7000,26\n")); err != nil {
		t.Fatal(err)
	}
	writeRun(t, &b, "sends of workers without a period", unpaced)
	golden(t, "presets.golden", b.String())
}

// TestPresetFiles checks that the presets are as in docs/reference/topology-file.md, at every size.
func TestPresetFiles(t *testing.T) {
	var b bytes.Buffer
	jitter := olaf.Microsecond
	for _, p := range Presets() {
		fmt.Fprintf(&b, "== %s: %s\n", p[0], p[1])
		for i, scale := range []Scale{{}, {Clusters: 7, WorkersPerCluster: 3, Interval: olaf.Second, Interval2: 2 * olaf.Second,
			Jitter: &jitter, X1: 7 * olaf.Mbps}, {Clusters: 1}} {
			topology := mustPreset(t, p[0], scale)
			text, err := topology.Text()
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 { // the differences in size
				text = []byte(strings.Join(linesWith(string(text), "id:", "rate:", "slots:", "period", "jitter"), "\n"))
			}
			events, err := topology.EstimateEvents()
			if err != nil {
				t.Fatal(err)
			}
			sent, delivered := topology.EstimateTraffic()
			fmt.Fprintf(&b, "-- %+v: %g events, %g sent, %g delivered at most; measured by %+v\n%s\n", size(scale), events, sent,
				delivered, topology.CollectorConfig().Jobs, text)
		}
		if err := mustPreset(t, p[0], Scale{}).WriteText(&b, 100); err != nil {
			t.Fatal(err)
		}
	}
	everything := mustParse(t, everything)
	events, err := everything.EstimateEvents()
	if err != nil {
		t.Fatal(err)
	}
	sent, delivered := everything.EstimateTraffic()
	measure := everything.CollectorConfig()
	fmt.Fprintf(&b, "== everything: %g events, %g sent, %g delivered; %+v at %v and %v\n", events, sent, delivered, measure.Jobs,
		measure.OutRate, measure.OverheadBytes)
	if err := everything.WriteText(&b, 100); err != nil {
		t.Fatal(err)
	}
	b.WriteString(everything.Dot())
	golden(t, "preset_files.golden", b.String())
}

func size(s Scale) string {
	return fmt.Sprintf("%d clusters, %d workers", s.Clusters, s.WorkersPerCluster)
}

// linesWith returns the lines of a text that contain one of the words.
func linesWith(text string, words ...string) (found []string) {
	for l := range strings.SplitSeq(text, "\n") {
		for _, w := range words {
			if strings.Contains(l, w) {
				found = append(found, l)
				break
			}
		}
	}
	return found
}

// TestLimits checks that each limit of a topology accepts its last valid value and rejects the next one, with a message
// that names line and fix.
func TestLimits(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct {
		what string
		set  func(*Topology, int64)
		at   []int64
	}{
		{"duration", func(t *Topology, v int64) { t.Duration = olaf.Duration(v) },
			[]int64{-1, 0, 1, int64(maxSimulated), int64(maxSimulated) + 1}},
		{"warmup", func(t *Topology, v int64) { t.Warmup = olaf.Duration(v) },
			[]int64{-1, 0, int64(maxSimulated), int64(maxSimulated) + 1}},
		{"update", func(t *Topology, v int64) { t.Update = olaf.Size(v) },
			[]int64{63, 64, 65, 68, int64(olaf.MaxFrame), int64(olaf.MaxFrame) + 4}},
		{"threshold", func(t *Topology, v int64) { t.Control.Threshold = olaf.Duration(v) }, []int64{-1, 0, 1}},
		{"window", func(t *Topology, v int64) { t.Control.Window = olaf.Duration(v) }, []int64{-1, 0, 1}},
		{"slots", func(t *Topology, v int64) { t.Switches[1].Slots = int(v) },
			[]int64{0, 1, int64(engine.MaxSlots), int64(engine.MaxSlots) + 1}},
		{"bypass", func(t *Topology, v int64) { t.Switches[1].Bypass = int(v) },
			[]int64{-1, 0, int64(engine.MaxBypassSlots), int64(engine.MaxBypassSlots) + 1}},
		{"processing", func(t *Topology, v int64) { t.Servers[0].Processing = olaf.Duration(v) }, []int64{-1, 0}},
		{"rate", func(t *Topology, v int64) { t.Links[0].Rate = olaf.Rate(v) }, []int64{-1, 0, 1}},
		{"ack_rate", func(t *Topology, v int64) { t.Links[0].AckRate = olaf.Rate(v) }, []int64{-1, 0}},
		{"delay", func(t *Topology, v int64) { t.Links[0].Delay = olaf.Duration(v) },
			[]int64{-1, 0, int64(olaf.Hour), int64(olaf.Hour) + 1}},
		{"overhead", func(t *Topology, v int64) { t.Links[0].Overhead = olaf.Size(v) }, []int64{-1, 0, maxOverhead, maxOverhead + 1}},
		{"count", func(t *Topology, v int64) { t.Clusters[0].Count = int(v) }, []int64{-1, 0, 6, 7, 65535, 65536}},
		{"id", func(t *Topology, v int64) { t.Clusters[0].ID = int(v) }, []int64{-1, 0, 5, 6, 8, 65534, 65535}},
		{"workers", func(t *Topology, v int64) { t.Clusters[0].Workers = int(v) }, []int64{0, 1, maxPerCluster, maxPerCluster + 1}},
		{"all workers", func(t *Topology, v int64) {
			t.Clusters = t.Clusters[:1]
			t.Clusters[0].ID, t.Clusters[0].Count, t.Clusters[0].Workers = 0, 256, int(v)
		}, []int64{maxWorkers / 256, maxWorkers/256 + 1}},
		{"period", func(t *Topology, v int64) { t.Clusters[3].Period, t.Clusters[3].Phase = olaf.Duration(v), Span{} },
			[]int64{-1, 0, 1}},
		{"period on a slow link", func(t *Topology, v int64) {
			t.Clusters[0].Period, t.Clusters[0].Spread, t.Clusters[0].Jitter = olaf.Duration(v), 0, 0
		}, []int64{428_800_000 - 1, 428_800_000}},
		{"jitter", func(t *Topology, v int64) { t.Clusters[0].Jitter = olaf.Duration(v) },
			[]int64{-1, 0, int64(20 * olaf.Millisecond), int64(20*olaf.Millisecond) + 1}},
		{"start", func(t *Topology, v int64) { t.Clusters[1].Start = olaf.Duration(v) },
			[]int64{-1, int64(800*olaf.Millisecond) - 1, int64(800 * olaf.Millisecond)}},
		{"stop", func(t *Topology, v int64) { t.Clusters[0].Stop = olaf.Duration(v) }, []int64{-1, 0, 1}},
		{"size", func(t *Topology, v int64) { t.Background[0].Size = olaf.Size(v) },
			[]int64{0, 1, int64(olaf.MaxFrame), int64(olaf.MaxFrame) + 1}},
		{"background rate", func(t *Topology, v int64) { t.Background[0].Rate = olaf.Rate(v) }, []int64{-1, 0, 1}},
		{"change at", func(t *Topology, v int64) { t.Schedule[0].At = olaf.Duration(v) }, []int64{-1, 0}},
		{"change to a rate", func(t *Topology, v int64) { t.Schedule[2].Rate = olaf.Rate(v) }, []int64{-1, 0, 1}},
		{"nodes", func(t *Topology, v int64) {
			for i := range v {
				t.Switches = append(t.Switches, Switch{Name: fmt.Sprint("x", i), Slots: 1})
			}
		}, []int64{maxNodes - 6, maxNodes - 5}},
	} {
		for _, v := range c.at {
			topology := mustParse(t, everything)
			c.set(topology, v)
			fmt.Fprintf(&b, "%s %d: %v\n", c.what, v, topology.Check())
		}
	}
	for _, c := range [][2]string{
		{"name: b,", "name: a,"}, {"name: ps2", "name: a"}, {"name: d,", "name: '',"}, {"queue: fifo", "queue: fofi"},
		{"queue: olaf", "queue: ''"}, {"profile: calibrated", "profile: fast"},
		{"from: a, to: c", "from: a, to: e"}, {"from: a, to: c", "from: f, to: c"}, {"from: a, to: c", "from: a, to: a"},
		{"from: a, to: c", "from: ps1, to: ps2"}, {"from: a, to: c", "from: a, to: b"},
		{"from: a, to: c", "from: b, to: a"}, {"at: a, to: ps1, via: b", "at: a, to: ps1, via: d"},
		{"at: a, to: ps1, via: b", "at: a, to: b, via: c"}, {"at: a, to: ps1, via: b", "at: ps1, to: ps1, via: b"},
		{"server: ps1", "server: a"}, {"server: ps1, ", ""}, {"at: [a, b]", "at: [a, ps1]"}, {"at: [a, b]", "at: []"},
		{"at: c, to: ps2, rate", "at: ps1, to: ps2, rate"}, {"at: c, to: ps2, rate", "at: c, to: d, rate"},
		{"from: b, to: d, link", "from: a, to: d, link"}, {"from: b, to: d, link", "from: d, to: b, link"},
	} {
		topology, err := ParseTopology(system.All(), "everything.yaml", []byte(strings.Replace(everything, c[0], c[1], 1)))
		if err == nil {
			err = topology.Resolve()
		}
		fmt.Fprintf(&b, "%s instead of %s: %v\n", c[1], c[0], err)
	}
	for _, empty := range []string{"switches", "servers", "clusters"} {
		topology := mustParse(t, everything)
		switch empty {
		case "switches":
			topology.Switches = nil
		case "servers":
			topology.Servers = nil
		case "clusters":
			topology.Clusters = nil
		}
		fmt.Fprintf(&b, "without %s: %v\n", empty, topology.Check())
	}
	for _, s := range []float64{0, 119, 120, 7199, 7200, 2*86400 - 1, 2 * 86400, 2*365*86400 - 86400, 2 * 365 * 86400, 365e5 * 86400} {
		fmt.Fprintf(&b, "%g seconds are %s\n", s, closedloop.FormatDuration(s))
	}
	for _, routes := range []string{"{at: b, to: ps1, via: a}", "{at: d, to: ps1, via: c}\n  - {at: c, to: ps1, via: a}"} {
		topology, err := ParseTopology(system.All(), "loop.yaml",
			[]byte(strings.Replace(everything, "routes:\n", "routes:\n  - "+routes+"\n", 1)))
		if err == nil {
			err = topology.Resolve()
		}
		fmt.Fprintf(&b, "a route %q: %v\n", routes, err)
	}
	elsewhere := strings.NewReplacer("at: [a, b]", "at: b", "routes:\n", "routes:\n  - {at: d, to: ps1, via: b}\n").Replace(everything)
	topology, err := ParseTopology(system.All(), "loop.yaml", []byte(elsewhere))
	if err == nil {
		err = topology.Resolve()
	}
	fmt.Fprintf(&b, "a circle that ends where no route is stated: %v\n", err)
	golden(t, "limits.golden", b.String())
}

// TestStatistics checks the metrics of runs, their objects, and where they are shown.
func TestStatistics(t *testing.T) {
	var b bytes.Buffer
	for _, list := range []struct {
		name string
		rows []*metric.Metric
	}{{"runs", RunStatistics()}, {"parts", PartStatistics()}, {"sweeps", SweepStatistics()}, {"ports", PortStatistics()}} {
		for _, row := range list.rows {
			fmt.Fprintf(&b, "%s: %s %q %q age=%t\n", list.name, row.Name, row.Unit, row.Column, row.Age)
		}
	}
	golden(t, "statistics.golden", b.String())
}

// TestImportedNumbers checks that a trace is measured like the run that it came from, for every stored number of its
// parts.
func TestImportedNumbers(t *testing.T) {
	topology := mustParse(t, everything)
	var rx bytes.Buffer
	w := trace.NewRxWriter(&rx)
	mustRun(t, topology, Options{Observer: w})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, err := ImportRx(topology, "rx.csv", &rx)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "run%s\n", numbers(r.Values))
	for _, c := range r.Clusters {
		fmt.Fprintf(&b, "cluster %d of %s%s\n", c.Cluster, c.Group, numbers(c.Values))
	}
	golden(t, "imported.golden", b.String())
	last := int64(maxSimulated / olaf.Nanosecond)
	for text, want := range map[string]string{
		"0,0,0,0": "", "5,21,4294967295,5": "", fmt.Sprintf("%d,0,0,0", last): "",
		fmt.Sprintf("%d,0,0,0", last+1): "a time is outside of 0 to",
		"5,22,0,5":                      "worker 22 does not exist; the topology has workers 0 to 21",
		"5,-1,0,5":                      "worker -1 does not exist",
		"5,0,4294967296,5":              "is not a line", "5,0,0,5,": "is not a line",
		"-1,0,0,-1": "a time is outside", "5,0,0,-1": "a time is outside", "-1,0,0,0": "a time is outside",
		"5,0,0,6": "the update was generated at 6 ns, after its reception", strings.Repeat("1", 61): strings.Repeat("1", 60) + "…",
		strings.Repeat("1", 60): strings.Repeat("1", 60) + `"`,
	} {
		_, err := ImportRx(topology, "rx.csv", strings.NewReader(trace.RxHeader+"\n"+text+"\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "rx.csv:2: ") {
			t.Errorf("%q: %v names another line", text, err)
		}
	}
}

// TestLongLinesOfATrace checks that lines of more than 64 KiB are rejected.
func TestLongLinesOfATrace(t *testing.T) {
	_, err := ImportRx(mustParse(t, everything), "rx.csv", strings.NewReader(trace.RxHeader+"\n"+strings.Repeat("1", 100_000)+"\n"))
	if err == nil || !strings.Contains(err.Error(), "cannot be read as lines") {
		t.Errorf("%v", err)
	}
}

// TestCountsThatSaturate checks that a frame's saturated update count voids only the identity over updates.
func TestCountsThatSaturate(t *testing.T) {
	topology := mustParse(t, `schema: olafctl.topology/v1
name: full
duration: 3s
seed: 1
queue: olaf
update: 64B
switches: [{name: sw, slots: 2}]
servers: [{name: ps}]
links: [{from: sw, to: ps, rate: 200bps}]
clusters: [{id: 0, workers: 65536, at: sw, period: 1s, phase: 0..1s}]
`)
	r := mustRun(t, topology, Options{})
	if r.Totals.Of("count_saturations") == 0 || r.Totals.Of("delivered") == 0 {
		t.Errorf("nothing saturated: %v", r.Totals)
	}
}
