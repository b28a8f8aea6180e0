package experiments

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen"
)

// LiveSpeed is how much device time passes in a second of wall time; 0 is as fast as possible.
type LiveSpeed olaf.Duration

// AsFastAsPossible lets a session run without pacing.
const AsFastAsPossible LiveSpeed = 0

// RealTime is a second a second: what a card does.
const RealTime = LiveSpeed(olaf.Second)

// LiveSpeeds are the steps of faster and slower, slowest first; AsFastAsPossible follows the last one.
func LiveSpeeds() []LiveSpeed {
	var out []LiveSpeed
	for decade := 100 * olaf.Nanosecond; decade < olaf.Second; decade *= 10 {
		out = append(out, LiveSpeed(decade), LiveSpeed(2*decade), LiveSpeed(5*decade))
	}
	return append(out, RealTime)
}

// String says what a second of watching shows.
func (s LiveSpeed) String() string {
	switch s {
	case AsFastAsPossible:
		return "max"
	case RealTime:
		return "real time"
	}
	return olaf.Duration(s).String() + "/s"
}

// Faster is the next step up.
func (s LiveSpeed) Faster() LiveSpeed {
	for _, step := range LiveSpeeds() {
		if s != AsFastAsPossible && step > s {
			return step
		}
	}
	return AsFastAsPossible
}

// Slower is the next step down.
func (s LiveSpeed) Slower() LiveSpeed {
	steps := LiveSpeeds()
	for i := len(steps) - 1; i >= 0; i-- {
		if s == AsFastAsPossible || steps[i] < s {
			return steps[i]
		}
	}
	return steps[0]
}

// Pace is the wall clock of a player.
type Pace interface {
	Now() time.Time
	// Tick delivers at the given interval until stop is called.
	Tick(time.Duration) (ticks <-chan time.Time, stop func())
}

// LiveCommand is what a user asks of a running session. The types below are all there are.
type LiveCommand interface{ live() }

type (
	// LivePause holds time, or lets it go on.
	LivePause struct{ On bool }
	// LiveSetSpeed changes the scale of time.
	LiveSetSpeed struct{ Speed LiveSpeed }
	// LiveStep goes to the next event, or back to the one before, and pauses.
	LiveStep struct{ Back bool }
	// LiveSeek goes to an instant.
	LiveSeek struct{ To olaf.Time }
	// LiveStop ends the traffic; what is inside the queues still leaves.
	LiveStop struct{}
	// LiveWatch chooses the cluster whose deliveries are shown one by one.
	LiveWatch struct{ Cluster olaf.ClusterID }
	// LiveRerun starts another run: of another specification, rate or seed.
	LiveRerun struct {
		Spec  Spec
		Rate  int
		Index int
	}
)

func (LivePause) live()    {}
func (LiveSetSpeed) live() {}
func (LiveStep) live()     {}
func (LiveSeek) live()     {}
func (LiveStop) live()     {}
func (LiveWatch) live()    {}
func (LiveRerun) live()    {}

// frameInterval is how often a player moves on and publishes: 15 times a second.
const frameInterval = time.Second / 15

// busyShare bounds how long one tick may compute when there is no pacing, so that commands are obeyed at once.
const busyShare = 40 * time.Millisecond

// LivePlayer owns a Live session, paces it by the wall clock, obeys commands, and publishes snapshots. Readers pull the
// newest snapshot and never wait; nothing that they do slows the session.
type LivePlayer struct {
	pace Pace

	mu       sync.Mutex // guards the session
	session  *Live
	state    LiveState
	speed    LiveSpeed
	debt     olaf.Duration // device time that is due and did not make a cycle yet
	err      error
	commands chan LiveCommand
	board    atomic.Pointer[LiveSnapshot]
}

// NewLivePlayer opens a session and stands at its start, running once Run is called unless paused is set.
func NewLivePlayer(ctx context.Context, plan *Plan, o LiveOptions, speed LiveSpeed, paused bool, pace Pace) (*LivePlayer, error) {
	session, err := OpenLive(ctx, plan, o)
	if err != nil {
		return nil, err
	}
	p := &LivePlayer{pace: pace, session: session, speed: speed, state: LiveRunning, commands: make(chan LiveCommand, 64)}
	if paused {
		p.state = LivePaused
	}
	if session.Sampled() {
		p.state = LiveRunning
		p.speed = RealTime
	}
	p.publish()
	return p, nil
}

// Snapshot is the newest one; it never waits.
func (p *LivePlayer) Snapshot() *LiveSnapshot { return p.board.Load() }

// Do queues a command; when sixty-four are waiting, it is dropped and false comes back. It never waits.
func (p *LivePlayer) Do(c LiveCommand) bool {
	select {
	case p.commands <- c:
		return true
	default:
		return false
	}
}

// Run moves the session on until ctx ends.
func (p *LivePlayer) Run(ctx context.Context) {
	ticks, stop := p.pace.Tick(frameInterval)
	defer stop()
	last := p.pace.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-p.commands:
			p.Obey(ctx, c)
		case <-ticks:
			now := p.pace.Now()
			p.Elapse(ctx, now.Sub(last))
			last = now
		}
	}
}

// Elapse lets the device time pass that belongs to a span of wall time, and publishes.
func (p *LivePlayer) Elapse(ctx context.Context, wall time.Duration) {
	p.guarded(func() error {
		if p.session.Sampled() {
			return p.session.Sample(ctx)
		}
		if p.state != LiveRunning {
			return nil
		}
		if p.speed == AsFastAsPossible {
			return p.rush(ctx)
		}
		// A late tick does not make the next frame jump by more than a quarter of a second of watching.
		wall = min(max(wall, 0), 250*time.Millisecond)
		p.debt += olaf.Duration(float64(p.speed) * wall.Seconds())
		whole := p.debt / olaf.Cycle * olaf.Cycle
		p.debt -= whole
		return p.forward(ctx, whole)
	})
}

// forward advances in steps, so that a context that ends is noticed.
func (p *LivePlayer) forward(ctx context.Context, d olaf.Duration) error {
	for d > 0 && !p.session.Done() {
		step := min(d, watchStep)
		if err := p.session.Advance(ctx, step); err != nil {
			return err
		}
		d -= step
	}
	return nil
}

func (p *LivePlayer) rush(ctx context.Context) error {
	for begun := p.pace.Now(); !p.session.Done() && p.pace.Now().Sub(begun) < busyShare; {
		if err := p.session.Advance(ctx, 10*olaf.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

// Obey carries out one command, and publishes.
func (p *LivePlayer) Obey(ctx context.Context, c LiveCommand) {
	p.guarded(func() error {
		p.err = nil // what was wrong is shown until the next command
		if p.session.Sampled() && !fitsCards(c) {
			return ErrOwnTime
		}
		switch c := c.(type) {
		case LiveStop:
			return p.session.Stop()
		case LivePause:
			p.hold(c.On)
		case LiveSetSpeed:
			p.speed = c.Speed
		case LiveStep:
			p.hold(true)
			if c.Back {
				return p.session.StepBack(ctx)
			}
			return p.session.Step(ctx)
		case LiveSeek:
			return p.session.Seek(ctx, c.To)
		case LiveWatch:
			p.session.Watch(c.Cluster)
		case LiveRerun:
			return p.rerun(ctx, c)
		}
		return nil
	})
}

// fitsCards says that a command makes sense where time passes by itself.
func fitsCards(c LiveCommand) bool {
	switch c.(type) {
	case LiveWatch, LiveRerun, LiveStop:
		return true
	}
	return false
}

func (p *LivePlayer) hold(on bool) {
	p.state = LiveRunning
	if on {
		p.state = LivePaused
	}
}

// rerun replaces the session by one of another plan; when that cannot be opened, the old one stays.
func (p *LivePlayer) rerun(ctx context.Context, c LiveRerun) error {
	plan, err := NewPlan(c.Spec)
	if err != nil {
		return err
	}
	o := p.session.options
	o.Rate, o.Index = c.Rate, c.Index
	if p.session.sampled { // one card, one session
		if err := p.session.Close(); err != nil {
			return err
		}
	}
	session, err := OpenLive(ctx, plan, o)
	if err != nil {
		return err
	}
	old := p.session
	p.session, p.state, p.debt = session, LiveRunning, 0
	if old.sampled {
		return nil
	}
	return old.Close()
}

// guarded runs f on the session and publishes what it led to. A panic becomes an error, so that the device is given back.
func (p *LivePlayer) guarded(f func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			p.err = fmt.Errorf("%w: internal error: %v", ErrRun, r)
			p.fail()
		}
	}()
	if err := f(); err != nil {
		p.err = err
		if !recoverable(err) {
			p.state = LiveFailed
		}
	}
	p.publish()
}

// recoverable errors leave the session as it was.
func recoverable(err error) bool {
	return errors.Is(err, ErrSpec) || errors.Is(err, ErrOwnTime) || errors.Is(err, pktgen.ErrState) || errors.Is(err, context.Canceled)
}

func (p *LivePlayer) publish() {
	s, err := p.session.Snapshot()
	if err != nil {
		p.err = err
		p.fail()
		return
	}
	s.Speed, s.Err = p.speed, p.err
	if s.State != LiveDone {
		s.State = p.state
	}
	p.board.Store(s)
}

// fail publishes the newest snapshot again, marked as failed.
func (p *LivePlayer) fail() {
	p.state = LiveFailed
	s := new(LiveSnapshot)
	if last := p.board.Load(); last != nil {
		*s = *last
	}
	s.State, s.Err = LiveFailed, p.err
	p.board.Store(s)
}

// Life tells what became of an update.
func (p *LivePlayer) Life(queue int, update int64) (Life, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Life(queue, update)
}

// Inspect reads tables, registers and devices.
func (p *LivePlayer) Inspect(ctx context.Context) (*Inspection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Inspect(ctx)
}

// Close stops generators and queues and gives the device back.
func (p *LivePlayer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Close()
}
