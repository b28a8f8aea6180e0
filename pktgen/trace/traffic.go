package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen"
)

// Traffic is a recorded training run that replaces the bursts of a workload. A recording is scaled to the workers,
// clusters, updates, frame size and mean rate of the workload, separately for every run with its seed. A trace that is
// already scaled is played unchanged and is the same in every run.
type Traffic struct {
	Name      string  `json:"name"`
	Digest    string  `json:"sha256"` // SHA-256 of the recording
	Averaging string  `json:"averaging"`
	Block     int     `json:"block"`
	Spread    float64 `json:"spread"` // time of the slowest cluster divided by the fastest's
	Jitter    float64 `json:"jitter"`
	// MaxDeparture is the largest deviation of a frame from its instant in the trace with which a run is still valid.
	MaxDeparture olaf.Duration `json:"max_departure"`
	// Updates is the number of updates in a trace that is played unchanged; 0 for a recording that is scaled.
	Updates uint64 `json:"updates,omitempty"`
	// Fragments is the number of consecutive frames in an update. The workload's numbers of workers and clusters then
	// include every fragment; see Splitter. 0 means one frame.
	Fragments int `json:"fragments,omitempty"`

	recording *Recording
	values    int // number of values in an update of the recording
}

// NewTraffic loads the trace at a path, or an embedded trace. If the trace is to be played unchanged, NewTraffic sets
// the workers, clusters, frame size, rate and updates in w.
func NewTraffic(name string, w *pktgen.Burst) (t *Traffic, err error) {
	d := DefaultScaling()
	t = &Traffic{Name: name, Averaging: d.Averaging, Block: d.Block, Spread: d.Spread, Jitter: d.Jitter,
		MaxDeparture: 2 * olaf.Microsecond}
	reader, closer, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	h := reader.Header()
	t.values = h.Lanes
	if h.Scaled == nil {
		if t.recording, err = LoadRecording(reader); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Digest = t.recording.Digest()
		return t, nil
	}
	if t.Digest, t.Updates, err = identifySource(reader); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w.Placement = pktgen.Placement{Workers: h.Workers, Clusters: h.Clusters}
	w.Size, w.MeanRate = h.Scaled.FrameBytes, h.Scaled.Rate
	w.UpdatesPerWorker = max(1, int((t.Updates+uint64(h.Workers)-1)/uint64(h.Workers)))
	t.Averaging, t.Block, t.Spread, t.Jitter = h.Scaled.Averaging, h.Scaled.Block, h.Scaled.Spread, h.Scaled.Jitter
	return t, nil
}

// Values returns the number of values in an update of the recording.
func (t *Traffic) Values() int { return t.values }

// Split splits every update into frames of the workload's size and sets the workers and clusters of the workload
// accordingly. For a recording, the mean rate of all frames stays the same. For a trace that is played unchanged, it
// grows with the number of frames. The error matches ErrScaling.
func (t *Traffic) Split(w *pktgen.Burst, frames int) error {
	p, err := splitPlacement(w.Placement, frames)
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

// Frames returns the number of frames in an update.
func (t *Traffic) Frames() int { return max(t.Fragments, 1) }

// Scaling returns the scaling of the recording for the workload with the given seed.
func (t *Traffic) Scaling(w *pktgen.Burst, seed uint64) Scaling {
	s := DefaultScaling()
	n := t.Frames()
	s.Placement = pktgen.Placement{Workers: w.Workers / n, Clusters: w.Clusters / n}
	s.Updates, s.Frame = w.UpdatesPerWorker, w.Size
	s.Rate, s.Line = w.MeanRate/olaf.Rate(n), w.LineRate/olaf.Rate(n) // rates of updates, each as long as n frames
	s.Averaging, s.Block, s.Spread, s.Jitter, s.ActiveClusters, s.Seed = t.Averaging, t.Block, t.Spread, t.Jitter,
		w.ActiveClusters, seed
	return s
}

// Reload loads the recording of traffic that was read from a document, unless it is already loaded. If the named trace
// has changed since, same is false and now is the traffic of the changed trace.
func (t *Traffic) Reload() (now *Traffic, same bool, err error) {
	if t.recording != nil {
		return t, true, nil
	}
	var w pktgen.Burst
	if now, err = NewTraffic(t.Name, &w); err != nil {
		return nil, false, err
	}
	if now.Digest != t.Digest || now.Updates != t.Updates {
		return now, false, nil
	}
	t.recording = now.recording
	return t, true, nil
}

// Player plays traffic for one seed after another.
type Player struct {
	*Traffic
	Workload *pktgen.Burst

	schedule *Schedule
	file     io.Closer // file of a trace that is played unchanged
}

// Load starts the stream of descriptors for a seed.
func (t *Player) Load(seed uint64) (pktgen.Source, error) {
	if t.Updates > 0 {
		return t.openFile()
	}
	scaler, err := NewScaler(t.recording, t.Scaling(t.Workload, seed))
	if err != nil {
		return nil, err
	}
	return t.newSchedule(scaler, scaler.Total())
}

// openFile starts to play the file from its beginning.
func (t *Player) openFile() (pktgen.Source, error) {
	if err := t.Close(); err != nil {
		return nil, err
	}
	reader, closer, err := Open(t.Name)
	if err != nil {
		return nil, err
	}
	t.file = closer
	return t.newSchedule(reader, int(t.Updates))
}

// newSchedule returns a schedule that plays the given number of updates from a source.
func (t *Player) newSchedule(source Source, updates int) (_ pktgen.Source, err error) {
	if n := t.Frames(); n > 1 {
		if source, err = newSplitter(source, n); err != nil {
			return nil, err
		}
		updates *= n
	}
	t.schedule, err = NewSchedule(source, updates, t.Workload.LineRate, t.Workload.Size)
	return t.schedule, err
}

// Close closes the file of a trace that is played unchanged.
func (t *Player) Close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

// Departures returns how much the departures of the loaded traffic deviate from the recorded times.
func (t *Player) Departures() DepartureError { return t.schedule.Departures() }

// Faults returns the reasons why the loaded traffic is invalid, or none if it is valid. late is the largest delay of
// the generator.
func (t *Player) Faults(late olaf.Duration) []string {
	var out []string
	if err := t.schedule.Err(); err != nil {
		out = append(out, err.Error())
	}
	planned := t.Departures()
	achieved := planned
	achieved.Max += late
	if err := achieved.Check(t.MaxDeparture); errors.Is(err, ErrDeparture) {
		out = append(out, fmt.Sprintf("%v (planned within %v, the generator up to %v late)", err, planned.Max, late))
	}
	return out
}
