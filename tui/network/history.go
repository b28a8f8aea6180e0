package network

import (
	"math"
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/tui/pace"
)

// History contains the state of a run at regularly spaced instants. It is immutable.
type History struct{ Instants []Instant }

// Instant is the state of a run at one instant. Ports and clusters have the same order as in the run's snapshots.
type Instant struct {
	At           olaf.Time
	Mean, Oldest [olaf.Readings]float32   // age in ns over all clusters that have one; NaN if none has
	Ages         [olaf.Readings][]float32 // age of every cluster in ns; NaN before the first delivery
	Ports        []PortInstant
}

// PortInstant is the state of a port at one instant. Dropped counts from the start of the run.
type PortInstant struct {
	Port      string
	Occupancy int
	Slots     int
	Dropped   uint64
}

// Limits of a history: the number of instants, and the total number of ages.
const (
	mostInstants  = pace.MostInstants
	leastInstants = 32
	mostAges      = 1 << 21
)

// chronicle records the history of a run while the run proceeds.
type chronicle struct {
	grid    pace.Grid[Instant]
	history atomic.Pointer[History]
}

func newChronicle(end olaf.Time) *chronicle {
	c := &chronicle{grid: pace.NewGrid[Instant](end)}
	c.history.Store(new(History))
	return c
}

// Next implements pace.Log.
func (c *chronicle) Next() olaf.Time { return c.grid.Next() }

// Take records the snapshot for the next instant.
func (c *chronicle) Take(v *netsim.Snapshot) {
	c.grid.Add(instantOf(v), min(mostInstants, max(leastInstants, mostAges/max(len(v.Clusters), 1))))
	c.history.Store(&History{c.grid.Instants})
}

func instantOf(v *netsim.Snapshot) Instant {
	out := Instant{At: v.Now, Ports: make([]PortInstant, len(v.Ports))}
	for reading := range olaf.Reading(olaf.Readings) {
		now := meanAge(everyCluster(v), reading)
		out.Mean[reading], out.Oldest[reading], out.Ages[reading] = float32(now), float32(math.NaN()),
			make([]float32, len(v.Clusters))
		for i := range v.Clusters {
			age := float32(v.Clusters[i].AoM[reading])
			out.Ages[reading][i] = age
			if oldest := &out.Oldest[reading]; age == age && !(age <= *oldest) {
				*oldest = age
			}
		}
	}
	for i := range v.Ports {
		p := &v.Ports[i]
		out.Ports[i] = PortInstant{p.Port, p.Occupancy, p.Slots, uint64(p.Values.Of("dropped"))}
	}
	return out
}

// findPort returns the named port. place is its index in the snapshot, at which it is usually found.
func (i *Instant) findPort(name string, place int) *PortInstant {
	if place < len(i.Ports) && i.Ports[place].Port == name {
		return &i.Ports[place]
	}
	for n := range i.Ports {
		if i.Ports[n].Port == name {
			return &i.Ports[n]
		}
	}
	return nil
}
