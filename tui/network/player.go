package network

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/tui/pace"
)

// Player runs a simulated network at a chosen pace. It implements netsim.Watcher for one run.
type Player struct {
	*pace.Player[netsim.Snapshot]
	log *chronicle
}

// NewPlayer returns a player for a run that ends at end.
func NewPlayer(end olaf.Time, p pace.Pace, c pace.Clock) *Player {
	log := newChronicle(end)
	return &Player{pace.NewPlayer(end, p, c, log), log}
}

// History returns the recorded history.
func (p *Player) History() *History { return p.log.history.Load() }
