package experiments

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
)

// TraceTraffic is a recorded training in place of a workload's bursts, scaled to the workload's workers, clusters,
// updates, frame and mean rate; every run resamples it under its own seed.
type TraceTraffic struct {
	Name      string  `json:"name"`
	Digest    string  `json:"sha256"` // of the recording
	Averaging string  `json:"averaging"`
	Block     int     `json:"block"`
	Spread    float64 `json:"spread"` // slowest over fastest cluster
	Jitter    float64 `json:"jitter"`
	// MaxDeparture is how far any frame may leave from its instant in the trace before a run counts as invalid.
	MaxDeparture olaf.Duration `json:"max_departure"`

	recording *trace.Recording
}

// NewTraceTraffic loads the recording at a path, or an embedded one.
func NewTraceTraffic(name string) (*TraceTraffic, error) {
	recording, err := loadTrace(name)
	if err != nil {
		return nil, err
	}
	d := trace.DefaultScaling()
	return &TraceTraffic{Name: name, Digest: recording.Digest(), Averaging: d.Averaging, Block: d.Block, Spread: d.Spread, Jitter: d.Jitter,
		MaxDeparture: 2 * olaf.Microsecond, recording: recording}, nil
}

// scaling is what the workload asks of the recording under one seed.
func (t *TraceTraffic) scaling(w *pktgen.Burst, seed uint64) trace.Scaling {
	s := trace.DefaultScaling()
	s.Placement, s.Updates, s.Rate, s.Frame, s.Line = w.Placement, w.UpdatesPerWorker, w.MeanRate, w.Size, w.LineRate
	s.Averaging, s.Block, s.Spread, s.Jitter, s.ActiveClusters, s.Seed = t.Averaging, t.Block, t.Spread, t.Jitter, w.ActiveClusters, seed
	return s
}

// validate says what is wrong. The error matches trace.ErrScaling.
func (t *TraceTraffic) validate(w *pktgen.Burst) error {
	s := t.scaling(w, 1)
	return s.Check()
}

// find loads the recording of a specification that was read from a document, and checks that it is the same one.
func (t *TraceTraffic) find() (err error) {
	if t.recording != nil {
		return nil
	}
	if t.recording, err = loadTrace(t.Name); err != nil {
		return err
	}
	if digest := t.recording.Digest(); digest != t.Digest {
		return fmt.Errorf("%w: %s has the digest %s now, the specification was made with %s", ErrSpec, t.Name, digest, t.Digest)
	}
	return nil
}

// traffic is what a generator plays, seed after seed.
type traffic interface {
	// load starts the stream of a seed.
	load(seed uint64) (pktgen.Source, error)
	// faults says why what was loaded must not be used, given how late the generator was at most; empty if it may be.
	faults(late olaf.Duration) []string
}

// newTraffic is the traffic of a specification.
func (s *Spec) newTraffic() (traffic, error) {
	if s.Trace != nil {
		t := *s.Trace
		if err := t.find(); err != nil {
			return nil, err
		}
		return &traceTraffic{TraceTraffic: &t, workload: &s.Workload}, nil
	}
	schedule, err := pktgen.NewSchedule(s.Workload, 0)
	return burstTraffic{schedule}, err
}

type burstTraffic struct{ schedule *pktgen.Schedule }

func (b burstTraffic) load(seed uint64) (pktgen.Source, error) {
	b.schedule.Reset(seed)
	return b.schedule, nil
}

func (burstTraffic) faults(olaf.Duration) []string { return nil }

type traceTraffic struct {
	*TraceTraffic
	workload *pktgen.Burst
	schedule *trace.Schedule
}

func (t *traceTraffic) load(seed uint64) (pktgen.Source, error) {
	scaler, err := trace.NewScaler(t.recording, t.scaling(t.workload, seed))
	if err != nil {
		return nil, err
	}
	t.schedule, err = trace.NewSchedule(scaler, scaler.Total(), t.workload.LineRate, t.workload.Size)
	return t.schedule, err
}

func (t *traceTraffic) faults(late olaf.Duration) []string {
	var out []string
	if err := t.schedule.Err(); err != nil {
		out = append(out, err.Error())
	}
	planned := t.schedule.Departures()
	achieved := planned
	achieved.Max += late
	if err := achieved.Check(t.MaxDeparture); errors.Is(err, trace.ErrDeparture) {
		out = append(out, fmt.Sprintf("%v (planned within %v, the generator up to %v late)", err, planned.Max, late))
	}
	return out
}
