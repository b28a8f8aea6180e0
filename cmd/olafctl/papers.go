package main

import (
	"slices"
	"strings"

	simulatecmd "github.com/olafctl/olaf/cmd/olafctl/simulate"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/experiments/paper/iswitch"
	"github.com/olafctl/olaf/experiments/paper/olaf"
	"github.com/olafctl/olaf/experiments/paper/p4inc"
	"github.com/olafctl/olaf/experiments/paper/switchml"
	"github.com/olafctl/olaf/experiments/paper/xagg"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed/feed"
	"github.com/olafctl/olaf/experiments/versus"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/sweep"
	"github.com/olafctl/olaf/results/table"
)

// published are the experiments of every paper that this program reproduces, and the comparisons between them, with systems of a set.
func published(set system.Set) experiments.Set {
	return slices.Concat(olaf.Experiments(set), iswitch.Experiments(set), switchml.Experiments(set), atp.Experiments(set), xagg.Experiments(set), p4inc.Experiments(), versus.Experiments(set))
}

// briefs say in a few words what kept documents of a kind found, for lists.
func briefs() map[string]func(raw []byte) string {
	all := map[string]func([]byte) string{}
	for schema, brief := range map[string]func([]byte) string{
		result.Schema:      result.Brief,
		"olafctl.figure":   result.Brief, // of earlier versions
		"olafctl.table":    result.Brief,
		feed.Schema:        feed.Brief,
		job.Schema:         job.Brief,
		simulatecmd.Schema: simulatecmd.Brief,
		traincmd.Schema:    traincmd.Brief,
		traincmd.JobSchema: traincmd.Brief,
	} {
		kind, _, _ := strings.Cut(schema, "/")
		all[kind] = brief
	}
	return all
}

// layouts say how the documents of kept experiments become tables and figures.
func layouts() archive.Layouts {
	all := archive.Layouts{}
	for schema, lay := range map[string]func([]byte) ([]table.Sheet, error){
		result.Schema:       result.Sheets,
		"olafctl.figure":    result.Sheets, // of earlier versions
		"olafctl.table":     result.Sheets,
		feed.Schema:         feed.Sheets,
		job.Schema:          job.Sheets,
		olaf.MultiHopSchema: olaf.MultiHopSheets,
		simulatecmd.Schema:  simulatecmd.Sheets,
		sweep.Schema:        sweep.Sheets,
	} {
		kind, _, _ := strings.Cut(schema, "/")
		all[kind] = lay
	}
	return all
}
