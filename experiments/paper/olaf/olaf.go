// Package olaf reproduces the OLAF paper, one file an artefact: its tables, its figures, and what is said beside them.
package olaf

import (
	"github.com/olafctl/olaf/experiments"
)

// Experiments lists what reproduces the paper, in its order.
func Experiments() experiments.Set {
	return experiments.Set{table1, table1Trace, fig6, fig2, fig3, fig7, fig8, table2, table3, fig10, solved, cycles, fig8Shared}
}
