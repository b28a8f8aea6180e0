package pace

import "github.com/olafctl/olaf"

// The maximum number of instants in a grid, and the factor by which a new grid is finer, for slow motion.
const (
	MostInstants = 512
	fineAtStart  = 16
)

// Grid contains the state of a run at regularly spaced instants, beginning at its start. When the grid is full, every
// second state is removed.
type Grid[I any] struct {
	Instants    []I // elements never change once they have been returned
	every, next olaf.Time
}

// NewGrid returns an empty grid for a run that ends at end.
func NewGrid[I any](end olaf.Time) Grid[I] {
	return Grid[I]{every: max(end/(fineAtStart*MostInstants), 1)}
}

// Next returns the instant of the next state to add.
func (g *Grid[I]) Next() olaf.Time { return g.next }

// Add adds the state at the next instant. When the number of states reaches limit, it removes every second state.
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
