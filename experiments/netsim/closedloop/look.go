package closedloop

import (
	"context"

	"github.com/olafctl/olaf"
)

// Largest number of events between pauses: seldom without Follow, often with it.
const (
	seldom = 1 << 18
	often  = 1 << 14
)

// Follow is called between events: before the first, whenever the last returned instant is reached, every few thousand
// events, and once at the end, with the end or the limit as next. last and next are the instants of the latest and the
// next event; look is valid during the call. It returns when it must be called again, and whether the run continues.
type Follow func(last, next olaf.Time, look *Look) (until olaf.Time, on bool)

// pauseRun calls Follow and checks the context before the event at next; on means that the run continues.
func (s *sim) pauseRun(ctx context.Context, next int64) (on bool, err error) {
	if s.rest = s.events + seldom; s.job.Follow != nil {
		s.rest = s.events + often
		until, on := s.job.Follow(olaf.Time(s.now), olaf.Time(next), &Look{s})
		if !on {
			return false, nil
		}
		s.limit = max(int64(until), next+1)
	}
	return true, ctx.Err()
}

// Look is a view of a run between two events.
type Look struct{ sim *sim }

// Events returns the number of events so far.
func (l *Look) Events() uint64 { return l.sim.events }

// PortNow is a port's state at an instant.
type PortNow struct {
	Port
	Waiting int  // frames
	Sending bool // whether a frame is on the wire
}

// Ports returns the ports as in a Result, at an instant from the latest event to the next.
func (l *Look) Ports(at olaf.Time) []PortNow {
	s := l.sim
	ports := make([]PortNow, len(s.switches))
	for i := 1; i < len(s.switches); i++ {
		w, p := &s.wires[s.switches[i].up], &ports[i]
		p.Port = w.portAt(int64(at), max(w.Free-int64(at), 0)) // queued frames leave without a gap
		p.Sending = w.Free > int64(at)
		if w.Line == nil {
			continue
		}
		p.Waiting = w.Line.Waiting(int64(at))
		p.Left -= uint64(p.Waiting)
	}
	return ports
}
