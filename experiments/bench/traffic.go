package bench

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
)

// splitTrace returns how updates are cut into frames. The measurement uses it to compute ages of whole models.
func splitTrace(t *trace.Traffic, w *pktgen.Burst) results.Split {
	if t == nil || t.Fragments < 2 {
		return results.Split{}
	}
	return results.Split{Frames: t.Fragments, Workers: w.Workers / w.Clusters}
}

// digestTrace returns the digest of the recording, or "" if there is none.
func digestTrace(t *trace.Traffic) string {
	if t == nil {
		return ""
	}
	return t.Digest
}

// checkTrace checks the settings of recorded traffic against the workload. The error matches ErrSpec or
// trace.ErrScaling.
func checkTrace(t *trace.Traffic, w *pktgen.Burst) error {
	if t.MaxDeparture < 0 {
		return fmt.Errorf("%w: a frame cannot leave within %v of its time; the limit is 0 or more", ErrSpec,
			t.MaxDeparture)
	}
	if n := t.Frames(); w.Workers%n != 0 || w.Clusters%n != 0 || n > 1 && w.Workers%w.Clusters != 0 {
		return fmt.Errorf("%w: %d workers in %d clusters; with %d frames an update both are multiples of that, and clusters "+
			"of one size", ErrSpec, w.Workers, w.Clusters, n)
	}
	if t.Updates > 0 {
		return nil
	}
	s := t.Scaling(w, 1)
	return s.Check()
}

// reloadTrace loads the recording that a stored specification names and checks its digest.
func reloadTrace(t *trace.Traffic) error {
	now, same, err := t.Reload()
	if err == nil && !same {
		return fmt.Errorf("%w: %s has the digest %s now, the specification was made with %s", ErrSpec, t.Name,
			now.Digest, t.Digest)
	}
	return err
}

// traffic provides the generator's input, one seed after the other.
type traffic interface {
	// Load starts the stream for a seed.
	Load(seed uint64) (pktgen.Source, error)
	// Faults returns the reasons why the loaded traffic is invalid, given the generator's largest delay; empty if it is
	// valid.
	Faults(late olaf.Duration) []string
	// Departures returns the deviation of the loaded traffic from its recorded instants.
	Departures() trace.DepartureError
	Close() error
}

// newTraffic returns the traffic that a specification describes.
func (s *Spec) newTraffic() (traffic, error) {
	if s.Loop != nil {
		return silence{}, nil
	}
	if s.Trace != nil {
		t := *s.Trace
		if err := reloadTrace(&t); err != nil {
			return nil, err
		}
		return &trace.Player{Traffic: &t, Workload: &s.Workload}, nil
	}
	schedule, err := pktgen.NewSchedule(s.Workload, 0)
	return burstTraffic{schedule: schedule}, err
}

// silence is the traffic of an idle generator. It is used if closed-loop hosts send the frames. Traffic that is never
// invalid embeds it.
type silence struct{}

func (silence) Load(uint64) (pktgen.Source, error) { return nil, nil }
func (silence) Faults(olaf.Duration) []string      { return nil }
func (silence) Departures() trace.DepartureError   { return trace.DepartureError{} }
func (silence) Close() error                       { return nil }

type burstTraffic struct {
	silence
	schedule *pktgen.Schedule
}

func (b burstTraffic) Load(seed uint64) (pktgen.Source, error) {
	b.schedule.Reset(seed)
	return b.schedule, nil
}
