package olaf

import (
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
)

// table1 returns the experiment that reproduces the micro-benchmark of FIFO and Olaf at 40 and 20 Gbps (§8.1, Table 1,
// and the AoM reductions).
func table1(set system.Set) experiments.Experiment {
	spec := func() bench.Spec { return Table1(set) }
	return experiments.Experiment{
		Name:         "olaf/table1",
		Artefact:     "Table 1 and the AoM reductions of §8.1",
		About:        "27 workers in 9 clusters at 60 Gbps through 8 slots, FIFO and Olaf at 40 and 20 Gbps",
		Needs:        "1 s",
		OnDevice:     true,
		Spec:         spec,
		ComparePaper: compareWithTable1,
		Run:          experiments.RunSpec(spec, compareWithTable1),
		Parts:        experiments.SpecParts(set, spec),
		Inputs:       experiments.InputsByTenth(experiments.OfferedRate, experiments.OutputRate, experiments.FrameSize),
	}
}

// Table1 returns the specification of the paper's micro-benchmark, with the fitted traffic.
func Table1(set system.Set) bench.Spec {
	s := bench.DefaultSpec(set)
	s.Experiment = "olaf/table1"
	return s
}
