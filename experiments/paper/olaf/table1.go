package olaf

import (
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
)

// table1 reproduces the micro-benchmark: FIFO and Olaf at 40 and 20 Gbps (§8.1, Table 1, and the AoM reductions beside it).
var table1 = experiments.Experiment{
	Name:     "olaf/table1",
	Artefact: "Table 1 and the AoM reductions of §8.1",
	About:    "27 workers in 9 clusters at 60 Gbps through 8 slots, FIFO and Olaf at 40 and 20 Gbps",
	Needs:    "1 s",
	OnDevice: true,
	Spec:     Table1,
	Beside:   besideTable1,
	Run:      experiments.RunSpec(Table1, besideTable1),
	Parts:    experiments.SpecParts(Table1),
}

// Table1 is the specification of the paper's micro-benchmark with the traffic that was found to fit it.
func Table1() bench.Spec {
	s := bench.DefaultSpec()
	s.Experiment = "olaf/table1"
	return s
}
