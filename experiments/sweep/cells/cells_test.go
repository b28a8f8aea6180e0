package cells

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/aomcheck"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

type carry = func(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error)

// smallCells returns a small cell of every kind whose runs have seeds, with the metrics that the kind declares.
func smallCells(t *testing.T) map[string]struct {
	spec    any
	run     carry
	metrics []*metric.Metric
} {
	t.Helper()
	carrier, lots := Carrier{Systems: system.All()}, new(Lots)
	t.Cleanup(func() {
		if err := lots.Close(); err != nil {
			t.Error(err)
		}
	})
	ofBench := func(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
		return carrier.Bench(ctx, lots, spec, from, n)
	}
	base := bench.DefaultSpec(carrier.Systems)
	one, err := base.SingleConfig("olaf", 20*olaf.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	one.Workload.UpdatesPerWorker = 200
	training := rl.Defaults()
	training.Workers, training.Clusters, training.Iterations = 2, 1, 10
	waiting := training
	waiting.Network = rl.Network{Kind: rl.Ideal}
	jobs := sched.PaperWorkload(0, 1)
	jobs.Jobs, jobs.Units, jobs.Ports = 6, 4, 2
	network, err := netsim.Preset(system.All(), "multihop", netsim.Scale{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := network.Text()
	if err != nil {
		t.Fatal(err)
	}
	iswitch, err := carrier.Systems.Find("iswitch")
	if err != nil {
		t.Fatal(err)
	}
	hosts := &job.Spec{System: iswitch, Mode: &iswitch.Modes[0]}
	hosts.Network = closedloop.Network{Workers: 4, Link: closedloop.Link{Rate: 10 * olaf.Gbps, Overhead: 24}}
	hosts.Job = closedloop.Job{Layout: endpoint.Layout{Values: 3000}, Updates: 5, Compute: olaf.Millisecond, Jitter: 0.2}
	network.Queue, network.Waiting = "fifo", &netsim.Waiting{System: "switchml"}
	answered, err := network.Text()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		spec    any
		run     carry
		metrics []*metric.Metric
	}{
		"hosts":    {OneJob{Job: hosts, Seed: 3}, carrier.Jobs, job.Metrics()},
		"waiting":  {Network{Topology: string(answered), Seed: 3}, carrier.Simulate, NetworkMetrics()},
		"bench":    {one, ofBench, nil},
		"simulate": {Network{Topology: string(text), Seed: 3}, carrier.Simulate, NetworkMetrics()},
		"train":    {Training{Config: training}, carrier.Train, TrainingMetrics()},
		"job":      {Training{Config: waiting, Job: &Job{System: "iswitch", Mode: "sync"}}, carrier.Train, TrainingMetrics()},
		"schedule": {Scheduled{Workload: jobs, Scenario: policy.Scenarios()[0].Name}, Plan, PlanMetrics()},
	}
}

// TestRunsAreIndependent checks that runs carried out together and one at a time are equal, because a sweep's worker
// may get any of them.
func TestRunsAreIndependent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, kind := range smallCells(t) {
		t.Run(name, func(t *testing.T) {
			spec, err := json.Marshal(kind.spec)
			if err != nil {
				t.Fatal(err)
			}
			both, err := kind.run(t.Context(), spec, 0, 2)
			if err != nil {
				t.Fatal(err)
			}
			for i := range both.Runs {
				alone, err := kind.run(t.Context(), spec, i, 1)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(text(t, alone.Runs[0]), text(t, both.Runs[i])) {
					t.Errorf("run %d alone is\n%s, among others\n%s", i, text(t, alone.Runs[0]), text(t, both.Runs[i]))
				}
				if len(both.Runs[i].Values) != len(both.Metrics) || both.Runs[i].Invalid != "" {
					t.Errorf("run %d has %d values of %d metrics, invalid %q", i, len(both.Runs[i].Values), len(both.Metrics),
						both.Runs[i].Invalid)
				}
			}
			if both.Runs[1].Seed == both.Runs[0].Seed || text(t, both.Runs[0].Values) == text(t, both.Runs[1].Values) {
				t.Errorf("runs of seeds %d and %d came to the same: %s", both.Runs[0].Seed, both.Runs[1].Seed,
					text(t, both.Runs[0].Values))
			}
			for _, m := range both.Metrics {
				if kind.metrics != nil && !slices.ContainsFunc(kind.metrics, func(d *metric.Metric) bool { return d.Name == m }) {
					t.Errorf("metric %s is not declared", m)
				}
			}
		})
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestForeignSpecs checks the errors for specifications that no command of this build writes.
func TestForeignSpecs(t *testing.T) {
	all := smallCells(t)
	tests := []struct{ kind, spec, says string }{
		{"bench", `{`, "unexpected end"},
		{"simulate", `{"topology": 3}`, "cannot unmarshal"},
		{"simulate", `{"topology": "nodes: 3"}`, "topology"},
		{"train", `[]`, "cannot unmarshal"},
		{"job", `{"job": {"system": "other"}}`, "other"},
		{"job", `{"job": {"system": "iswitch", "mode": "other"}}`, "other"},
		{"schedule", `{"scenario": "other"}`, `no scenario "other"`},
	}
	for _, tt := range tests {
		if lot, err := all[tt.kind].run(t.Context(), json.RawMessage(tt.spec), 0, 1); err == nil ||
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s of %s came to %v, %v", tt.kind, tt.spec, lot, err)
		}
	}
}

// TestQuestionBySamplePaths checks the answer to a question by sample paths, which need no solver. If one cluster sends
// ten times as often, the clusters' ages differ.
func TestQuestionBySamplePaths(t *testing.T) {
	const ms = olaf.Millisecond
	q := Question{Solver: aomcheck.Ways()[0], LimitS: 60, Simulate: 10}
	q.Problem = aomcheck.Problem{Service: 2 * ms, Horizon: 6, Objective: aomcheck.Objective{Kind: aomcheck.Fairness, Bound: ms / 10},
		Clusters: []aomcheck.Cluster{{Interval: 10 * ms, EveryPhase: true}, {Interval: 100 * ms, EveryPhase: true}}}.WithDefaults()
	lot, err := Verify(t.Context(), json.RawMessage(text(t, q)), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(lot.Runs) != 1 || len(lot.Metrics) != len(QuestionMetrics()) || lot.Runs[0].Values[0] != 0 || lot.Runs[0].Values[1].Known() {
		t.Errorf("came to %s", text(t, lot))
	}
	for _, spec := range []string{`{`, text(t, Question{Solver: q.Solver, LimitS: 1})} {
		if lot, err := Verify(t.Context(), json.RawMessage(spec), 0, 1); err == nil {
			t.Errorf("%s came to %v", spec, lot)
		}
	}
}
