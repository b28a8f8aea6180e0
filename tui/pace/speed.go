// Package pace runs a simulation at a pace that the user chooses, records its history, and provides the parts of a
// dashboard that all such runs share. It does not depend on the simulation, which only has to call it between events,
// as described for netsim.Watcher.
package pace

import (
	"math"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/num"
)

// Clock is the clock of the person who watches a run.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Speed is the amount of simulated time per viewing time. It is above 0.
type Speed float64

// Full is the speed at which the run is as fast as the machine allows.
var Full = Speed(math.Inf(1))

// The range of speeds that keys select; anything above it is Full.
const (
	slowest Speed = 1e-9
	fastest Speed = 1e6
)

// AboutAMinute returns the fastest selectable speed at which a run takes at least a minute.
func AboutAMinute(run olaf.Duration) Speed { return Speed(run.NS() / 60e9 * 1.00001).Slower() }

var steps = [...]float64{1, 2, 5}

// nthSpeed returns the selectable speed with index i. Index 0 is speed 1.
func nthSpeed(i int) Speed {
	decade := int(math.Floor(float64(i) / float64(len(steps))))
	return Speed(steps[i-decade*len(steps)] * math.Pow10(decade))
}

// Faster returns the next selectable speed above s.
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

// Slower returns the next selectable speed below s.
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

// Meter measures the speed of a run over the last few seconds.
type Meter struct {
	marks []mark
	pace  Pace
}

type mark struct {
	wall time.Time
	sim  olaf.Time
}

const meterSpan = 2 * time.Second

// Note records the position of the run. If the pace has changed, it starts a new measurement.
func (s *Meter) Note(wall time.Time, sim olaf.Time, p Pace) {
	if p != s.pace {
		*s = Meter{pace: p}
	}
	if n := len(s.marks); n > 0 && s.marks[n-1].sim == sim && !p.Paused {
		return // nothing changed or the run has ended: keep the last speed
	}
	marks := append(slices.Clone(s.marks), mark{wall, sim})
	for len(marks) > 2 && wall.Sub(marks[0].wall) > meterSpan {
		marks = marks[1:]
	}
	s.marks = marks
}

// Rate returns the measured speed, or false if there are too few measurements.
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

// Text returns the text for a pace. At full speed, it includes the measured speed.
func (s *Meter) Text(p Pace) string {
	if p.Speed != Full {
		return num.FormatSpeed(float64(p.Speed))
	}
	if now, known := s.Rate(); known {
		return "full speed, " + num.FormatSpeed(float64(now))
	}
	return "full speed"
}

// TimeLeft returns the time that part of a run takes at the measured speed. It is negative if unknown.
func (s *Meter) TimeLeft(of olaf.Duration) time.Duration {
	const ever = 1e9 // in seconds; more does not fit into a time.Duration and means never
	speed, known := s.Rate()
	seconds := of.Seconds() / float64(speed)
	if !known || !(seconds < ever) {
		return -1
	}
	return time.Duration(seconds * float64(time.Second))
}

// Slower reduces the pace. If the run is at full speed, it starts from the measured speed.
func (p *Pace) Slower(seen *Meter) {
	if now, known := seen.Rate(); p.Speed == Full && known {
		p.Speed = now
	}
	p.Speed = p.Speed.Slower()
}
