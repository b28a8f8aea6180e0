package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
)

// specSchema compiles the schema as an editor would.
func specSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := FileSchema(system.All())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spec.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("spec.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON converts a YAML file for a JSON validator.
func asJSON(t interface{ Fatal(...any) }, text []byte) any {
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// sameSpec compares two specifications.
func sameSpec(a, b Spec) string {
	return cmp.Diff(a, b, cmpopts.IgnoreUnexported(trace.Traffic{}), cmpopts.IgnoreFields(Spec{}, "Systems"))
}

func TestFileRoundTrip(t *testing.T) {
	schema := specSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		text, err := File{Spec: s}.Text()
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseFile(system.All(), "spec.yaml", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := sameSpec(s, f.Spec); diff != "" {
			t.Fatalf("%s in\n%s", diff, text)
		}
		if err := schema.Validate(asJSON(t, text)); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	})
}

// drawSpec returns a specification with valid types, but not necessarily valid values.
func drawSpec(t *rapid.T) Spec {
	s := usualSpec()
	s.Queue = rapid.SampledFrom([]string{"olaf", "fifo"}).Draw(t, "queue")
	s.Versus = rapid.SampledFrom([]string{"", "olaf", "fifo"}).Draw(t, "versus")
	if s.Versus == s.Queue {
		s.Versus = "" // as in files: Text writes none for a baseline that equals the queue
	}
	s.OutRates = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) olaf.Rate {
		return olaf.Rate(rapid.Int64Range(1, 1e12).Draw(t, "rate"))
	}), 1, 4).Draw(t, "rates")
	s.Slots = rapid.IntRange(1, 1000).Draw(t, "slots")
	s.Seed = rapid.Uint64().Draw(t, "seed")
	s.RewardThreshold = rapid.Float64Range(0, 1e6).Draw(t, "threshold")
	s.Workload.ClusterSigma = rapid.Float64Range(0, 10).Draw(t, "sigma")
	s.Workload.GapDist = rapid.SampledFrom([]string{pktgen.Fixed, pktgen.Exponential}).Draw(t, "gaps")
	if rapid.Bool().Draw(t, "override") {
		cycles := rapid.IntRange(0, 255).Draw(t, "cycles")
		s.DequeueCycles = &cycles
	}
	if rapid.Bool().Draw(t, "play") {
		play, err := trace.NewTraffic("builtin:lander8", &s.Workload)
		if err != nil {
			t.Fatal(err)
		}
		play.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
		s.Trace = play
	}
	return s
}

func TestFileKeepsDefaults(t *testing.T) {
	f, err := ParseFile(system.All(), "spec.yaml",
		[]byte("system: fifo\nversus: none\nworkload: {workers: 90}\ntrace: {name: builtin:lander8, spread: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := usualSpec()
	want.Queue, want.Versus, want.Workload.Workers = "fifo", "", 90
	if want.Trace, err = trace.NewTraffic("builtin:lander8", &want.Workload); err != nil {
		t.Fatal(err)
	}
	want.Trace.Spread = 2
	if diff := sameSpec(want, f.Spec); diff != "" {
		t.Error(diff)
	}
}

// TestFileTakesAPlan checks that the specification in a document, in its JSON form, can be parsed.
func TestFileTakesAPlan(t *testing.T) {
	alone := usualSpec()
	alone.Versus = ""
	for _, want := range []Spec{usualSpec(), alone} {
		text, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseFile(system.All(), "spec.json", text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := sameSpec(want, f.Spec); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "s.yaml:1: the file is empty; 'olafctl bench -o yaml' prints one to start from"},
		"unknown field": {"runs: 3\nslot: 4\n", `s.yaml:2: bench has no field "slot"; did you mean "slots"?`},
		"below":         {"workload:\n  sise: 256B\n", `s.yaml:2: bench.workload has no field "sise"; did you mean "size"?`},
		"no unit": {"out_rates:\n  - 40G\n  - 20\n",
			"s.yaml:3: bench.out_rates[1]: bad quantity: rate \"20\" has no unit; did you mean 20G?"},
		"schema":        {"schema: olafctl.bench-spec/v9\n", "s.yaml:1: schema"},
		"experiment":    {"experiment: olaf/fig6\n", "s.yaml:1: a file describes a bench"},
		"two names":     {"queue: olaf\nsystem: fifo\n", "s.yaml:2: system is"},
		"no such trace": {"runs: 1\ntrace:\n  name: builtin:pong\n", "s.yaml:3: "},
		"another trace": {"trace:\n  name: builtin:lander8\n  sha256: 00\n", "s.yaml:3: builtin:lander8 is now another trace"},
		"slots":         {"runs: 3\nslots: 0\n", "s.yaml:2: bad specification: 0 slots"},
		"workload": {"runs: 3\nworkload:\n  workers: 5\n  clusters: 9\n",
			"s.yaml:4: bad workload: 5 workers cannot fill 9 clusters"},
		"blamed around": {"runs: 3\nworkload:\n  workers: 5\n", "s.yaml:2: bad workload: 5 workers cannot fill 9 clusters"},
		"profile":       {"profile: free\n", "s.yaml:1: bad specification"},
		"cycles": {"slots: 4\nmerge_cycles: 999\n",
			"s.yaml:2: bad specification: engine: bad configuration: merge cycles is 999"},
		"rate twice": {"slots: 4\nout_rates: [5G, 5G]\n", "s.yaml:2: bad specification: output rate 5Gbps is given twice"},
		"threshold":  {"reward_threshold: -1\n", "s.yaml:1: bad specification: reward threshold"},
		"jitter":     {"trace:\n  name: builtin:lander8\n  jitter: 7\n", "s.yaml:1: cannot scale"},
	} {
		f, err := ParseFile(system.All(), "s.yaml", []byte(c.text))
		if err == nil {
			_, err = NewPlan(f.Spec)
			err = f.Locate(err)
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if kind, _ := olaf.KindOf(err); kind != olaf.Usage || !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v is of kind %v", name, err, kind)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	text, err := File{Spec: usualSpec()}.Text()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("trace: {name: builtin:lander8}\n"))
	f.Add([]byte("trace: [a]\nout_rates: {a: b}\nworkload: 3\ndequeue_cycles: &a 3\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := ParseFile(system.All(), "s.yaml", text)
		if err != nil {
			return
		}
		if _, err := NewPlan(file.Spec); err != nil {
			return
		}
		again, err := file.Text()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseFile(system.All(), "s.yaml", again); err != nil {
			t.Fatalf("%v in\n%s", err, again)
		}
	})
}
