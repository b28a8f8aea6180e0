package bench

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/trace"
)

func tracedSpec(t *testing.T) Spec {
	t.Helper()
	s := usualSpec()
	traffic, err := trace.NewTraffic("builtin:lander8", &s.Workload)
	if err != nil {
		t.Fatal(err)
	}
	s.Trace, s.Runs, s.Workload.UpdatesPerWorker = traffic, 2, 50
	return s
}

func TestBenchPlaysATrace(t *testing.T) {
	s := tracedSpec(t)
	var first string
	for range 2 {
		report, err := MeasureSpec(context.Background(), s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Err(); err != nil {
			t.Fatal(err)
		}
		for _, runs := range report.Outcome.Runs {
			for _, run := range runs {
				if run.Counters.Of("sent") != 27*50 {
					t.Errorf("%d updates sent, want %d", run.Counters.Of("sent"), 27*50)
				}
			}
		}
		if len(report.Bench.Paper) > 0 {
			t.Error("a trace is not the paper's traffic and must not be compared with its numbers")
		}
		rows, err := json.Marshal(report.Bench.Rows)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(rows)
		} else if first != string(rows) {
			t.Error("the same trace and seed gave other rows")
		}
	}
}

func TestLateDeparturesMakeARunInvalid(t *testing.T) {
	s := tracedSpec(t)
	s.Trace.MaxDeparture = olaf.Nanosecond
	report, err := MeasureSpec(context.Background(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "departures") {
		t.Errorf("error %v", err)
	}
}

// TestTraceOfAStoredSpecification checks that a specification from a document finds its recording, and notices a
// different one.
func TestTraceOfAStoredSpecification(t *testing.T) {
	doc, err := json.Marshal(tracedSpec(t))
	if err != nil {
		t.Fatal(err)
	}
	var s Spec
	if err := json.Unmarshal(doc, &s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.newTraffic(); err != nil {
		t.Error(err)
	}
	s.Trace.Digest = "another"
	if _, err := s.newTraffic(); !errors.Is(err, ErrSpec) {
		t.Errorf("error %v", err)
	}
	s.Trace.MaxDeparture = -1
	if err := s.Validate(); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), "the limit is 0 or more") {
		t.Errorf("a negative limit: %v", err)
	}
	s.Trace.MaxDeparture = 0
	s.Workload.MeanRate = 99 * olaf.Gbps
	s.Trace.Spread = 0
	if err := s.Validate(); !errors.Is(err, trace.ErrScaling) {
		t.Errorf("error %v", err)
	}
}

// TestScaledTraceIsPlayedAsItIs checks that a scaled trace is played unchanged, and sets the workload.
func TestScaledTraceIsPlayedAsItIs(t *testing.T) {
	reader, closer, err := trace.Open("builtin:lander8")
	must(t, err)
	recording, err := trace.LoadRecording(reader)
	must(t, errors.Join(err, closer.Close()))
	scaling := trace.DefaultScaling()
	scaling.Workers, scaling.Clusters, scaling.Updates, scaling.Rate = 12, 4, 30, 40*olaf.Gbps
	scaler, err := trace.NewScaler(recording, scaling)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "scaled.trace")
	file, err := trace.CreateFile(path, *scaler.Header())
	if err != nil {
		t.Fatal(err)
	}
	var u trace.Update
	for scaler.Next(&u) == nil {
		if err := file.Append(&u, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s := usualSpec()
	s.Runs = 2
	if s.Trace, err = trace.NewTraffic(path, &s.Workload); err != nil {
		t.Fatal(err)
	}
	if s.Workload.Workers != 12 || s.Workload.Clusters != 4 || s.Workload.MeanRate != 40*olaf.Gbps {
		t.Errorf("workload %+v", s.Workload)
	}
	report, err := MeasureSpec(context.Background(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, runs := range report.Outcome.Runs {
		if !runs[0].Counters.Equal(runs[1].Counters) || runs[0].Counters.Of("sent") != 360 {
			t.Errorf("%+v, then %+v", runs[0].Counters, runs[1].Counters)
		}
	}
}
