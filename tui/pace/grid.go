package pace

import "github.com/olafctl/olaf"

// Of a grid: how many instants it holds at most, and how many times finer it is at first, for slow motion.
const (
	MostInstants = 512
	fineAtStart  = 16
)

// Grid is what a run was like at instants that lie equally far apart, from its start on. When it is full every second one is dropped.
type Grid[I any] struct {
	Instants    []I // what was handed out of it does not change
	every, next olaf.Time
}

// NewGrid is an empty grid for a run with an end.
func NewGrid[I any](end olaf.Time) Grid[I] {
	return Grid[I]{every: max(end/(fineAtStart*MostInstants), 1)}
}

// Next is the instant that is missing.
func (g *Grid[I]) Next() olaf.Time { return g.next }

// Add adds that one, of at most so many.
func (g *Grid[I]) Add(i I, limit int) {
	g.Instants = append(g.Instants, i)
	if len(g.Instants) >= limit {
		kept := make([]I, 0, limit)
		for k := 0; k < len(g.Instants); k += 2 {
			kept = append(kept, g.Instants[k])
		}
		g.Instants = kept
		g.every *= 2
	}
	g.next = olaf.Time(len(g.Instants)) * g.every
}
