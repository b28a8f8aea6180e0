package olaf

import (
	"slices"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// calibrated is the statement that is printed with every comparison whose traffic was fitted to the paper's numbers.
const calibrated = "the burst length, cluster weights and engine cycles were calibrated on the published numbers, " +
	"so agreement is a fit, not a prediction"

// compareWithTable1 compares a bench of two queues with Table 1 and with the reductions in the paper's text.
func compareWithTable1(s *bench.Spec, b *results.Bench) ([]results.PaperRow, []string) {
	if s.Versus == "" {
		return nil, nil
	}
	return compareArtefacts(s, b, "olaf/table1", "olaf/aom")
}

// compareWithFig6 compares a bench of a single queue with Fig. 6 of the paper.
func compareWithFig6(s *bench.Spec, b *results.Bench) ([]results.PaperRow, []string) {
	if s.Versus != "" {
		return nil, nil
	}
	return compareArtefacts(s, b, "olaf/fig6")
}

// compareArtefacts compares a bench with published artefacts. It returns nothing unless the bench has the traffic and
// the queue of Table 1; the number of runs and the seed may differ.
func compareArtefacts(s *bench.Spec, b *results.Bench, artefacts ...string) ([]results.PaperRow, []string) {
	reference := Table1(s.Systems)
	same := s.Trace == nil && s.Workload == reference.Workload && s.Slots == reference.Slots && s.Profile == reference.Profile &&
		s.DequeueCycles == nil && s.MergeCycles == nil && s.Overhead == 0 && !s.RewardFilter
	if !same {
		return nil, nil
	}
	rows := slices.DeleteFunc(paper.Compare(paper.FromBench(b), artefacts...),
		func(r results.PaperRow) bool { return !r.Ours.Known() }) // published for another rate or queue
	return rows, []string{calibrated}
}
