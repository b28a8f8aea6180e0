package bench

import (
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
)

// TraceTraffic is a recorded training run in place of a workload's bursts. A recording is scaled to the workload's
// workers, clusters, updates, frame and mean rate, separately for every run with its seed. An already scaled trace is
// played unchanged, the same in every run.
type TraceTraffic struct {
	Name      string  `json:"name"`
	Digest    string  `json:"sha256"` // of the recording
	Averaging string  `json:"averaging"`
	Block     int     `json:"block"`
	Spread    float64 `json:"spread"` // slowest over fastest cluster
	Jitter    float64 `json:"jitter"`
	// MaxDeparture is the largest deviation of a frame from its instant in the trace before a run counts as invalid.
	MaxDeparture olaf.Duration `json:"max_departure"`
	// Updates is the number of updates in a trace that is played unchanged; 0 for a recording that is scaled.
	Updates uint64 `json:"updates,omitempty"`
	// Fragments is the number of consecutive frames of an update. The workload's workers and clusters then count every
	// fragment; see trace.Splitter. 0 means one frame.
	Fragments int `json:"fragments,omitempty"`

	recording *trace.Recording
	values    int // of an update in the recording
}

// NewTraceTraffic loads the trace at a path, or an embedded one. If it is played unchanged, it sets the workers,
// clusters, frame, rate and updates in w.
func NewTraceTraffic(name string, w *pktgen.Burst) (t *TraceTraffic, err error) {
	d := trace.DefaultScaling()
	t = &TraceTraffic{Name: name, Averaging: d.Averaging, Block: d.Block, Spread: d.Spread, Jitter: d.Jitter,
		MaxDeparture: 2 * olaf.Microsecond}
	reader, closer, err := trace.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	h := reader.Header()
	t.values = h.Lanes
	if h.Scaled == nil {
		if t.recording, err = trace.LoadRecording(reader); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Digest = t.recording.Digest()
		return t, nil
	}
	if t.Digest, t.Updates, err = trace.IdentifySource(reader); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w.Placement = pktgen.Placement{Workers: h.Workers, Clusters: h.Clusters}
	w.Size, w.MeanRate = h.Scaled.FrameBytes, h.Scaled.Rate
	w.UpdatesPerWorker = max(1, int((t.Updates+uint64(h.Workers)-1)/uint64(h.Workers)))
	t.Averaging, t.Block, t.Spread, t.Jitter = h.Scaled.Averaging, h.Scaled.Block, h.Scaled.Spread, h.Scaled.Jitter
	return t, nil
}

// Values returns how many values an update of the recording has.
func (t *TraceTraffic) Values() int { return t.values }

// Split cuts every update into frames of the workload's size, and gives the workload their workers and clusters. For a
// recording, the mean rate of all frames stays the same; for a trace played unchanged, it grows with the number of
// frames. The error matches trace.ErrScaling.
func (t *TraceTraffic) Split(w *pktgen.Burst, frames int) error {
	p, err := trace.SplitPlacement(w.Placement, frames)
	if err != nil || frames == 1 {
		return err
	}
	w.Placement, t.Fragments = p, frames
	t.MaxDeparture *= olaf.Duration(frames)
	if t.Updates > 0 {
		w.MeanRate = min(w.MeanRate*olaf.Rate(frames), w.LineRate)
	}
	return nil
}

// split returns how updates are cut, for the measurement.
func (t *TraceTraffic) split(w *pktgen.Burst) results.Split {
	if t == nil || t.Fragments < 2 {
		return results.Split{}
	}
	return results.Split{Frames: t.Fragments, Workers: w.Workers / w.Clusters}
}

// frames returns how many frames an update takes.
func (t *TraceTraffic) frames() int { return max(t.Fragments, 1) }

// recordingDigest returns the recording's digest; empty without one.
func (t *TraceTraffic) recordingDigest() string {
	if t == nil {
		return ""
	}
	return t.Digest
}

// makeScaling returns the scaling of the recording for the workload under one seed.
func (t *TraceTraffic) makeScaling(w *pktgen.Burst, seed uint64) trace.Scaling {
	s := trace.DefaultScaling()
	n := t.frames()
	s.Placement = pktgen.Placement{Workers: w.Workers / n, Clusters: w.Clusters / n}
	s.Updates, s.Frame = w.UpdatesPerWorker, w.Size
	s.Rate, s.Line = w.MeanRate/olaf.Rate(n), w.LineRate/olaf.Rate(n) // of updates, each as long as n frames
	s.Averaging, s.Block, s.Spread, s.Jitter, s.ActiveClusters, s.Seed = t.Averaging, t.Block, t.Spread, t.Jitter,
		w.ActiveClusters, seed
	return s
}

// checkTrace checks the settings. The error matches ErrSpec or trace.ErrScaling.
func (t *TraceTraffic) checkTrace(w *pktgen.Burst) error {
	if t.MaxDeparture < 0 {
		return fmt.Errorf("%w: a frame cannot leave within %v of its time; the limit is 0 or more", ErrSpec,
			t.MaxDeparture)
	}
	if n := t.frames(); w.Workers%n != 0 || w.Clusters%n != 0 || n > 1 && w.Workers%w.Clusters != 0 {
		return fmt.Errorf("%w: %d workers in %d clusters; with %d frames an update both are multiples of that, and clusters "+
			"of one size", ErrSpec, w.Workers, w.Clusters, n)
	}
	if t.Updates > 0 {
		return nil
	}
	s := t.makeScaling(w, 1)
	return s.Check()
}

// loadRecording loads the recording of a specification read from a document, and checks its digest.
func (t *TraceTraffic) loadRecording() error {
	if t.recording != nil {
		return nil
	}
	var w pktgen.Burst
	now, err := NewTraceTraffic(t.Name, &w)
	if err != nil {
		return err
	}
	if now.Digest != t.Digest || now.Updates != t.Updates {
		return fmt.Errorf("%w: %s has the digest %s now, the specification was made with %s", ErrSpec, t.Name,
			now.Digest, t.Digest)
	}
	t.recording = now.recording
	return nil
}

// traffic is a generator's input, seed after seed.
type traffic interface {
	// load starts the stream for a seed.
	load(seed uint64) (pktgen.Source, error)
	// faults returns why the loaded traffic is invalid, given the generator's largest delay; empty if it is valid.
	faults(late olaf.Duration) []string
	// departures returns the deviation of the loaded traffic from its recorded instants.
	departures() trace.DepartureError
	close() error
}

// newTraffic returns the traffic of a specification.
func (s *Spec) newTraffic() (traffic, error) {
	if s.Loop != nil {
		return silence{}, nil
	}
	if s.Trace != nil {
		t := *s.Trace
		if err := t.loadRecording(); err != nil {
			return nil, err
		}
		return &traceTraffic{TraceTraffic: &t, workload: &s.Workload}, nil
	}
	schedule, err := pktgen.NewSchedule(s.Workload, 0)
	return burstTraffic{schedule}, err
}

// silence is the traffic of an idle generator, for closed-loop hosts.
type silence struct{}

func (silence) load(uint64) (pktgen.Source, error) { return nil, nil }
func (silence) faults(olaf.Duration) []string      { return nil }
func (silence) departures() trace.DepartureError   { return trace.DepartureError{} }
func (silence) close() error                       { return nil }

type burstTraffic struct{ schedule *pktgen.Schedule }

func (b burstTraffic) load(seed uint64) (pktgen.Source, error) {
	b.schedule.Reset(seed)
	return b.schedule, nil
}

func (burstTraffic) faults(olaf.Duration) []string    { return nil }
func (burstTraffic) departures() trace.DepartureError { return trace.DepartureError{} }
func (burstTraffic) close() error                     { return nil }

type traceTraffic struct {
	*TraceTraffic
	workload *pktgen.Burst
	schedule *trace.Schedule
	file     io.Closer // of a trace that is played unchanged
}

func (t *traceTraffic) load(seed uint64) (pktgen.Source, error) {
	if t.Updates > 0 {
		return t.openFile()
	}
	scaler, err := trace.NewScaler(t.recording, t.makeScaling(t.workload, seed))
	if err != nil {
		return nil, err
	}
	return t.newSchedule(scaler, scaler.Total())
}

// openFile plays the file from its beginning.
func (t *traceTraffic) openFile() (pktgen.Source, error) {
	if err := t.close(); err != nil {
		return nil, err
	}
	reader, closer, err := trace.Open(t.Name)
	if err != nil {
		return nil, err
	}
	t.file = closer
	return t.newSchedule(reader, int(t.Updates))
}

// newSchedule returns a schedule that plays the given number of updates from a source.
func (t *traceTraffic) newSchedule(source trace.Source, updates int) (_ pktgen.Source, err error) {
	if n := t.frames(); n > 1 {
		if source, err = trace.NewSplitter(source, n); err != nil {
			return nil, err
		}
		updates *= n
	}
	t.schedule, err = trace.NewSchedule(source, updates, t.workload.LineRate, t.workload.Size)
	return t.schedule, err
}

func (t *traceTraffic) close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

func (t *traceTraffic) departures() trace.DepartureError { return t.schedule.Departures() }

func (t *traceTraffic) faults(late olaf.Duration) []string {
	var out []string
	if err := t.schedule.Err(); err != nil {
		out = append(out, err.Error())
	}
	planned := t.departures()
	achieved := planned
	achieved.Max += late
	if err := achieved.Check(t.MaxDeparture); errors.Is(err, trace.ErrDeparture) {
		out = append(out, fmt.Sprintf("%v (planned within %v, the generator up to %v late)", err, planned.Max, late))
	}
	return out
}
