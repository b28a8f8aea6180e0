package closedloop

import (
	"context"

	"github.com/olafctl/olaf"
)

// The longest a run goes on without a pause, in events: seldom unless somebody follows.
const (
	seldom = 1 << 18
	often  = 1 << 14
)

// Follow is asked between two events: before the first, whenever the instant of its latest answer is reached, every some
// thousand events, and once when the run is over, with its end or its limit as next. last and next are the instants of the latest
// event and of the next one; look is valid during the call. It says until when it need not be asked again, and whether the run
// goes on at all.
type Follow func(last, next olaf.Time, look *Look) (until olaf.Time, on bool)

// pause is what happens between events now and then, before the one at the instant next; on says to go on with that.
func (s *sim) pause(ctx context.Context, next int64) (on bool, err error) {
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

// Look is what can be seen of a run between two events.
type Look struct{ sim *sim }

// Events is how many happened.
func (l *Look) Events() uint64 { return l.sim.events }

// PortNow is a port at an instant.
type PortNow struct {
	Port
	Waiting int  // frames
	Sending bool // one
}

// Ports are those of a Result, at an instant from the latest event to the next.
func (l *Look) Ports(at olaf.Time) []PortNow {
	s := l.sim
	ports := make([]PortNow, len(s.switches))
	for i := 1; i < len(s.switches); i++ {
		w, p := &s.wires[s.switches[i].up], &ports[i]
		p.Port = w.tell(int64(at), max(w.Free-int64(at), 0)) // what was handed over leaves without a gap
		p.Sending = w.Free > int64(at)
		if w.Line == nil {
			continue
		}
		p.Waiting = w.Line.Waiting(int64(at))
		p.Left -= uint64(p.Waiting)
	}
	return ports
}
