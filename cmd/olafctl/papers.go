package main

import (
	"strings"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/paper/olaf"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/table"
)

// published are the experiments of every paper that this program reproduces.
func published() experiments.Set { return olaf.Experiments() }

// layouts say how the documents of kept experiments become tables and figures.
func layouts() archive.Layouts {
	all := archive.Layouts{}
	for schema, lay := range map[string]func([]byte) ([]table.Sheet, error){
		experiments.FigureSchema: experiments.FigureSheets,
		olaf.MultiHopSchema:      olaf.MultiHopSheets,
		simulateSchema:           sweepSheets,
	} {
		kind, _, _ := strings.Cut(schema, "/")
		all[kind] = lay
	}
	return all
}
