package policy

import (
	"math"
	"slices"

	"github.com/olafctl/olaf/experiments/sched"
)

// match returns the maximum-weight matching between units and candidates. For each candidate it returns the matched
// unit or NoSwitch. If every candidate has only one unit, as without partial aggregation, each unit is matched with its
// heaviest candidate.
func match(units int, candidates []candidate) []int {
	single := true
	for _, c := range candidates {
		single = single && len(c.units) == 1
	}
	if single {
		return heaviest(units, candidates)
	}
	return hungarian(units, candidates)
}

func heaviest(units int, candidates []candidate) []int {
	best := slices.Repeat([]int{-1}, units)
	out := make([]int, len(candidates))
	for k, c := range candidates {
		out[k] = sched.NoSwitch
		if v := c.units[0]; best[v] < 0 || c.weights[0] > candidates[best[v]].weights[0] {
			best[v] = k
		}
	}
	for v, k := range best {
		if k >= 0 {
			out[k] = v
		}
	}
	return out
}

// hungarian assigns rows to columns by shortest augmenting paths over potentials, in O(units²·columns). Rows are units.
// Columns are candidates, and a dummy of weight 0 for every unit.
func hungarian(units int, candidates []candidate) []int {
	columns := len(candidates) + units
	cost := make([][]float64, units)
	for v := range cost {
		cost[v] = make([]float64, columns)
	}
	for k, c := range candidates {
		for i, v := range c.units {
			cost[v][k] = -c.weights[i]
		}
	}
	rowPotential, columnPotential := make([]float64, units+1), make([]float64, columns+1)
	owner := make([]int, columns+1) // row that owns each column, both counted from 1; 0 for none
	way := make([]int, columns+1)
	for v := 1; v <= units; v++ {
		augment(v, cost, rowPotential, columnPotential, owner, way)
	}
	out := make([]int, len(candidates))
	for k := range out {
		out[k] = sched.NoSwitch
		if v := owner[k+1]; v > 0 && cost[v-1][k] < 0 {
			out[k] = v - 1
		}
	}
	return out
}

// augment finds a column for row v, counted from 1.
func augment(v int, cost [][]float64, rowPotential, columnPotential []float64, owner, way []int) {
	columns := len(owner) - 1
	least := slices.Repeat([]float64{math.Inf(1)}, columns+1)
	used := make([]bool, columns+1)
	owner[0] = v
	at := 0
	for owner[at] != 0 {
		used[at] = true
		row, delta, next := owner[at], math.Inf(1), 0
		for k := 1; k <= columns; k++ {
			if used[k] {
				continue
			}
			if reduced := cost[row-1][k-1] - rowPotential[row] - columnPotential[k]; reduced < least[k] {
				least[k], way[k] = reduced, at
			}
			if least[k] < delta {
				delta, next = least[k], k
			}
		}
		for k := range used {
			if used[k] {
				rowPotential[owner[k]] += delta
				columnPotential[k] -= delta
			} else {
				least[k] -= delta
			}
		}
		at = next
	}
	for at != 0 {
		owner[at] = owner[way[at]]
		at = way[at]
	}
}
