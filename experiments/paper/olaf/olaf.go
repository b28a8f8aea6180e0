// Package olaf reproduces the OLAF paper: its tables, its figures, and the claims in its text. Each artefact has a
// separate file.
package olaf

import (
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
)

// Experiments returns the paper's experiments in the order of the paper. set contains the available systems.
func Experiments(set system.Set) experiments.Set {
	return experiments.Set{table1(set), table1Trace(set), fig5, fig6(set), fig2, fig3, fig7, fig8, table2, table3, fig10, solved, claimsOfText(set), cycles(set), fig8Shared, filter, control, splitUpdates(set), tornTraining}
}
