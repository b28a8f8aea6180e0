package network

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
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
func AboutAMinute(run olaf.Duration) Speed { return Speed(run.NS() / 60e9 * 1.00001).slower() }

var steps = [...]float64{1, 2, 5}

// nthSpeed is the i-th speed that keys reach; 0 is 1.
func nthSpeed(i int) Speed {
	decade := int(math.Floor(float64(i) / float64(len(steps))))
	return Speed(steps[i-decade*len(steps)] * math.Pow10(decade))
}

// faster is the next speed above s.
func (s Speed) faster() Speed {
	i := int(math.Floor(math.Log10(float64(max(s, slowest))))) * len(steps)
	for nthSpeed(i) <= s*1.000001 {
		i++
	}
	if nthSpeed(i) > fastest {
		return Full
	}
	return max(nthSpeed(i), slowest)
}

// slower is the next speed below s.
func (s Speed) slower() Speed {
	if !(s > slowest) {
		return slowest
	}
	i := int(math.Floor(math.Log10(float64(min(max(s, slowest), 10*fastest)))))*len(steps) + len(steps)
	for nthSpeed(i)*1.000001 >= s {
		i--
	}
	return min(max(nthSpeed(i), slowest), fastest)
}

// Pace is what a person asked of a run.
type Pace struct {
	Speed  Speed
	Paused bool
}

// Player holds a run to a pace, and hands out pictures of it. It is the netsim.Watcher of one run; all other methods are
// for other goroutines, and none of those waits.
type Player struct {
	clock  Clock
	end    olaf.Time
	latest atomic.Pointer[netsim.Snapshot]
	wanted atomic.Bool
	wake   chan struct{}

	mu      sync.Mutex
	pace    Pace
	changes int
	stopped bool

	// The run's own: since which instants it keeps the pace of which change.
	kept int
	wall time.Time
	from olaf.Time
	now  olaf.Time
}

// NewPlayer makes a player for a run with an end.
func NewPlayer(end olaf.Time, p Pace, c Clock) *Player {
	player := &Player{clock: c, end: end, wake: make(chan struct{}, 1), pace: p, changes: 1}
	player.wanted.Store(true)
	return player
}

// Snapshot is the newest picture, nil before the first, and asks for the next.
func (p *Player) Snapshot() *netsim.Snapshot {
	p.wanted.Store(true)
	p.rouse()
	return p.latest.Load()
}

// Pace is what holds.
func (p *Player) Pace() Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pace
}

// SetPace changes it.
func (p *Player) SetPace(pace Pace) {
	p.mu.Lock()
	p.pace = pace
	p.changes++
	p.mu.Unlock()
	p.rouse()
}

// Stop ends the run where it stands.
func (p *Player) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.rouse()
}

// StopWith stops the run when ctx ends.
func (p *Player) StopWith(ctx context.Context) { context.AfterFunc(ctx, p.Stop) }

func (p *Player) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

const (
	behind = 250 * time.Millisecond // a run that is later than this does not try to catch up
	ahead  = 2 * time.Millisecond   // how long a run is let go at once
	nap    = time.Second            // the longest wait for a clock
)

// Before implements netsim.Watcher.
func (p *Player) Before(last, next olaf.Time, look func(at olaf.Time) *netsim.Snapshot) (until olaf.Time, on bool) {
	for {
		wall := p.clock.Now()
		p.mu.Lock()
		pace, changes, stopped := p.pace, p.changes, p.stopped
		p.mu.Unlock()
		p.now = min(max(p.now, last), next)
		if changes != p.kept {
			p.kept, p.wall, p.from = changes, wall, p.now
		}
		due := p.due(pace, wall, next)
		p.now = min(max(p.now, due), next)
		if p.wanted.Swap(false) || stopped || p.now >= p.end {
			p.latest.Store(look(p.now))
		}
		switch {
		case stopped:
			return p.now, false
		case p.now == next && !pace.Paused:
			return max(due+pace.span(ahead), next), true
		}
		p.wait(pace, next)
	}
}

// due is the instant that the run should have reached.
func (p *Player) due(pace Pace, wall time.Time, next olaf.Time) olaf.Time {
	switch {
	case pace.Paused:
		return p.now
	case pace.Speed >= fastest*10:
		return next
	}
	due := p.from + pace.span(wall.Sub(p.wall))
	if due > next+pace.span(behind) {
		p.wall, p.from, due = wall, next, next
	}
	return due
}

// span is the simulated time that passes during d.
func (p Pace) span(d time.Duration) olaf.Time {
	const ever = olaf.Time(1) << 61
	return olaf.Time(min(float64(p.Speed)*d.Seconds()*float64(olaf.Second), float64(ever)))
}

// wait waits until the run may go on to next or something else is asked.
func (p *Player) wait(pace Pace, next olaf.Time) {
	if pace.Paused {
		<-p.wake
		return
	}
	seconds := float64(next-p.now) / float64(olaf.Second) / float64(pace.Speed)
	select {
	case <-p.wake:
	case <-p.clock.After(min(time.Duration(min(seconds, 10)*1e9)+time.Microsecond, nap)):
	}
}
