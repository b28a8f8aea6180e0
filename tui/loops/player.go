package loops

import (
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/tui/pace"
)

// Player holds a loop to a pace.
type Player struct {
	*pace.Player[closed.Snapshot]
	end olaf.Time
	log *chronicle
}

// NewPlayer makes a player for a run with an end.
func NewPlayer(end olaf.Time, p pace.Pace, c pace.Clock) *Player {
	log := &chronicle{grid: pace.NewGrid[Instant](end)}
	log.history.Store(new(History))
	return &Player{pace.NewPlayer(end, p, c, log), end, log}
}

// Follow is what a run is followed with.
func (p *Player) Follow(last, next olaf.Time, look *closed.Look) (until olaf.Time, on bool) {
	return p.Before(last, next, look.Snapshot)
}

// End is when the run ends.
func (p *Player) End() olaf.Time { return p.end }

// History is what is remembered of the run.
func (p *Player) History() *History { return p.log.history.Load() }

// History is what a run was like at instants that lie equally far apart. It does not change.
type History struct{ Instants []Instant }

// Instant is a run at one of these.
type Instant struct {
	At       olaf.Time
	Held     []int32   // slots, by switch
	Underway int32     // frames
	Busy     []float32 // by host, the share of the time so far that its link towards the switch was busy
}

// chronicle keeps a history while a run goes on.
type chronicle struct {
	grid    pace.Grid[Instant]
	history atomic.Pointer[History]
}

// Next implements pace.Log.
func (c *chronicle) Next() olaf.Time { return c.grid.Next() }

// Take implements pace.Log.
func (c *chronicle) Take(v *closed.Snapshot) {
	i := Instant{At: v.Now, Underway: int32(v.Underway)}
	for k := range v.Switches {
		i.Held = append(i.Held, int32(v.Switches[k].Held))
	}
	for k := range v.Hosts {
		i.Busy = append(i.Busy, float32(v.Hosts[k].Up.Busy))
	}
	c.grid.Add(i, pace.MostInstants)
	c.history.Store(&History{c.grid.Instants})
}
