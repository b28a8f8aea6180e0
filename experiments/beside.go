package experiments

import (
	"slices"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// calibrated is said beside every comparison with the paper whose traffic was found by fitting.
const calibrated = "the burst length, cluster weights and engine cycles were calibrated on the published numbers, so agreement is a fit, not a prediction"

// BesidePaper sets a bench of Table 1's traffic and queue beside the paper, whatever the number of runs and the seed.
func BesidePaper(s *Spec, b *results.Bench) ([]results.PaperRow, []string) {
	reference := Table1()
	same := s.Trace == nil && s.Workload == reference.Workload && s.Slots == reference.Slots && s.Profile == reference.Profile &&
		s.DequeueCycles == nil && s.MergeCycles == nil && s.Overhead == 0 && !s.RewardFilter
	if !same {
		return nil, nil
	}
	artefacts := []string{"table1", "aom"}
	if s.Versus == "" {
		artefacts = []string{"fig6"}
	}
	rows := slices.DeleteFunc(paper.Compare(paper.FromBench(b), artefacts...),
		func(r results.PaperRow) bool { return !r.Ours.Known() }) // published for another rate or queue
	return rows, []string{calibrated}
}
