package closedloop

import (
	"context"

	"github.com/olafctl/olaf"
)

// seldom and often are the largest numbers of events between pauses: seldom without Follow, often with it.
const (
	seldom = 1 << 18
	often  = 1 << 14
)

// Follow is called between events: before the first event, whenever the instant that it last returned is reached, every
// few thousand events, and at the end. last and next are the times of the latest and the next event; at the end, next
// is the end or the limit of the run. look is valid during the call. Follow returns the time at which it must be called
// again, and whether the run continues.
type Follow func(last, next olaf.Time, look *Look) (until olaf.Time, on bool)

// pauseRun calls Follow and checks the context before the event at next. It returns whether the run continues.
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

// Look gives access to the state of a run between two events.
type Look struct{ sim *sim }

// Events returns the number of events that were simulated so far.
func (l *Look) Events() uint64 { return l.sim.events }

// PortNow describes a port at one instant.
type PortNow struct {
	Port
	Waiting int  // waiting frames
	Sending bool // whether a frame is on the wire
}

// Ports returns the ports in the order of a Result. The instant must be between the latest and the next event.
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
