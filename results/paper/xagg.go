package paper

import "slices"

// causePorts is the heading in docs/notes/reproduction.md under which XAgg's order of systems is explained.
const causePorts = "Switch ports in XAgg's testbed"

// xaggPaper returns the claims from "XAgg: Accelerating Heterogeneous Distributed Training Through XDP-Based Gradient
// Aggregation" (ToN'23).
func xaggPaper() Paper {
	const source = "XAgg (ToN'23)"
	return Paper{Name: "xagg", was: xaggWas, rows: slices.Concat(
		[]row{
			{artefact: "text", row: "throughput", source: source, cells: untestableClaims("Gbps", needsCluster,
				[]string{"1 core", "10 cores"}, "13", "99.5")},
			{artefact: "text", row: "over tcp", source: source, cells: untestableClaims("x", needsCluster,
				[]string{"throughput"}, "3.3")},
			{artefact: "text", row: "communication time saved", source: source, cells: untestableClaims("%",
				needsCluster, []string{"least", "most"}, "49", "82")},
		},
		xaggFig1(), xaggFig13(), xaggKernel(), xaggArithmetic(),
	)}
}

// xaggWas returns the id that a claim had before ids contained the paper's name.
func xaggWas(r *row, column string) string {
	switch r.row {
	case "throughput", "over tcp", "communication time saved":
		return oldSystemID("xagg")(r, column)
	}
	return ""
}

// xaggFig1 returns the claims on the example in §II-A, for which the paper gives all parameters.
func xaggFig1() []row {
	const why = "only the wires' time; nothing is fitted"
	cell := func(column, printed, beside, why string) Claim {
		return Claim{Column: column, Printed: printed, Unit: "s", Kind: Value, Expect: Match, Explanation: why,
			Neighbour: &Neighbour{ID: "fig1.aggregation_time." + beside}}
	}
	return []row{{artefact: "fig1", row: "aggregation time", source: "XAgg (ToN'23), Fig. 1",
		cells: withBasis(Predicted, jobSeeds,
			cell("ps", "4", "xagg", why),
			cell("switch", "4", "xagg", why+"; SwitchML's pool of slots is filled before the straggler begins"),
			cell("xagg", "3", "ps", why+"; the server receives one frame before the sum leaves"))}}
}

// xaggFig13 returns the claims on the communication times of an epoch. Only their order can be tested.
func xaggFig13() []row {
	const source, unsaid = "XAgg (ToN'23), Fig. 13 and §VI-C",
		"the paper does not say how many vectors an epoch has and what workers wait for in it"
	over := func(column string, expect Verdict, why string) Claim {
		return Claim{Column: column, Unit: "x", Kind: Trend, Side: Below, Neighbour: &Neighbour{Is: 1}, Expect: expect,
			Explanation: "XAgg's time over the other system's, for one vector and only the wires' time; " + why,
			Cause:       causePorts}
	}
	return []row{
		{artefact: "fig13", row: "resnet50", source: source, cells: untestableClaims("s", unsaid,
			[]string{"xagg", "tcp-agg", "switchml", "nccl", "byteps"}, "0.31", "0.61", "1.66", "1.03", "0.93")},
		{artefact: "fig13", row: "resnet50 over", source: source, cells: withBasis(Predicted, jobSeeds,
			over("switchml", Opposite,
				"its workers have a switch port each, while XAgg's share a server's link; the paper's SwitchML is "+
					"the authors' own, with raw sockets, at 11.6 Gbps"),
			over("nccl", Holds, "a ring of seven"),
			over("byteps", Holds, "one parameter server"))},
		{artefact: "fig15", row: "resnet50 peak", source: "XAgg (ToN'23), Fig. 15", cells: untestableClaims("Gbps",
			needsCluster,
			[]string{"xagg", "tcp-agg", "switchml", "nccl", "byteps"}, "45.7", "16.6", "11.6", "14.6", "16")},
		{artefact: "fig19", row: "vgg16 training", source: "XAgg (ToN'23), Fig. 19", cells: untestableClaims("s",
			needsCluster,
			[]string{"xagg", "tcp-agg", "switchml", "nccl", "byteps"}, "1116", "1334", "1688", "1622", "1530")},
		{artefact: "delays", row: "rate initialised", source: "XAgg (ToN'23), §VI-C", cells: untestableClaims("ms",
			needsCluster, []string{"worker", "server", "ps"}, "12", "5", "2")},
		{artefact: "delays", row: "deployed", source: "XAgg (ToN'23), §VI-C", cells: untestableClaims("s",
			needsCluster, []string{"compiled before", "compiled there"}, "0.34", "0.68")},
	}
}

// needsOneCore is the reason why the numbers in XAgg's Figs. 6 to 11 are not testable here. 'make xagg' measures ours.
const needsOneCore = "needs their network cards and cores; docs/papers/xagg.md has our numbers on this kernel"

// xaggKernel returns the claims on the printed numbers of the micro-benchmark (Figs. 6 to 11) and on training results
// that need the cluster.
func xaggKernel() []row {
	const source = "XAgg (ToN'23), §VI-B"
	of := func(artefact, name, unit string, columns []string, values ...string) row {
		return row{artefact: artefact, row: name, source: source, cells: untestableClaims(unit, needsOneCore, columns, values...)}
	}
	train := func(artefact, name, unit string, columns []string, values ...string) row {
		return row{artefact: artefact, row: name, source: "XAgg (ToN'23), §VI-C", cells: untestableClaims(unit, needsCluster, columns, values...)}
	}
	return []row{
		of("fig6", "packets", "Mpps", []string{"32 values", "320 values"}, "4.19", "1.11"),
		of("fig6", "xagg over tcp", "x", []string{"least", "most"}, "2.77", "3.54"),
		of("fig6", "dpdk over xagg", "%", []string{"least", "most"}, "10.3", "23.1"),
		of("fig7", "values", "Gbps", []string{"xagg 256 values", "tcp-agg 320 values"}, "13.03", "4.12"),
		of("fig8", "values", "Gbps", []string{"dpdk 1 core", "tcp-agg 10 cores"}, "14.9", "29.8"),
		of("fig10", "one hop", "us", []string{"10 gbps", "100 gbps"}, "149.5", "209.3"),
		of("fig10", "below tcp", "%", []string{"least", "most"}, "24", "39"),
		of("fig10", "dpdk below xagg", "%", []string{"least", "most"}, "6", "37"),
		of("fig11", "lost at 100 gbps", "%", []string{"tcp-agg", "xagg"}, "1.5", "0.261"),
		train("fig14", "epoch saved over switchml", "%", []string{"alexnet", "resnet50", "vgg16"}, "23", "26", "34"),
		train("fig20", "bert training", "s", []string{"xagg"}, "435"),
		train("fig20", "bert time saved", "%", []string{"tcp-agg", "switchml", "nccl", "byteps"}, "8", "16", "15", "14"),
		train("delays", "rate updated", "ms", []string{"worker", "server"}, "2", "1"),
	}
}

// xaggArithmetic returns claims on numbers that follow from other numbers in the text. The paper prints a speed-up as 1
// + the share of time saved.
func xaggArithmetic() []row {
	const wrong = "the printed factor is 1 + the share of time saved"
	follows := func(column, printed, unit string, value float64) Claim {
		return Claim{Column: column, Printed: printed, Unit: unit, Kind: Value, Basis: Arithmetic, Follows: value,
			Expect: Match, Neighbour: &Neighbour{}}
	}
	contradicts := func(column, printed, unit string, value float64, why string) Claim {
		c := follows(column, printed, unit, value)
		c.Expect, c.Contradiction = Contradiction, why
		return c
	}
	of := func(name, source, from string, cells ...Claim) row {
		for i := range cells {
			cells[i].Explanation = "follows from " + from
		}
		return row{artefact: "text", row: name, source: "XAgg (ToN'23), " + source, cells: cells}
	}
	const times = "the times in the same paragraph"
	saved := func(time float64) float64 { return 100 * (1 - 0.31/time) }
	return []row{
		of("resnet50 time saved", "§VI-C", times, follows("tcp-agg", "49", "%", saved(0.61)),
			follows("switchml", "82", "%", saved(1.66)), follows("nccl", "70", "%", saved(1.03)),
			follows("byteps", "66", "%", saved(0.93))),
		of("vgg16 speedup", "§VI-C", times,
			contradicts("tcp-agg", "1.17", "x", 1334.0/1116, "1334 s over 1116 s are 1.195; "+wrong),
			contradicts("switchml", "1.34", "x", 1688.0/1116, "1688 s over 1116 s are 1.513; "+wrong),
			contradicts("nccl", "1.31", "x", 1622.0/1116, "1622 s over 1116 s are 1.453; "+wrong),
			contradicts("byteps", "1.27", "x", 1530.0/1116, "1530 s over 1116 s are 1.371; "+wrong)),
		of("goodput of a packet", "§IV-A", "a frame of 1328 bytes with 320 values, which leaves 48 bytes besides the "+
			"values",
			follows("32 values", "72.73", "%", 100*128/(128+48.0)), follows("320 values", "96.39", "%", 100*1280/1328.0)),
		of("one hop growth", "§VI-B", "the two latencies of Fig. 10",
			follows("10 to 100 gbps", "40", "%", 100*(209.3/149.5-1))),
		of("throughput over others", "Fig. 15", "the workers' peak throughputs",
			follows("tcp-agg", "2.8", "x", 45.7/16.6), follows("switchml", "3.9", "x", 45.7/11.6),
			follows("nccl", "3.1", "x", 45.7/14.6), follows("byteps", "2.9", "x", 45.7/16)),
		of("vector of fig1", "§II-A", "the rate and the time", follows("1 s at 10 gbps", "1.25", "GB", 10e9/8/1e9)),
		of("mean rate delay", "§IV-C", "§VI-C's delays of 7 workers, 2 servers and the parameter server, whose update "+
			"counts as a server's", follows("initialised", "9.6", "ms", (7*12+2*5+2)/10.0),
			follows("updated", "1.7", "ms", (7*2+3*1)/10.0)),
		of("loss below tcp", "§VI-B", "the losses in the same section",
			contradicts("at 100 gbps", "87", "%", 100*(1-0.261/1.5), "0.261 % against 1.5 % are 82.6 % less")),
	}
}
