package tuitest

import (
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/pace"
)

// Jumping is a clock on which waiting takes no real time. Each wait advances the clock at once, and each reading
// advances it by a microsecond. It starts in 1970.
type Jumping struct {
	mu     sync.Mutex
	passed time.Duration
}

// Now implements pace.Clock.
func (c *Jumping) Now() time.Time { return c.pass(time.Microsecond) }

// After implements pace.Clock.
func (c *Jumping) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	ch <- c.pass(d)
	return ch
}

func (c *Jumping) pass(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
	return time.Unix(0, 0).Add(c.passed)
}

// Still is a paused run that records requests.
type Still struct {
	Holds pace.Pace
	Steps int
	Goal  olaf.Time
}

// Pace implements pace.Run.
func (s *Still) Pace() pace.Pace { return s.Holds }

// SetPace implements pace.Run.
func (s *Still) SetPace(p pace.Pace) { s.Holds = p }

// Step implements pace.Run.
func (s *Still) Step() { s.Steps++ }

// Advance implements pace.Run.
func (s *Still) Advance(to olaf.Time) { s.Goal = to }
