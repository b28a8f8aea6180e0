package loops

import (
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/tui/pace"
)

// Player runs a closed loop at a chosen pace.
type Player struct {
	*pace.Player[closedloop.Snapshot]
	end olaf.Time
	log *chronicle
}

// NewPlayer returns a player for a run that ends at end.
func NewPlayer(end olaf.Time, p pace.Pace, c pace.Clock) *Player {
	log := &chronicle{grid: pace.NewGrid[Instant](end)}
	log.history.Store(new(History))
	return &Player{pace.NewPlayer(end, p, c, log), end, log}
}

// Follow lets the run proceed at the chosen pace. The run calls it as its watcher function.
func (p *Player) Follow(last, next olaf.Time, look *closedloop.Look) (until olaf.Time, on bool) {
	return p.Before(last, next, look.Snapshot)
}

// End returns the end time of the run.
func (p *Player) End() olaf.Time { return p.end }

// History returns the recorded history.
func (p *Player) History() *History { return p.log.history.Load() }

// History contains the state of a run at regularly spaced instants. It is immutable.
type History struct{ Instants []Instant }

// Instant is the state of a run at one instant.
type Instant struct {
	At       olaf.Time
	Occupied []int32   // number of slots in use, by switch
	Underway int32     // number of frames on links
	Busy     []float32 // by host: share of the time so far during which its link to the switch was busy
}

// chronicle records the history of a run while the run proceeds.
type chronicle struct {
	grid    pace.Grid[Instant]
	history atomic.Pointer[History]
}

// Next implements pace.Log.
func (c *chronicle) Next() olaf.Time { return c.grid.Next() }

// Take implements pace.Log.
func (c *chronicle) Take(v *closedloop.Snapshot) {
	i := Instant{At: v.Now, Underway: int32(v.Underway)}
	for k := range v.Switches {
		i.Occupied = append(i.Occupied, int32(v.Switches[k].Occupied))
	}
	for k := range v.Hosts {
		i.Busy = append(i.Busy, float32(v.Hosts[k].Up.Busy))
	}
	c.grid.Add(i, pace.MostInstants)
	c.history.Store(&History{c.grid.Instants})
}
