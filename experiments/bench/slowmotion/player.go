package slowmotion

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/pktgen"
)

// Speed is how much device time passes in a second of wall time; 0 is as fast as possible.
type Speed olaf.Duration

// AsFastAsPossible lets a session run without pacing.
const AsFastAsPossible Speed = 0

// RealTime is a second a second: what a card does.
const RealTime = Speed(olaf.Second)

// Speeds are the steps of faster and slower, slowest first; AsFastAsPossible follows the last one.
func Speeds() []Speed {
	var out []Speed
	for decade := 100 * olaf.Nanosecond; decade < olaf.Second; decade *= 10 {
		out = append(out, Speed(decade), Speed(2*decade), Speed(5*decade))
	}
	return append(out, RealTime)
}

// String says what a second of watching shows.
func (s Speed) String() string {
	switch s {
	case AsFastAsPossible:
		return "max"
	case RealTime:
		return "real time"
	}
	return olaf.Duration(s).String() + "/s"
}

// Faster is the next step up.
func (s Speed) Faster() Speed {
	for _, step := range Speeds() {
		if s != AsFastAsPossible && step > s {
			return step
		}
	}
	return AsFastAsPossible
}

// Slower is the next step down.
func (s Speed) Slower() Speed {
	steps := Speeds()
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

// Command is what a user asks of a running session. The types below are all there are.
type Command interface{ live() }

type (
	// Pause holds time, or lets it go on.
	Pause struct{ On bool }
	// SetSpeed changes the scale of time.
	SetSpeed struct{ Speed Speed }
	// Step goes to the next event, or back to the one before, and pauses.
	Step struct{ Back bool }
	// Seek goes to an instant.
	Seek struct{ To olaf.Time }
	// Stop ends the traffic; what is inside the queues still leaves.
	Stop struct{}
	// Watch chooses the cluster whose deliveries are shown one by one.
	Watch struct{ Cluster olaf.ClusterID }
	// Rerun starts another run: of another specification, rate or seed.
	Rerun struct {
		Spec  bench.Spec
		Rate  int
		Index int
	}
)

func (Pause) live()    {}
func (SetSpeed) live() {}
func (Step) live()     {}
func (Seek) live()     {}
func (Stop) live()     {}
func (Watch) live()    {}
func (Rerun) live()    {}

// frameInterval is how often a player moves on and publishes: 15 times a second.
const frameInterval = time.Second / 15

// busyShare bounds how long one tick may compute when there is no pacing, so that commands are obeyed at once.
const busyShare = 40 * time.Millisecond

// watchable is what a player plays: a Session, or a capture that is replayed.
type watchable interface {
	Advance(context.Context, olaf.Duration) error
	Step(context.Context) error
	StepBack(context.Context) error
	Seek(context.Context, olaf.Time) error
	Sampled() bool
	Sample(context.Context) error
	Done() bool
	Stop() error
	Watch(olaf.ClusterID)
	Snapshot() (*Snapshot, error)
	Life(queue int, update int64) (Life, bool)
	Inspect(context.Context) (*Inspection, error)
	Close() error
	// rerun is what is played afterwards, and closes this; without it, this goes on.
	rerun(context.Context, Rerun) (watchable, error)
}

// Player owns a Session, paces it by the wall clock, obeys commands, and publishes snapshots. Readers pull the
// newest snapshot and never wait; nothing that they do slows the session.
type Player struct {
	pace Pace

	mu       sync.Mutex // guards the session
	session  watchable
	state    State
	speed    Speed
	debt     olaf.Duration // device time that is due and did not make a cycle yet
	err      error
	commands chan Command
	board    atomic.Pointer[Snapshot]
}

// NewLivePlayer opens a session and stands at its start, running once Run is called unless paused is set.
func NewPlayer(ctx context.Context, plan *bench.Plan, o Options, speed Speed, paused bool, pace Pace) (*Player, error) {
	session, err := Open(ctx, plan, o)
	if err != nil {
		return nil, err
	}
	return playing(session, speed, paused, pace), nil
}

func playing(session watchable, speed Speed, paused bool, pace Pace) *Player {
	p := &Player{pace: pace, session: session, speed: speed, state: Running, commands: make(chan Command, 64)}
	if paused {
		p.state = Paused
	}
	if session.Sampled() {
		p.state = Running
		p.speed = RealTime
	}
	p.publish()
	return p
}

// Snapshot is the newest one; it never waits.
func (p *Player) Snapshot() *Snapshot { return p.board.Load() }

// Do queues a command; when sixty-four are waiting, it is dropped and false comes back. It never waits.
func (p *Player) Do(c Command) bool {
	select {
	case p.commands <- c:
		return true
	default:
		return false
	}
}

// Run moves the session on until ctx ends.
func (p *Player) Run(ctx context.Context) {
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
func (p *Player) Elapse(ctx context.Context, wall time.Duration) {
	p.guarded(func() error {
		if p.session.Sampled() {
			return p.session.Sample(ctx)
		}
		if p.state != Running {
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
func (p *Player) forward(ctx context.Context, d olaf.Duration) error {
	for d > 0 && !p.session.Done() {
		step := min(d, bench.WatchStep)
		if err := p.session.Advance(ctx, step); err != nil {
			return err
		}
		d -= step
	}
	return nil
}

func (p *Player) rush(ctx context.Context) error {
	for begun := p.pace.Now(); !p.session.Done() && p.pace.Now().Sub(begun) < busyShare; {
		if err := p.session.Advance(ctx, 10*olaf.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

// Obey carries out one command, and publishes.
func (p *Player) Obey(ctx context.Context, c Command) {
	p.guarded(func() error {
		p.err = nil // what was wrong is shown until the next command
		if p.session.Sampled() && !fitsCards(c) {
			return ErrOwnTime
		}
		switch c := c.(type) {
		case Stop:
			return p.session.Stop()
		case Pause:
			p.hold(c.On)
		case SetSpeed:
			p.speed = c.Speed
		case Step:
			p.hold(true)
			if c.Back {
				return p.session.StepBack(ctx)
			}
			return p.session.Step(ctx)
		case Seek:
			return p.session.Seek(ctx, c.To)
		case Watch:
			p.session.Watch(c.Cluster)
		case Rerun:
			return p.rerun(ctx, c)
		}
		return nil
	})
}

// fitsCards says that a command makes sense where time passes by itself.
func fitsCards(c Command) bool {
	switch c.(type) {
	case Watch, Rerun, Stop:
		return true
	}
	return false
}

func (p *Player) hold(on bool) {
	p.state = Running
	if on {
		p.state = Paused
	}
}

// rerun replaces the session by one of another plan; when that cannot be opened, the old one stays.
func (p *Player) rerun(ctx context.Context, c Rerun) error {
	session, err := p.session.rerun(ctx, c)
	if session != nil {
		p.session, p.state, p.debt = session, Running, 0
	}
	return err
}

// guarded runs f on the session and publishes what it led to. A panic becomes an error, so that the device is given back.
func (p *Player) guarded(f func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			p.err = fmt.Errorf("%w: internal error: %v", bench.ErrRun, r)
			p.fail()
		}
	}()
	if err := f(); err != nil {
		p.err = err
		if !recoverable(err) {
			p.state = Failed
		}
	}
	p.publish()
}

// recoverable errors leave the session as it was.
func recoverable(err error) bool {
	return errors.Is(err, bench.ErrSpec) || errors.Is(err, ErrOwnTime) || errors.Is(err, pktgen.ErrState) || errors.Is(err, context.Canceled)
}

func (p *Player) publish() {
	s, err := p.session.Snapshot()
	if err != nil {
		p.err = err
		p.fail()
		return
	}
	s.Speed, s.Err = p.speed, p.err
	if s.State != Done {
		s.State = p.state
	}
	p.board.Store(s)
}

// fail publishes the newest snapshot again, marked as failed.
func (p *Player) fail() {
	p.state = Failed
	s := new(Snapshot)
	if last := p.board.Load(); last != nil {
		*s = *last
	}
	s.State, s.Err = Failed, p.err
	p.board.Store(s)
}

// Life tells what became of an update.
func (p *Player) Life(queue int, update int64) (Life, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Life(queue, update)
}

// Inspect reads tables, registers and devices.
func (p *Player) Inspect(ctx context.Context) (*Inspection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Inspect(ctx)
}

// Close stops generators and queues and gives the device back.
func (p *Player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Close()
}
