package main

import (
	"slices"
	"strings"

	simulatecmd "github.com/olafctl/olaf/cmd/olafctl/simulate"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/experiments/paper/iswitch"
	"github.com/olafctl/olaf/experiments/paper/olaf"
	"github.com/olafctl/olaf/experiments/paper/p4inc"
	"github.com/olafctl/olaf/experiments/paper/switchml"
	"github.com/olafctl/olaf/experiments/paper/versus"
	"github.com/olafctl/olaf/experiments/paper/xagg"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed/saturate"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/sweep"
	"github.com/olafctl/olaf/results/table"
)

// listExperiments returns the experiments from every paper that this program reproduces, and the comparisons between
// papers.
func listExperiments(set system.Set) experiments.Set {
	return slices.Concat(olaf.Experiments(set), iswitch.Experiments(set), switchml.Experiments(set),
		atp.Experiments(set), xagg.Experiments(set), p4inc.Experiments(), versus.Experiments(set))
}

// readers returns functions that read stored documents, by schema. Earlier versions used a separate schema for each
// kind of measurement.
func readers() result.Readers {
	return result.Readers{
		result.Name:               result.Read,
		"olafctl.figure":          result.Read,
		"olafctl.table":           result.Read,
		simulatecmd.EarlierSchema: simulatecmd.ReadEarlier,
		job.EarlierSchema:         job.ReadEarlier,
		saturate.EarlierSchema:    saturate.ReadEarlier,
		olaf.EarlierSchema:        olaf.ReadEarlier,
		traincmd.EarlierSchema:    traincmd.ReadEarlier,
		traincmd.EarlierJobSchema: traincmd.ReadEarlier,
	}
}

// layouts returns functions that turn the documents of stored experiments into tables and figures, by kind of document.
func layouts() archive.Layouts {
	kind, _, _ := strings.Cut(sweep.Schema, "/")
	all := archive.Layouts{kind: sweep.Sheets}
	for name, read := range readers() {
		all[name] = func(document []byte) ([]table.Sheet, error) {
			r, err := read(document)
			if err != nil {
				return nil, err
			}
			return r.Sheets(), nil
		}
	}
	return all
}
