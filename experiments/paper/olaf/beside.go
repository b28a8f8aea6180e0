package olaf

import (
	"slices"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// calibrated is said beside every comparison with the paper whose traffic was found by fitting.
const calibrated = "the burst length, cluster weights and engine cycles were calibrated on the published numbers, so agreement is a fit, not a prediction"

// besideTable1 sets a bench of two queues beside Table 1 and the reductions of the text.
func besideTable1(s *bench.Spec, b *results.Bench) ([]results.PaperRow, []string) {
	if s.Versus == "" {
		return nil, nil
	}
	return beside(s, b, "olaf/table1", "olaf/aom")
}

// besideFig6 sets a bench of one queue beside Fig. 6.
func besideFig6(s *bench.Spec, b *results.Bench) ([]results.PaperRow, []string) {
	if s.Versus != "" {
		return nil, nil
	}
	return beside(s, b, "olaf/fig6")
}

// beside compares what has Table 1's traffic and queue, whatever the number of runs and the seed.
func beside(s *bench.Spec, b *results.Bench, artefacts ...string) ([]results.PaperRow, []string) {
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
