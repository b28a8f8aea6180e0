package network

import (
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
)

// History is what a run was like at instants that lie equally far apart. It does not change.
type History struct{ Instants []Instant }

// Instant is a run at one of these. Ports and clusters stand as in the run's snapshots.
type Instant struct {
	At           olaf.Time
	Mean, Oldest [olaf.Readings]float32   // age in ns over the clusters that have one; NaN where none has
	Ages         [olaf.Readings][]float32 // of every cluster in ns; NaN before the first delivery
	Ports        []PortInstant
}

// PortInstant is a port at an instant, counts since the start.
type PortInstant struct {
	Port      string
	Occupancy int
	Slots     int
	Dropped   uint64
}

// What a history may hold: instants, and ages in all.
const (
	mostInstants  = 512
	leastInstants = 32
	mostAges      = 1 << 21
	fineAtStart   = 16 // how many times finer it is at first, for slow motion
)

// chronicle keeps a history while a run goes on. When it is full every second instant is dropped.
type chronicle struct {
	every, next olaf.Time
	limit       int
	history     *History
}

func newChronicle(end olaf.Time) chronicle {
	return chronicle{every: max(end/(fineAtStart*mostInstants), 1), limit: mostInstants, history: new(History)}
}

// take adds a picture of the instant that is due.
func (c *chronicle) take(v *netsim.Snapshot) {
	c.limit = min(mostInstants, max(leastInstants, mostAges/max(len(v.Clusters), 1)))
	instants := append(c.history.Instants, instantOf(v))
	c.next += c.every
	if len(instants) >= c.limit {
		kept := make([]Instant, 0, c.limit)
		for i := 0; i < len(instants); i += 2 {
			kept = append(kept, instants[i])
		}
		instants = kept
		c.every *= 2
		c.next = kept[len(kept)-1].At + c.every
	}
	c.history = &History{instants}
}

func instantOf(v *netsim.Snapshot) Instant {
	out := Instant{At: v.Now, Ports: make([]PortInstant, len(v.Ports))}
	for reading := range olaf.Reading(olaf.Readings) {
		now := meanAge(everyCluster(v), reading)
		out.Mean[reading], out.Oldest[reading], out.Ages[reading] = float32(now), float32(math.NaN()), make([]float32, len(v.Clusters))
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

// port is a port by its name, which most often stands at its place in the snapshot.
func (i *Instant) port(name string, place int) *PortInstant {
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
