package olaf

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
)

// fig6 returns the experiment that reproduces the distribution of the number of updates per outgoing frame (§8.1, Fig.
// 6).
func fig6(set system.Set) experiments.Experiment {
	spec := func() bench.Spec { return Fig6(set) }
	return experiments.Experiment{
		Name:         "olaf/fig6",
		Artefact:     "Fig. 6",
		About:        "aggregations per outgoing update under Olaf at 40, 20 and 5 Gbps",
		Needs:        "1 s",
		OnDevice:     true,
		Spec:         spec,
		ComparePaper: compareWithFig6,
		Run:          experiments.RunSpec(spec, compareWithFig6),
		Parts:        experiments.SpecParts(set, spec),
		Inputs:       experiments.InputsByTenth(experiments.OfferedRate, experiments.OutputRate, experiments.FrameSize),
	}
}

// Fig6 returns a specification with Table 1's traffic through Olaf alone, at the three output rates in the figure.
func Fig6(set system.Set) bench.Spec {
	s := Table1(set)
	s.Experiment, s.Versus = "olaf/fig6", ""
	s.OutRates = []olaf.Rate{40 * olaf.Gbps, 20 * olaf.Gbps, 5 * olaf.Gbps}
	return s
}
