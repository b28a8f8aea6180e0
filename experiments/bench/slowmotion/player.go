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

// Speed is the device time that passes per second of wall time. 0 means as fast as possible.
type Speed olaf.Duration

// AsFastAsPossible is the speed of a session without pacing.
const AsFastAsPossible Speed = 0

// RealTime is the speed of a card: one second of device time per second of wall time.
const RealTime = Speed(olaf.Second)

// speedSteps returns the speeds that Faster and Slower step through, slowest first. AsFastAsPossible follows the last
// of them.
func speedSteps() []Speed {
	var out []Speed
	for decade := 100 * olaf.Nanosecond; decade < olaf.Second; decade *= 10 {
		out = append(out, Speed(decade), Speed(2*decade), Speed(5*decade))
	}
	return append(out, RealTime)
}

// String returns the speed as device time per second of wall time.
func (s Speed) String() string {
	switch s {
	case AsFastAsPossible:
		return "max"
	case RealTime:
		return "real time"
	}
	return olaf.Duration(s).String() + "/s"
}

// Faster returns the next higher speed.
func (s Speed) Faster() Speed {
	for _, step := range speedSteps() {
		if s != AsFastAsPossible && step > s {
			return step
		}
	}
	return AsFastAsPossible
}

// Slower returns the next lower speed.
func (s Speed) Slower() Speed {
	steps := speedSteps()
	for i := len(steps) - 1; i >= 0; i-- {
		if s == AsFastAsPossible || steps[i] < s {
			return steps[i]
		}
	}
	return steps[0]
}

// Pace provides the wall clock and the ticks for a Player.
type Pace interface {
	Now() time.Time
	// Tick sends at the given interval until stop is called.
	Tick(time.Duration) (ticks <-chan time.Time, stop func())
}

// Command is a user's command to a running session. Only the types below implement it.
type Command interface{ live() }

type (
	// Pause stops the session's time, or resumes it.
	Pause struct{ On bool }
	// SetSpeed changes the speed at which device time passes.
	SetSpeed struct{ Speed Speed }
	// Step advances to the next event or goes back to the previous one, and then pauses the session.
	Step struct{ Back bool }
	// Seek goes to an instant of the run.
	Seek struct{ To olaf.Time }
	// Stop ends the traffic. The queues still drain.
	Stop struct{}
	// Watch selects the cluster whose deliveries are shown individually.
	Watch struct{ Cluster olaf.ClusterID }
	// Rerun replaces the session with another run, which may have a different specification, output rate or seed.
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

// frameInterval is the interval at which a player advances its session and publishes a snapshot: a fifteenth of a
// second.
const frameInterval = time.Second / 15

// busyShare limits the work between two ticks of a session without pacing, so that commands are executed promptly.
const busyShare = 40 * time.Millisecond

// watchable is implemented by everything that a player can play: a Session and a replayed capture.
type watchable interface {
	Advance(context.Context, olaf.Duration) error
	Step(context.Context) error
	StepBack(context.Context) error
	Seek(context.Context, olaf.Time) error
	IsSampled() bool
	Sample(context.Context) error
	IsDone() bool
	Stop() error
	Watch(olaf.ClusterID)
	Snapshot() (*Snapshot, error)
	Life(queue int, update int64) (Life, bool)
	Inspect(context.Context) (*Inspection, error)
	Close() error
	// openRerun returns the replacement and closes this one; if it returns nil, this one continues.
	openRerun(context.Context, Rerun) (watchable, error)
}

// Player owns a Session. It paces the session by the wall clock, executes commands and publishes snapshots. Readers get
// the newest snapshot without waiting, so they cannot slow the session down.
type Player struct {
	pace Pace

	mu       sync.Mutex // guards the session
	session  watchable
	state    State
	speed    Speed
	debt     olaf.Duration // device time still due; less than a cycle
	err      error
	commands chan Command
	board    atomic.Pointer[Snapshot]
}

// NewPlayer opens a session at its start and returns a player for it. The session begins to run when Run is called,
// unless paused is set.
func NewPlayer(ctx context.Context, plan *bench.Plan, o Options, speed Speed, paused bool, pace Pace) (*Player, error) {
	session, err := OpenSession(ctx, plan, o)
	if err != nil {
		return nil, err
	}
	return newPlaying(session, speed, paused, pace), nil
}

func newPlaying(session watchable, speed Speed, paused bool, pace Pace) *Player {
	p := &Player{pace: pace, session: session, speed: speed, state: Running, commands: make(chan Command, 64)}
	if paused {
		p.state = Paused
	}
	if session.IsSampled() {
		p.state = Running
		p.speed = RealTime
	}
	p.publishSnapshot()
	return p
}

// Snapshot returns the newest snapshot without waiting.
func (p *Player) Snapshot() *Snapshot { return p.board.Load() }

// Do queues a command without waiting. If sixty-four commands are already queued, it drops the command and returns
// false.
func (p *Player) Do(c Command) bool {
	select {
	case p.commands <- c:
		return true
	default:
		return false
	}
}

// Run plays the session until ctx ends.
func (p *Player) Run(ctx context.Context) {
	ticks, stop := p.pace.Tick(frameInterval)
	defer stop()
	last := p.pace.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-p.commands:
			p.Execute(ctx, c)
		case <-ticks:
			now := p.pace.Now()
			p.Elapse(ctx, now.Sub(last))
			last = now
		}
	}
}

// Elapse advances the session by the device time that corresponds to a span of wall time, and publishes a snapshot.
func (p *Player) Elapse(ctx context.Context, wall time.Duration) {
	p.runGuarded(func() error {
		if p.session.IsSampled() {
			return p.session.Sample(ctx)
		}
		if p.state != Running {
			return nil
		}
		if p.speed == AsFastAsPossible {
			return p.advanceFast(ctx)
		}
		// A late tick advances by at most a quarter of a second of wall time.
		wall = min(max(wall, 0), 250*time.Millisecond)
		p.debt += olaf.Duration(float64(p.speed) * wall.Seconds())
		whole := p.debt / olaf.Cycle * olaf.Cycle
		p.debt -= whole
		return p.advanceBy(ctx, whole)
	})
}

// advanceBy advances the session by d in small steps, so that it notices when ctx ends.
func (p *Player) advanceBy(ctx context.Context, d olaf.Duration) error {
	for d > 0 && !p.session.IsDone() {
		step := min(d, bench.WatchStep)
		if err := p.session.Advance(ctx, step); err != nil {
			return err
		}
		d -= step
	}
	return nil
}

func (p *Player) advanceFast(ctx context.Context) error {
	for begun := p.pace.Now(); !p.session.IsDone() && p.pace.Now().Sub(begun) < busyShare; {
		if err := p.session.Advance(ctx, 10*olaf.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

// Execute executes one command and publishes a snapshot.
func (p *Player) Execute(ctx context.Context, c Command) {
	p.runGuarded(func() error {
		p.err = nil // an error is shown until the next command
		if p.session.IsSampled() && !fitsCards(c) {
			return ErrOwnTime
		}
		switch c := c.(type) {
		case Stop:
			return p.session.Stop()
		case Pause:
			p.setPaused(c.On)
		case SetSpeed:
			p.speed = c.Speed
		case Step:
			p.setPaused(true)
			if c.Back {
				return p.session.StepBack(ctx)
			}
			return p.session.Step(ctx)
		case Seek:
			return p.session.Seek(ctx, c.To)
		case Watch:
			p.session.Watch(c.Cluster)
		case Rerun:
			return p.replaceSession(ctx, c)
		}
		return nil
	})
}

// fitsCards reports whether a command can be executed on a device whose time cannot be controlled.
func fitsCards(c Command) bool {
	switch c.(type) {
	case Watch, Rerun, Stop:
		return true
	}
	return false
}

func (p *Player) setPaused(on bool) {
	p.state = Running
	if on {
		p.state = Paused
	}
}

// replaceSession replaces the session with a session for the requested run. If that cannot be opened, the old session
// stays.
func (p *Player) replaceSession(ctx context.Context, c Rerun) error {
	session, err := p.session.openRerun(ctx, c)
	if session != nil {
		p.session, p.state, p.debt = session, Running, 0
	}
	return err
}

// runGuarded runs f on the session and publishes the result. It turns a panic into an error, so that the device can
// still be released.
func (p *Player) runGuarded(f func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			p.err = fmt.Errorf("%w: internal error: %v", bench.ErrRun, r)
			p.publishFailure()
		}
	}()
	if err := f(); err != nil {
		p.err = err
		if !isRecoverable(err) {
			p.state = Failed
		}
	}
	p.publishSnapshot()
}

// isRecoverable reports whether an error leaves the session unchanged.
func isRecoverable(err error) bool {
	return errors.Is(err, bench.ErrSpec) || errors.Is(err, ErrOwnTime) || errors.Is(err, pktgen.ErrState) ||
		errors.Is(err, context.Canceled)
}

func (p *Player) publishSnapshot() {
	s, err := p.session.Snapshot()
	if err != nil {
		p.err = err
		p.publishFailure()
		return
	}
	s.Speed, s.Err = p.speed, p.err
	if s.State != Done {
		s.State = p.state
	}
	p.board.Store(s)
}

// publishFailure publishes the newest snapshot again, marked as failed.
func (p *Player) publishFailure() {
	p.state = Failed
	s := new(Snapshot)
	if last := p.board.Load(); last != nil {
		*s = *last
	}
	s.State, s.Err = Failed, p.err
	p.board.Store(s)
}

// Life returns the history of an update in the queue with the given index. It returns false if the update is unknown.
func (p *Player) Life(queue int, update int64) (Life, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Life(queue, update)
}

// Inspect reads the session's tables and registers and the state of its devices.
func (p *Player) Inspect(ctx context.Context) (*Inspection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Inspect(ctx)
}

// Close stops the generators and queues, and releases the device.
func (p *Player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Close()
}
