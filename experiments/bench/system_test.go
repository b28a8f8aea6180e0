package bench

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/metric"
)

// summingSpec returns a small bench of a system whose switch adds, and two that queue.
func summingSpec(t *testing.T) Spec {
	s := smallSpecOf(t)
	s.Queue, s.Versus = "iswitch", "olaf, fifo"
	return s
}

// TestSystemWithProgram checks that a system with a program is measured like a queue: its sums cross the queue, the
// accounts balance, and the other systems' numbers do not change.
func TestSystemWithProgram(t *testing.T) {
	m := mustBench(t, summingSpec(t), Options{})
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range m.Bench.Rows {
		names = append(names, m.Bench.Rows[i].Queue)
	}
	if want := []string{"iswitch", "olaf", "fifo", "iswitch", "olaf", "fifo"}; !slices.Equal(names, want) {
		t.Fatalf("rows of %v, want %v", names, want)
	}
	alone := smallSpecOf(t)
	for i, r := range mustBench(t, alone, Options{}).Outcome.Runs[:2] {
		if why := r[0].Differs(&m.Outcome.Runs[i+1][0]); why != "" {
			t.Errorf("%s differs beside a program: %s", r[0].Queue, why)
		}
	}
	run := &m.Outcome.Runs[0][0]
	sent, h := run.Counters.Of("sent"), int64(m.Outcome.Plan.Configs[0].H)
	if h != 3 || run.Counters.Of("in") != sent/h || run.Counters.Of("count_delivered") != h*run.Counters.Of("received") ||
		run.Counters.Of("vectors_in") != sent {
		t.Errorf("of %d sent with H = %d: %v", sent, h, run.Counters)
	}
	if lost := run.Counters.SumLost(); lost != sent-run.Counters.Of("count_delivered") {
		t.Errorf("%d lost", lost)
	}
	low, high := m.Outcome.Runs[0][0].Value(heldMetric(t, run)), m.Outcome.Runs[3][0].Value(heldMetric(t, run))
	if low != high || !(low > 0) || float64(low) != float64(run.Counters.Of("held_slot_cycles"))/float64(run.Counters.Of("held_cycles")) {
		t.Errorf("%v and %v slots were held in front of queues with links of two rates", low, high)
	}
	if len(m.Bench.Comparisons) != 4 || m.Bench.Comparisons[1].Versus != "fifo" {
		t.Errorf("%d comparisons", len(m.Bench.Comparisons))
	}
}

// heldMetric returns the metric for the occupancy of a run's table.
func heldMetric(t *testing.T, r *results.Run) *metric.Metric {
	t.Helper()
	i := slices.IndexFunc(r.Declared.Metrics, func(m *metric.Metric) bool { return m.Name == "slots_held" })
	if i < 0 {
		t.Fatal("nobody says how many slots were held")
	}
	return r.Declared.Metrics[i]
}

// TestStatementWithoutCountingTime checks the statement for a card that does not report for how long it counted.
func TestStatementWithoutCountingTime(t *testing.T) {
	s := summingSpec(t)
	s.Versus, s.Runs = "olaf", 1
	m := mustBench(t, s, Options{})
	said := func(m *Measurement) bool {
		return slices.ContainsFunc(m.Bench.Statements, func(s string) bool {
			return strings.HasPrefix(s, "slots_held covers the time from the first to the last delivery")
		})
	}
	if said(m) {
		t.Errorf("of the twin: %v", m.Bench.Statements)
	}
	c := &m.Outcome.Runs[0][0].Counters
	c.Add("held_cycles", -c.Of("held_cycles"))
	older, err := NewMeasurement(m.Outcome, nil)
	if err != nil || !said(older) {
		t.Errorf("of a card of map 1.3: %v, %v", older.Bench.Statements, err)
	}
}

// TestRunWithoutSumsIsInvalid checks that a run in which no sum was completed is invalid.
func TestRunWithoutSumsIsInvalid(t *testing.T) {
	s := summingSpec(t)
	h := MaxH
	s.H, s.Versus, s.Runs = &h, "", 1
	m := mustBench(t, s, Options{})
	if err := m.Err(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "count_delivered > 0") {
		t.Errorf("%v", err)
	}
}

func TestSystemsThatAreRefused(t *testing.T) {
	zero, three := 0, 3
	for name, c := range map[string]struct {
		change func(*Spec)
		say    string
	}{
		"nobody":        {func(s *Spec) { s.Queue = "nobody" }, `unknown system "nobody"`},
		"nobody beside": {func(s *Spec) { s.Versus = "fifo,nobody" }, `unknown system "nobody"`},
		"waits":         {func(s *Spec) { s.Versus = "ring" }, "one bench has one kind"},
		"no sum":        {func(s *Spec) { s.H = &zero }, "h is 0; use 1 to 65535"},
		"of no systems": {func(s *Spec) { s.Systems = nil }, "no systems were given"},
		"h of a queue":  {func(s *Spec) { s.Queue, s.Versus, s.H = "olaf", "", &three }, "not for olaf"},
	} {
		s := summingSpec(t)
		c.change(&s)
		if err := s.Validate(); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeviceWithoutProgram checks that a device without the program, or with too few segments, is rejected before
// anything runs.
func TestDeviceWithoutProgram(t *testing.T) {
	_, err := MeasureSpec(t.Context(), summingSpec(t), Options{Access: testbed.Access{Devices: testbed.Devices{testbed.TwinDevice()}}})
	var without *fpga.NotBuilt
	if kind, _ := olaf.KindOf(err); !errors.As(err, &without) || kind != olaf.Device || without.Program != "iswitch" {
		t.Errorf("%v", err)
	}
	s := summingSpec(t)
	s.Workload.Clusters, s.Workload.Workers, s.Workload.UpdatesPerWorker = 5000, 5000, 2
	if _, err := MeasureSpec(t.Context(), s, Options{}); !errors.Is(err, fpga.ErrRefused) ||
		!strings.Contains(err.Error(), "4096 segments") {
		t.Errorf("%v", err)
	}
}

// TestKeptSystemVerifies checks that a stored bench of such a system verifies and repeats, and is loaded with its
// system's declaration.
func TestKeptSystemVerifies(t *testing.T) {
	_, f := runAndKeep(t, summingSpec(t))
	proof, err := archive.Verify(f, system.All().FindDeclaration)
	if err != nil || len(proof.New) > 0 {
		t.Fatalf("%+v, %v", proof, err)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 30 {
		t.Errorf("%d runs repeated: %v", n, err)
	}
	if n, err := RepeatStored(t.Context(), nil, f, NewStream()); err == nil {
		t.Errorf("%d runs repeated of a system that is not there", n)
	}
	r, err := archive.Load(f, system.All().FindDeclaration)
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Runs[0].Declared; d.System != "iswitch" || len(r.Runs[0].Counters.Ledger().Rules()) < 8 {
		t.Errorf("loaded as %q", d.System)
	}
	if m := results.MetricsIn(r.Bench.Rows); !slices.ContainsFunc(m,
		func(m *metric.Metric) bool { return m.Name == "vectors_in" && m.Title != "" }) {
		t.Error("the rows do not know what vectors_in is")
	}
}
