package netsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/yamlfile"
)

const exampleFile = `schema: olafctl.topology/v1
name: example
duration: 10s
warmup: 500ms
seed: 7
queue: olaf
update: 1000B
transmission_control:
  enabled: true
  threshold: 50ms
  slope: 1/threshold
  count: senders
switches:
  - {name: leaf1, slots: 5}
  - {name: leaf2, slots: 5, queue: fifo, profile: calibrated}
  - {name: core, slots: 8, slot_held_during_tx: true}
servers:
  - {name: ps, processing: 1ms}
links:
  - {from: leaf1, to: core, rate: 4Mbps, delay: 5ms}
  - {from: leaf2, to: core, rate: 4Mbps, delay: 5ms}
  - {from: core, to: ps, rate: 848kbps, delay: 5ms, ack_rate: 1Gbps}
clusters:
  - {group: a, id: 1, count: 3, workers: 10, at: leaf1, period: 100ms, phase: 54ms, jitter: 2ms, spread: 5%}
  - group: b
    id: 10
    workers: 4
    at: [leaf1, leaf2]
    arrivals: poisson
    period: 300ms
    access: {rate: 100Mbps, delay: 1ms}
    start: 1s
    stop: 9s
background:
  - {at: leaf2, to: ps, rate: 100kbps, size: 500B, arrivals: poisson}
schedule:
  - {at: 3s, from: core, to: ps, rate: 400kbps}
  - {at: 5s, from: leaf1, to: core, link: down}
  - {at: 6s, from: leaf1, to: core, link: up}
`

func mustParse(t *testing.T, text string) *Topology {
	t.Helper()
	topology, err := ParseTopology(system.All(), "example.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func TestParse(t *testing.T) {
	topology := mustParse(t, exampleFile)
	if k := topology.Clusters[0]; k.Phase.To != 54*olaf.Millisecond || k.Spread != 0.05 || k.At[0] != "leaf1" || k.Line != 24 {
		t.Errorf("%+v", k)
	}
	if k := topology.Clusters[1]; len(k.At) != 2 || k.Access.Rate != 100*olaf.Mbps || k.LineOf("period") != 30 {
		t.Errorf("%+v", k)
	}
	r := mustRun(t, topology, Options{})
	if r.Groups[0].Group != "a" || r.Groups[1].Workers != 4 || r.Of("window_delivered_frames") == 0 || r.Of("window_withheld") == 0 ||
		r.Background[1] == 0 {
		t.Errorf("%+v", r)
	}
}

// TestTextRoundTrip checks that every preset and the example survive a round trip through text.
func TestTextRoundTrip(t *testing.T) {
	topologies := []*Topology{mustParse(t, exampleFile)}
	for _, p := range Presets() {
		topologies = append(topologies, mustPreset(t, p[0], Scale{}))
	}
	for _, want := range topologies {
		text, err := want.Text()
		if err != nil {
			t.Fatal(err)
		}
		got := mustParse(t, string(text))
		ignore := []cmp.Option{cmpopts.IgnoreTypes(Pos{}), cmpopts.IgnoreFields(Topology{}, "File", "Schema"),
			cmpopts.IgnoreUnexported(Topology{}), cmpopts.EquateEmpty()}
		if d := cmp.Diff(want, got, ignore...); d != "" {
			t.Errorf("%s: %s", want.Name, d)
		}
	}
}

// changeExample replaces a piece of the example.
func changeExample(t *testing.T, old, new string) string {
	t.Helper()
	if !strings.Contains(exampleFile, old) {
		t.Fatalf("the example has no %q", old)
	}
	return strings.Replace(exampleFile, old, new, 1)
}

// TestMistakes checks that every mistake is reported with file, line and fix.
func TestMistakes(t *testing.T) {
	route := exampleFile + "routes:\n  - {at: leaf1, to: ps, via: core}\n  - {at: core, to: ps, via: leaf1}\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "example.yaml:1: the file is empty"},
		"not YAML": {"a: [", "example.yaml:2: not YAML"},
		"a list":   {"- 1", "example.yaml:1: topology must be a mapping"},
		"unknown field": {changeExample(t, "warmup:", "warmpu:"),
			`example.yaml:4: topology has no field "warmpu"; did you mean "warmup"?`},
		"field twice": {exampleFile + "seed: 8\n", `has the field "seed" twice`},
		"bare number": {changeExample(t, "duration: 10s", "duration: 10"),
			`example.yaml:3: topology.duration: bad quantity: duration "10" has no unit; did you mean 10ms?`},
		"alias": {changeExample(t, "name: example", "name: &x example\nqueue: *x"), "aliases are not supported"},
		"other schema": {changeExample(t, "topology/v1", "topology/v2"),
			`example.yaml:1: schema "olafctl.topology/v2" is not olafctl.topology/v1`},
		"bad number": {changeExample(t, "slots: 5", "slots: many"),
			`example.yaml:14: topology.switches[0].slots: "many" is not a whole number`},
		"bad choice": {changeExample(t, "count: senders", "count: workers"),
			`example.yaml:12: topology.transmission_control.count: count "workers" is not one of`},
		"route circle": {route, "example.yaml:42: the routes to ps go in a circle: core → leaf1 → core; change one via"},
		"route nowhere": {exampleFile + "routes:\n  - {at: leaf1, to: ps, via: leaf2}\n",
			"example.yaml:41: there is no link leaf1–leaf2"},
		"no server": {changeExample(t, "servers:\n  - {name: ps, processing: 1ms}\n", ""),
			"there is no parameter server; add servers:"},
		"no path": {changeExample(t, "  - {from: leaf2, to: core, rate: 4Mbps, delay: 5ms}\n", ""),
			"example.yaml:27: there is no path from leaf2 to ps; add a link"},
		"zero rate": {changeExample(t, "rate: 848kbps", "rate: 0bps"), "example.yaml:22: rate is 0bps; it must be positive"},
		"queue of 0": {changeExample(t, "leaf1, slots: 5", "leaf1, slots: 0"),
			`example.yaml:14: switch "leaf1" has 0 slots; a queue holds 1 to 65536`},
		"unknown node": {changeExample(t, "from: leaf2, to: core", "from: leef2, to: core"),
			`example.yaml:21: from names the unknown node "leef2"; did you mean "leaf2"?`},
		"unknown switch": {changeExample(t, "at: leaf1, period", "at: leaf9, period"),
			`at names the unknown node "leaf9"; did you mean "leaf1"?`},
		"worker at a server": {changeExample(t, "at: leaf1, period", "at: ps, period"),
			`at names "ps", which is a server; it must be a switch`},
		"period too short": {changeExample(t, "period: 300ms", "period: 10us"),
			"example.yaml:30: period 10us is below one transmission on the access link, 80us"},
		"spread too short": {changeExample(t, "period: 100ms, phase: 54ms, jitter: 2ms, spread: 5%",
			"period: 84us, spread: 5%, access: {rate: 100Mbps, delay: 1ms}"),
			"example.yaml:24: period 79.8us is below one transmission on the access link, 80us"},
		"cycles in ns-3": {strings.Replace(changeExample(t, "duration: 10s", "timing: ns3\nduration: 10s"), "calibrated", "measured",
			1),
			`example.yaml:16: switch "leaf2": profile measured counts cycles of the logic, which ns-3's timing has not; use ideal`},
		"no period":       {changeExample(t, "    period: 300ms\n", ""), "example.yaml:25: period is 0ps; it must be positive"},
		"jitter too long": {changeExample(t, "jitter: 2ms", "jitter: 200ms"), "jitter is 200ms; it must be 0s to the period, 100ms"},
		"overlapping ids": {changeExample(t, "id: 10", "id: 3"),
			"example.yaml:26: cluster id 3 is already used by the clusters of line 24"},
		"id too large": {changeExample(t, "id: 10", "id: 70000"), "cluster ids 70000 to 70000 do not fit 0 to 65535"},
		"no workers":   {changeExample(t, "workers: 4", "workers: 0"), "workers is 0; a cluster has 1 to 65536"},
		"no duration":  {changeExample(t, "duration: 10s", "duration: 0s"), "example.yaml:3: duration is 0ps; give the time"},
		"endless":      {changeExample(t, "duration: 10s", "duration: 2000h"), "exceeds virtual time"},
		"odd update": {changeExample(t, "update: 1000B", "update: 1001B"),
			"example.yaml:7: update is 1001B; a frame has 64 bytes of headers and whole lanes"},
		"unknown queue": {changeExample(t, "queue: olaf", "queue: olav"),
			`example.yaml:6: queue "olav" is not known; did you mean "olaf"?`},
		"name twice": {changeExample(t, "name: leaf2, slots", "name: leaf1, slots"),
			`example.yaml:15: the name "leaf1" is used twice`},
		"link twice": {changeExample(t, "from: leaf2, to: core", "from: core, to: leaf1"),
			"example.yaml:21: the link core–leaf1 is there twice"},
		"no threshold": {changeExample(t, "threshold: 50ms", "threshold: 0ms"),
			"example.yaml:10: transmission_control.threshold is 0ps"},
		"stops first": {changeExample(t, "stop: 9s", "stop: 1s"), "example.yaml:33: start 1s and stop 1s"},
		"change of no link": {changeExample(t, "at: 3s, from: core", "at: 3s, from: leaf1"),
			"example.yaml:37: there is no link leaf1–ps to change"},
		"filter of a queue without": {changeExample(t, "queue: olaf", "queue: fifo\nreward_filter: true"),
			"example.yaml:7: system fifo has no reward filter, unlike olaf; leave the filter out"},
		"threshold without filter": {changeExample(t, "queue: olaf", "queue: olaf\nreward_threshold: 1"),
			"example.yaml:7: a reward threshold does nothing without the reward filter"},
		"threshold below 0": {changeExample(t, "queue: olaf", "queue: olaf\nreward_filter: true\nreward_threshold: -1"),
			"example.yaml:8: reward threshold -1; use 0 to below 8388608"},
		"threshold is no number": {changeExample(t, "queue: olaf", "queue: olaf\nreward_filter: true\nreward_threshold: .nan"),
			`example.yaml:8: topology.reward_threshold: ".nan" is not a number`},
		"unknown law": {changeExample(t, "count: senders", "law: psychic"),
			`example.yaml:12: topology.transmission_control.law: control law "psychic" is not one of`},
		"full share": {changeExample(t, "spread: 5%", "spread: 100%"), `share "100%" is not a percentage`},
	} {
		t.Run(name, func(t *testing.T) {
			topology, err := ParseTopology(system.All(), "example.yaml", []byte(c.text))
			if err == nil {
				err = topology.Resolve()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v\nwant %s", err, c.want)
			}
			if !errors.Is(err, ErrTopology) {
				t.Error("the error is not of ErrTopology")
			}
		})
	}
}

// TestAllMistakesAreReportedTogether checks that all mistakes in a file are reported together.
func TestAllMistakesAreReportedTogether(t *testing.T) {
	topology := mustParse(t, strings.ReplaceAll(exampleFile, "slots: 5", "slots: 0"))
	if err := topology.Resolve(); err == nil || strings.Count(err.Error(), "slots") < 2 {
		t.Errorf("%v", err)
	}
}

func TestCheckPatience(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{})
	if err := topology.CheckPatience(100); err != nil {
		t.Errorf("a hundred short runs: %v", err)
	}
	topology.Duration = 39 * 24 * olaf.Hour
	err := topology.CheckPatience(1)
	if !errors.Is(err, closedloop.ErrLong) || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("%v", err)
	}
	topology = mustPreset(t, "multihop", Scale{Clusters: 1000, WorkersPerCluster: 100})
	topology.Duration = olaf.Hour
	if err := topology.CheckPatience(1); !errors.Is(err, closedloop.ErrLong) || !strings.Contains(err.Error(), "hours") {
		t.Errorf("%v", err)
	}
}

// TestEstimate compares the estimate with the actual number of events.
func TestEstimate(t *testing.T) {
	for _, p := range Presets() {
		topology := mustPreset(t, p[0], Scale{})
		estimate, err := topology.EstimateEvents()
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(mustRun(t, topology, Options{}).Events); estimate < got/2 || estimate > 8*got {
			t.Errorf("%s: estimated %.3g events, there are %.3g", p[0], estimate, got)
		}
	}
}

func TestPresetScale(t *testing.T) {
	topology := mustPreset(t, "multihop", Scale{Clusters: 1000, WorkersPerCluster: 100})
	if clusters, workers := topology.countWorkers(); clusters != 1000 || workers != 100_000 {
		t.Errorf("%d clusters, %d workers", clusters, workers)
	}
	if err := topology.Resolve(); err != nil {
		t.Error(err)
	}
	for _, p := range Presets() {
		for _, clusters := range []int{1, 3, 17} {
			if err := mustPreset(t, p[0], Scale{Clusters: clusters, WorkersPerCluster: 2}).Resolve(); err != nil {
				t.Errorf("%s with %d clusters: %v", p[0], clusters, err)
			}
		}
	}
	if _, err := Preset(system.All(), "multihup", Scale{}); err == nil || !strings.Contains(err.Error(), `did you mean "multihop"?`) {
		t.Errorf("%v", err)
	}
}

// TestSchema checks that the schema describes exactly the fields that ParseTopology accepts.
func TestSchema(t *testing.T) {
	text, err := TopologyJSONSchema(system.All())
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range yamlfile.FieldNames(reflect.TypeFor[Topology]()) {
		if schema.Properties[name] == nil {
			t.Errorf("the schema has no %s", name)
		}
	}
	share := texts[reflect.TypeFor[Percent]()]
	if example, ok := strings.CutPrefix(share["description"].(string), "a share: "); !ok ||
		!regexp.MustCompile(share["pattern"].(string)).MatchString(example) {
		t.Errorf("a share is described as %v", share)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("topology.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("topology.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Presets() {
		fields, err := mustPreset(t, p[0], Scale{}).Document()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(value); err != nil {
			t.Errorf("%s: %v", p[0], err)
		}
		value.(map[string]any)["swiches"] = 3
		if compiled.Validate(value) == nil {
			t.Errorf("%s with a field that is not there is accepted", p[0])
		}
	}
	if !strings.Contains(string(text), `"slot_held_during_tx"`) || !strings.Contains(string(text), `"additionalProperties": false`) {
		t.Errorf("%s", text)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := "testdata/" + file
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-update refreshes it):\n%s", file, d)
	}
}

func TestTopologyText(t *testing.T) {
	topology := mustParse(t, exampleFile)
	var text strings.Builder
	if err := topology.WriteText(&text, 80); err != nil {
		t.Fatal(err)
	}
	golden(t, "example.txt", text.String())
	golden(t, "example.dot", topology.Dot())
}

func FuzzParse(f *testing.F) {
	f.Add(exampleFile)
	f.Add("switches: [{name: a, slots: 1}]")
	f.Add("clusters: [{at: [a, b], phase: 1ms..2ms, spread: 5%}]")
	f.Fuzz(func(t *testing.T, text string) {
		topology, err := ParseTopology(system.All(), "f", []byte(text))
		if err != nil {
			if !errors.Is(err, ErrTopology) {
				t.Fatalf("%v", err)
			}
			return
		}
		if err := topology.Resolve(); err != nil && !errors.Is(err, ErrTopology) {
			t.Fatalf("%v", err)
		}
		if _, err := topology.Text(); err != nil {
			t.Fatal(err)
		}
	})
}
