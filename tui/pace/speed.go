// Package pace holds a simulated run to the pace that a person chooses, remembers what it was like, and is the part of its
// dashboard that all such runs share. It knows nothing of what is simulated but that it asks between its events, as
// netsim.Watcher says.
package pace

import (
	"math"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/num"
)

// Clock is the time of the person who watches.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Speed is simulated time per time of watching, above 0.
type Speed float64

// Full is as fast as the machine can.
var Full = Speed(math.Inf(1))

// The range of speeds that keys reach; above it is Full.
const (
	slowest Speed = 1e-9
	fastest Speed = 1e6
)

// AboutAMinute is the fastest speed that keys reach at which a run takes a minute or more.
func AboutAMinute(run olaf.Duration) Speed { return Speed(run.NS() / 60e9 * 1.00001).Slower() }

var steps = [...]float64{1, 2, 5}

// nthSpeed is the i-th speed that keys reach; 0 is 1.
func nthSpeed(i int) Speed {
	decade := int(math.Floor(float64(i) / float64(len(steps))))
	return Speed(steps[i-decade*len(steps)] * math.Pow10(decade))
}

// Faster is the next speed above s.
func (s Speed) Faster() Speed {
	i := int(math.Floor(math.Log10(float64(max(s, slowest))))) * len(steps)
	for nthSpeed(i) <= s*1.000001 {
		i++
	}
	if nthSpeed(i) > fastest {
		return Full
	}
	return max(nthSpeed(i), slowest)
}

// Slower is the next speed below s.
func (s Speed) Slower() Speed {
	if !(s > slowest) {
		return slowest
	}
	i := int(math.Floor(math.Log10(float64(min(max(s, slowest), 10*fastest)))))*len(steps) + len(steps)
	for nthSpeed(i)*1.000001 >= s {
		i--
	}
	return min(max(nthSpeed(i), slowest), fastest)
}

// Meter measures the speed of a run over the last seconds.
type Meter struct {
	marks []mark
	pace  Pace
}

type mark struct {
	wall time.Time
	sim  olaf.Time
}

const meterSpan = 2 * time.Second

// Note takes where the run is; a change of pace begins anew.
func (s *Meter) Note(wall time.Time, sim olaf.Time, p Pace) {
	if p != s.pace {
		*s = Meter{pace: p}
	}
	if n := len(s.marks); n > 0 && s.marks[n-1].sim == sim && !p.Paused {
		return // nothing new yet, or over: the speed that was stays
	}
	marks := append(slices.Clone(s.marks), mark{wall, sim})
	for len(marks) > 2 && wall.Sub(marks[0].wall) > meterSpan {
		marks = marks[1:]
	}
	s.marks = marks
}

// Rate is the speed, if enough was seen of it.
func (s *Meter) Rate() (Speed, bool) {
	if len(s.marks) < 2 || s.pace.Paused {
		return 0, false
	}
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	seconds := last.wall.Sub(first.wall).Seconds()
	if seconds <= 0 || last.sim <= first.sim {
		return 0, false
	}
	return Speed(float64(last.sim-first.sim) / float64(olaf.Second) / seconds), true
}

// Text is a pace; of full speed, what comes of it.
func (s *Meter) Text(p Pace) string {
	if p.Speed != Full {
		return num.Speed(float64(p.Speed))
	}
	if now, known := s.Rate(); known {
		return "full speed, " + num.Speed(float64(now))
	}
	return "full speed"
}

// Left is how long a stretch of a run takes at the speed that was seen; negative where nobody knows.
func (s *Meter) Left(of olaf.Duration) time.Duration {
	const ever = 1e9 // seconds: more is as good as for ever, and no time.Duration
	speed, known := s.Rate()
	seconds := of.Seconds() / float64(speed)
	if !known || !(seconds < ever) {
		return -1
	}
	return time.Duration(seconds * float64(time.Second))
}

// Slower makes a pace slower. At full speed it begins with what the machine can.
func (p *Pace) Slower(seen *Meter) {
	if now, known := seen.Rate(); p.Speed == Full && known {
		p.Speed = now
	}
	p.Speed = p.Speed.Slower()
}
