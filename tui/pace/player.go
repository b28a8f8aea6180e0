package pace

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
)

// Log records snapshots of type S at instants that the Log chooses.
type Log[S any] interface {
	Next() olaf.Time // the first instant that is not recorded yet
	Take(picture *S) // records the snapshot at that instant
}

// Pace is the pace that the user has chosen for a run.
type Pace struct {
	Speed  Speed
	Paused bool
}

// Player runs a simulation at a chosen pace and publishes snapshots. The simulation calls Before between its events.
// All other methods are called by other goroutines, and none of them blocks.
type Player[S any] struct {
	clock  Clock
	end    olaf.Time
	latest atomic.Pointer[S]
	wanted atomic.Bool
	wake   chan struct{}

	mu      sync.Mutex
	pace    Pace
	changes int
	stopped bool
	goal    olaf.Time // the run advances to this instant at full speed
	steps   int       // number of events to process while paused

	// Used only by the run: the number of the change whose pace is applied, and the time since when.
	kept int
	wall time.Time
	from olaf.Time
	now  olaf.Time
	log  Log[S]
}

// NewPlayer returns a player for a run that ends at end.
func NewPlayer[S any](end olaf.Time, p Pace, c Clock, log Log[S]) *Player[S] {
	player := &Player[S]{clock: c, end: end, wake: make(chan struct{}, 1), pace: p, changes: 1, log: log}
	player.wanted.Store(true)
	return player
}

// Snapshot returns the newest snapshot, or nil if there is none yet, and requests another one.
func (p *Player[S]) Snapshot() *S {
	p.wanted.Store(true)
	p.wakeUp()
	return p.latest.Load()
}

// Step makes a paused run process its next event.
func (p *Player[S]) Step() {
	p.mu.Lock()
	p.steps++
	p.mu.Unlock()
	p.wakeUp()
}

// Advance makes the run proceed to an instant at full speed and then continue at its pace.
func (p *Player[S]) Advance(to olaf.Time) {
	p.mu.Lock()
	p.goal = max(p.goal, to)
	p.changes++
	p.mu.Unlock()
	p.wakeUp()
}

// Pace returns the chosen pace.
func (p *Player[S]) Pace() Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pace
}

// SetPace changes the pace.
func (p *Player[S]) SetPace(pace Pace) {
	p.mu.Lock()
	p.pace = pace
	p.changes++
	p.mu.Unlock()
	p.wakeUp()
}

// Stop ends the run at its current instant.
func (p *Player[S]) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.wakeUp()
}

// StopWith stops the run when ctx ends.
func (p *Player[S]) StopWith(ctx context.Context) { context.AfterFunc(ctx, p.Stop) }

func (p *Player[S]) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

const (
	behind = 250 * time.Millisecond // a run that is later than this does not try to catch up
	ahead  = 2 * time.Millisecond   // how far ahead a run may proceed at once
	nap    = time.Second            // the longest wait between two looks at the clock
)

// wish contains the user's requests to the run at one instant.
type wish struct {
	pace    Pace
	changes int
	stopped bool
	goal    olaf.Time
	step    bool
}

// takeWish returns the current requests. A request for a single step is returned only once.
func (p *Player[S]) takeWish() wish {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := wish{p.pace, p.changes, p.stopped, p.goal, p.steps > 0}
	p.steps = max(p.steps-1, 0)
	return w
}

// Before returns the instant to which the run may proceed before its next event, and whether it should continue at all.
// See netsim.Watcher for the meaning of the arguments.
func (p *Player[S]) Before(last, next olaf.Time, look func(at olaf.Time) *S) (until olaf.Time, on bool) {
	for {
		wall, w := p.clock.Now(), p.takeWish()
		p.now = min(max(p.now, last), next)
		if w.changes != p.kept {
			p.kept, p.wall, p.from = w.changes, wall, p.now
		}
		due := p.dueInstant(&w, wall, next)
		p.Remember(min(due, next), look)
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
			return min(w.goal, max(p.log.Next(), next)), true
		case p.now == next && !w.pace.Paused:
			return max(min(due+w.pace.span(ahead), p.log.Next()), next), true
		}
		p.wait(w.pace, next)
	}
}

// Remember records snapshots at the log's instants up to the time to.
func (p *Player[S]) Remember(to olaf.Time, look func(at olaf.Time) *S) {
	for p.log.Next() <= to {
		p.log.Take(look(p.log.Next()))
	}
}

// dueInstant returns the simulated time that the run should have reached at the time wall.
func (p *Player[S]) dueInstant(w *wish, wall time.Time, next olaf.Time) olaf.Time {
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

// span returns how much simulated time passes during d at this pace.
func (p Pace) span(d time.Duration) olaf.Time {
	const ever = olaf.Time(1) << 61
	return olaf.Time(min(float64(p.Speed)*d.Seconds()*float64(olaf.Second), float64(ever)))
}

// wait blocks until the run may proceed to next or until a request arrives.
func (p *Player[S]) wait(pace Pace, next olaf.Time) {
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
