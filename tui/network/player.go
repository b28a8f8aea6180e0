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

	past atomic.Pointer[History]

	mu      sync.Mutex
	pace    Pace
	changes int
	stopped bool
	goal    olaf.Time // goes there as fast as it can
	steps   int       // events to go on by while it is paused

	// The run's own: since which instants it keeps the pace of which change.
	kept int
	wall time.Time
	from olaf.Time
	now  olaf.Time
	log  chronicle
}

// NewPlayer makes a player for a run with an end.
func NewPlayer(end olaf.Time, p Pace, c Clock) *Player {
	player := &Player{clock: c, end: end, wake: make(chan struct{}, 1), pace: p, changes: 1}
	player.log = newChronicle(end)
	player.past.Store(player.log.history)
	player.wanted.Store(true)
	return player
}

// Snapshot is the newest picture, nil before the first, and asks for the next.
func (p *Player) Snapshot() *netsim.Snapshot {
	p.wanted.Store(true)
	p.rouse()
	return p.latest.Load()
}

// History is what is remembered of the run.
func (p *Player) History() *History { return p.past.Load() }

// Step lets a paused run go on to its next event.
func (p *Player) Step() {
	p.mu.Lock()
	p.steps++
	p.mu.Unlock()
	p.rouse()
}

// Advance lets the run go on to an instant as fast as it can, and then at its pace again.
func (p *Player) Advance(to olaf.Time) {
	p.mu.Lock()
	p.goal = max(p.goal, to)
	p.changes++
	p.mu.Unlock()
	p.rouse()
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

// wish is what people want of the run at a moment.
type wish struct {
	pace    Pace
	changes int
	stopped bool
	goal    olaf.Time
	step    bool
}

// ask takes what is wanted, and a step with it.
func (p *Player) ask() wish {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := wish{p.pace, p.changes, p.stopped, p.goal, p.steps > 0}
	p.steps = max(p.steps-1, 0)
	return w
}

// Before implements netsim.Watcher.
func (p *Player) Before(last, next olaf.Time, look func(at olaf.Time) *netsim.Snapshot) (until olaf.Time, on bool) {
	for {
		wall, w := p.clock.Now(), p.ask()
		p.now = min(max(p.now, last), next)
		if w.changes != p.kept {
			p.kept, p.wall, p.from = w.changes, wall, p.now
		}
		due := p.due(&w, wall, next)
		p.remember(min(due, next), look)
		p.now = min(max(p.now, due), next)
		if p.wanted.Swap(false) || w.stopped || p.now >= p.end {
			p.latest.Store(look(p.now))
		}
		switch {
		case w.stopped:
			return p.now, false
		case w.step && p.now == next:
			return next, true
		case p.now == next && w.goal > next:
			return min(w.goal, max(p.log.next, next)), true
		case p.now == next && !w.pace.Paused:
			return max(min(due+w.pace.span(ahead), p.log.next), next), true
		}
		p.wait(w.pace, next)
	}
}

// remember takes the instants of the history up to one that the run has come to.
func (p *Player) remember(to olaf.Time, look func(at olaf.Time) *netsim.Snapshot) {
	if p.log.next > to {
		return
	}
	for p.log.next <= to {
		p.log.take(look(p.log.next))
	}
	p.past.Store(p.log.history)
}

// due is the instant that the run should have reached.
func (p *Player) due(w *wish, wall time.Time, next olaf.Time) olaf.Time {
	switch {
	case w.step:
		return next
	case p.now < w.goal:
		p.wall, p.from = wall, min(w.goal, next)
		return p.from
	case w.pace.Paused:
		return p.now
	case w.pace.Speed >= fastest*10:
		return next
	}
	due := p.from + w.pace.span(wall.Sub(p.wall))
	if due > next+w.pace.span(behind) {
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
