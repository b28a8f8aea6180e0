package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/p4ctl"
)

// usualSpec returns DefaultSpec for all systems.
func usualSpec() Spec { return DefaultSpec(system.All()) }

// smallSpecOf returns Table1 reduced to a test's size.
func smallSpecOf(t *testing.T) Spec {
	t.Helper()
	s := usualSpec()
	s.Workload.UpdatesPerWorker, s.Runs = 60, 5
	return s
}

func tablesOf(t *testing.T, plan *Plan) p4ctl.Tables {
	t.Helper()
	tables, err := plan.Tables()
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func mustBench(t *testing.T, s Spec, o Options) *Measurement {
	t.Helper()
	report, err := MeasureSpec(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestSameBytesOnAnyNumberOfCards checks that results are deterministic.
func TestSameBytesOnAnyNumberOfCards(t *testing.T) {
	var first []byte
	for _, cards := range []int{1, 2, 5} {
		doc, err := json.Marshal(mustBench(t, smallSpecOf(t), Options{Cards: cards}).Document())
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = doc
		}
		if !bytes.Equal(doc, first) {
			t.Errorf("%d cards give other bytes than 1", cards)
		}
	}
}

// listener collects events and may end the experiment at one of them.
type listener struct {
	mu     sync.Mutex
	at     func(Event) error
	counts map[string]int
}

func (l *listener) Event(e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := ""
	switch e.(type) {
	case Started:
		name = "started"
	case RunStarted:
		name = "run"
	case Observed:
		name = "observed"
	case RunDone:
		name = "done"
	case Finished:
		name = "finished"
	}
	l.counts[name]++
	if l.at != nil {
		return l.at(e)
	}
	return nil
}

func TestStreamReportsEveryEvent(t *testing.T) {
	l := &listener{counts: map[string]int{}}
	seen := 0
	l.at = func(e Event) error {
		if o, ok := e.(Observed); ok {
			seen += len(o.Observations)
		}
		return nil
	}
	stream := NewStream(l)
	report := mustBench(t, smallSpecOf(t), Options{Stream: stream})
	runs := report.Outcome.Plan.RunCount()
	want := map[string]int{"started": 1, "run": runs, "done": runs, "finished": 1}
	for name, n := range want {
		if l.counts[name] != n {
			t.Errorf("%d events %q, want %d", l.counts[name], name, n)
		}
	}
	received := 0
	for _, config := range report.Outcome.Runs {
		for _, r := range config {
			received += int(r.Counters.Of("received"))
		}
	}
	if seen != received {
		t.Errorf("the stream carried %d observations, the runs counted %d", seen, received)
	}
	if p := stream.Progress(); p.Done != runs || p.Total != runs || !p.Finished || p.Invalid != 0 {
		t.Errorf("progress at the end: %+v", p)
	}
}

// TestInterruptLeavesAPartialReport checks that a bench stopped after some runs returns the finished ones, marked as
// partial, with the reason.
func TestInterruptLeavesAPartialReport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	l := &listener{counts: map[string]int{}, at: func(e Event) error {
		if _, ok := e.(RunDone); ok {
			if done++; done == 6 {
				cancel()
			}
		}
		return nil
	}}
	report, err := MeasureSpec(ctx, smallSpecOf(t), Options{Cards: 1, Stream: NewStream(l)})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want the context's", err)
	}
	if report == nil || !report.Bench.Partial {
		t.Fatal("no partial report")
	}
	for _, row := range report.Bench.Rows {
		if row.Runs != 1 {
			t.Errorf("%s at %d has %d runs, want the one that was finished everywhere", row.Queue, row.OutRateBPS, row.Runs)
		}
	}
	if !errors.Is(report.Err(), ErrRun) {
		t.Errorf("a partial report says %v", report.Err())
	}
}

func TestSinkErrorEndsExperiment(t *testing.T) {
	full := errors.New("disk full")
	l := &listener{counts: map[string]int{}, at: func(e Event) error {
		if _, ok := e.(Observed); ok {
			return full
		}
		return nil
	}}
	if _, err := MeasureSpec(t.Context(), smallSpecOf(t), Options{Stream: NewStream(l)}); !errors.Is(err, full) {
		t.Errorf("error %v, want the sink's", err)
	}
}

// TestMissingWorkerInvalidatesRun checks that an error in the tables is not averaged away: the worker's updates bypass
// the queue, and the run is invalid for that reason.
func TestMissingWorkerInvalidatesRun(t *testing.T) {
	plan, err := NewPlan(smallSpecOf(t))
	if err != nil {
		t.Fatal(err)
	}
	bed, err := testbed.OpenTestbed(t.Context(), "twin:", testbed.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	l := &listener{counts: map[string]int{}, at: func(e Event) error {
		if _, ok := e.(Started); !ok {
			return nil
		}
		wrong := tablesOf(t, plan)
		wrong.Workers = wrong.Workers[1:]
		_, err := bed.Tables.Sync(t.Context(), wrong)
		return err
	}}
	out, err := RunPlan(t.Context(), plan, bed, NewStream(l))
	if err != nil {
		t.Fatal(err)
	}
	run := out.Runs[0][0]
	if run.Valid() || run.Counters.Of("bypassed") != 60 {
		t.Errorf("valid %v with %d bypassed, want an invalid run with 60", run.Valid(), run.Counters.Of("bypassed"))
	}
	report, err := NewMeasurement(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(report.Err(), ErrInvalid) || report.Bench.Rows[0].Runs != 0 {
		t.Errorf("the report says %v and averages %d runs", report.Err(), report.Bench.Rows[0].Runs)
	}
}

// stuck is a card whose generator never finishes.
type stuck struct{ fpga.Device }

func (s stuck) Read32(addr uint32) (uint32, error) {
	v, err := s.Device.Read32(addr)
	if addr == regmap.GeneratorState && v == regmap.GeneratorStateStateDone {
		v = regmap.GeneratorStateStateRunning
	}
	return v, err
}

// TestStalledGeneratorEndsRun checks that a stalled generator ends the run.
func TestStalledGeneratorEndsRun(t *testing.T) {
	plan, err := NewPlan(smallSpecOf(t))
	must(t, err)
	bed, err := testbed.OpenTestbed(t.Context(), "twin:", testbed.OpenOptions{})
	must(t, err)
	defer bed.Close()
	bed.Cards[0].Device = stuck{bed.Cards[0].Device}
	if _, err := RunPlan(t.Context(), plan, bed, NewStream()); !errors.Is(err, ErrRun) ||
		!strings.Contains(err.Error(), "10s after its last frame was due") {
		t.Error(err)
	}
}

// leaky is a card whose network adapters report a loss of three frames in every run.
type leaky struct {
	fpga.Device
	drops uint64
}

func (l *leaky) PortCounts() ([]fpga.Port, error) {
	l.drops += 3
	return []fpga.Port{{}, {Dropped: l.drops}}, nil
}

// TestAdapterDropsAreAccountedFor checks that frames lost by a card's adapters are in the accounts. Here they are
// reported although all frames arrived, so that the accounts must not balance.
func TestAdapterDropsAreAccountedFor(t *testing.T) {
	plan, err := NewPlan(smallSpecOf(t))
	if err != nil {
		t.Fatal(err)
	}
	bed, err := testbed.OpenTestbed(t.Context(), "twin:", testbed.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	bed.Cards[0].Device = &leaky{Device: bed.Cards[0].Device}
	out, err := RunPlan(t.Context(), plan, bed, NewStream())
	if err != nil {
		t.Fatal(err)
	}
	run := out.Runs[0][0]
	if run.Counters.Of("lost_before_engine") != 3 || run.Valid() || !strings.Contains(run.Invalid[0], "lost_before_engine") {
		t.Errorf("%d lost before the engine, invalid for %q", run.Counters.Of("lost_before_engine"), run.Invalid)
	}
}

func TestRefusedSpecs(t *testing.T) {
	for name, spoil := range map[string]func(*Spec){
		"queue":      func(s *Spec) { s.Queue = "red" },
		"versus":     func(s *Spec) { s.Versus = "red" },
		"no rate":    func(s *Spec) { s.OutRates = nil },
		"rate":       func(s *Spec) { s.OutRates[0] = 101 * olaf.Gbps },
		"slots":      func(s *Spec) { s.Slots = 0 },
		"runs":       func(s *Spec) { s.Runs = maxRuns + 1 },
		"threshold":  func(s *Spec) { s.RewardThreshold = -1 },
		"profile":    func(s *Spec) { s.Profile = "fast" },
		"cycles":     func(s *Spec) { n := 1000; s.DequeueCycles = &n },
		"overhead":   func(s *Spec) { s.Overhead = 256 },
		"slow limit": func(s *Spec) { s.OutRates[0] = 1 },
	} {
		s := usualSpec()
		spoil(&s)
		if _, err := NewPlan(s); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v, want ErrSpec", name, err)
		}
	}
	if _, err := testbed.OpenTestbed(t.Context(), "pci:0000:3b:00.0",
		testbed.OpenOptions{Access: backendstest.TestAccess()}); err == nil {
		t.Error("a card opened where there is none")
	}
}

// TestPlanHash checks that hashes differ exactly if plans differ.
func TestPlanHash(t *testing.T) {
	hash := func(s Spec) string {
		p, err := NewPlan(s)
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	other := usualSpec()
	other.Seed = 2
	if again := hash(usualSpec()); hash(usualSpec()) != again || again == hash(other) {
		t.Error("the hash is not that of the plan")
	}
}

// TestTablesArePreempted checks that losing the tables ends a run with the reason.
func TestTablesArePreempted(t *testing.T) {
	plan, err := NewPlan(smallSpecOf(t))
	if err != nil {
		t.Fatal(err)
	}
	bed, err := testbed.OpenTestbed(t.Context(), "twin:", testbed.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	var other *p4ctl.Session
	l := &listener{counts: map[string]int{}, at: func(e Event) error {
		if _, ok := e.(RunStarted); !ok || other != nil {
			return nil
		}
		if other, err = p4ctl.Dial(t.Context(), bed.Tables.Target(),
			p4ctl.Options{ElectionID: p4ctl.DefaultElectionID().Next()}); err != nil {
			return err
		}
		<-bed.Tables.Preempted()
		return nil
	}}
	_, err = RunPlan(t.Context(), plan, bed, NewStream(l))
	if other != nil {
		defer other.Close()
	}
	if !errors.Is(err, p4ctl.ErrPreempted) {
		t.Errorf("error %v, want ErrPreempted", err)
	}
}

// BenchmarkBench measures the work of the plain command: 4 configurations × 30 runs × 13,500 updates.
func BenchmarkBench(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := MeasureSpec(b.Context(), usualSpec(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
	updates := 4 * 30 * 13_500
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(updates), "ns/update")
}
