package aomcheck

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
)

const fullFile = `model: paper
service: 2ms
slots: 4
separation: 1ms
horizon: 10
clusters:
  - name: vision
    interval: 100ms
    phase: 0ms..50ms
    jitter: 2ms
    max-peak: 150ms
  - interval: 300ms
    mean: 320ms
    sends: "1101"
control:
  delta-t: 400ms
  slope: fairness
  active: 16
  ack-delay: 1ms
  sends: seeded:7
objective:
  kind: per-cluster
  mean: all
`

func TestParseFile(t *testing.T) {
	got, err := ParseFile([]byte(fullFile))
	if err != nil {
		t.Fatal(err)
	}
	want := Problem{
		Model: Paper, Service: 2 * ms, Slots: 4, Separation: ms, Horizon: 10,
		Clusters: []Cluster{
			{Name: "vision", Interval: 100 * ms, PhaseHigh: 50 * ms, Jitter: 2 * ms, MaxPeak: 150 * ms},
			{Interval: 300 * ms, EveryPhase: true, Mean: 320 * ms, Sends: []bool{true, true, false, true}},
		},
		Control:   Control{DeltaT: 400 * ms, Slope: tc.Fairness, Active: 16, AckDelay: ms, Sends: SendsSeeded, Seed: 7},
		Objective: Objective{Kind: PerCluster, Mean: AllUpdates},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadFilesNameLineAndField(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "it is empty"},
		{"- a\n", "line 1: document: a mapping of fields is expected"},
		{"service: 2\n", `line 1: service: bad quantity: duration "2" has no unit; did you mean 2ms?`},
		{"horizon: 4\nclusters:\n  - interval: 5ms\n  - intervall: 5ms\n", "line 4: clusters[1].intervall: unknown field; there are interval, jitter"},
		{"clusters:\n  - phase: later\n", "line 2: clusters[0].phase: phase \"later\" is none of"},
		{"clusters:\n  - phase: 9ms..1ms\n", "ends before it begins"},
		{"clusters:\n  - sends: yes\n", "not a word of 0 and 1"},
		{"clusters: 7\n", "line 1: clusters: a list of clusters is expected"},
		{"control:\n  sends: free:1\n", "line 2: control.sends"},
		{"control:\n  slope: steep\n", "line 2: control.slope"},
		{"slots: many\n", `line 1: slots: "many" is not a positive whole number`},
		{"slots: 0\n", `line 1: slots: "0" is not a positive whole number`},
		{"schema: olafctl.topology/v1\n", "line 1: schema: it is not olafctl.verify-problem/v1"},
		{"slots: 1\nslots: 2\n", "slots"},
		{"objective: {kind: [a]}\n", "objective.kind: a single value is expected"},
		{"a: b: c\n", "bad verification file"},
	} {
		_, err := ParseFile([]byte(tt.text))
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.text, err, tt.want)
		}
	}
}

func TestParseClusters(t *testing.T) {
	one, err := ParseClusters([]byte("name: new\ninterval: 70ms\n"))
	if err != nil || len(one) != 1 || one[0].Interval != 70*olaf.Millisecond || !one[0].EveryPhase {
		t.Errorf("%+v, %v", one, err)
	}
	two, err := ParseClusters([]byte("schema: olafctl.verify-problem/v1\nclusters:\n  - interval: 70ms\n  - interval: 80ms\n"))
	if err != nil || len(two) != 2 {
		t.Errorf("%+v, %v", two, err)
	}
	if _, err := ParseClusters([]byte("clusters:\n  - interval: fast\n")); !errors.Is(err, ErrFile) {
		t.Error(err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add(fullFile)
	f.Add("clusters: [{interval: 1ms}]\nobjective: {kind: fairness}\nservice: 9223372036854775807ps\n")
	f.Add("service: -5ms\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseFile([]byte(text))
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Errorf("unclassified error %v", err)
			}
			return
		}
		p = p.WithDefaults()
		if err := p.Validate(); err != nil && !errors.Is(err, ErrProblem) {
			t.Errorf("unclassified error %v", err)
		}
	})
}

// FuzzReplay runs every valid problem of a file on the engine: no panic, no overflow, and every delivery within the
// engine's bounds.
func FuzzReplay(f *testing.F) {
	f.Add(fullFile, uint64(1))
	f.Add("service: 1ms\nclusters:\n  - interval: 3ms\n    jitter: 9ms\n  - interval: 1h\nobjective: {kind: loss-free}\n", uint64(2))
	f.Add("service: 3ps\nhorizon: 4\nclusters: [{interval: 2ps}, {interval: 5ps, phase: 1ps..3ps}]\nobjective: {kind: fairness, epsilon: 1ps}\ncontrol: {delta-t: 1us, active: 9, slope: fairness}\n", uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		p, err := ParseFile([]byte(text))
		if err != nil {
			return
		}
		p = p.WithDefaults()
		if p.Model = Engine; p.Validate() != nil || len(p.Clusters)*p.Horizon > 40 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		path := p.RandomPath(rng)
		if path == nil {
			return
		}
		run, err := p.Replay(path, rng)
		if err != nil {
			t.Fatal(err)
		}
		service := p.inSteps(run, p.Service)
		for u := range run.Deliveries {
			for _, d := range run.Deliveries[u] {
				if wait := d.At - d.Generated; wait < service || wait > int64(len(p.Clusters)+1)*service {
					t.Errorf("delivered %d steps after its generation, at %d a service", wait, service)
				}
			}
		}
		p.Judge(run)
		_ = p.Plot(run)
		build(&p).violate()
	})
}
