package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
)

const (
	whyCalibrated = "the workload was fitted to the counts of this table; of received and aggregated the worst is 5.4 % off"
	whyRest       = "lost is what the fitted counts leave, and 1 % of aggregated is 5 to 6 % of it: it may be further off than they are"
	whyFIFO       = "FIFO depends on bursts and line rate alone, which two cells pin"
	whyReading    = "fits only with FIFO's age per worker and Olaf's per cluster"
	whyLiteral    = "the literal text, both per cluster; the paper's size is out of its reach"
	whyPhase      = "drop-tail locks phases of periodic senders; means move by a tenth with the spread of phases"
	whyMultiLoss  = "packets or constituents, and where the slot of the frame on the wire counts, are not said: a factor of 2"
	whyControl    = "the rule as printed changes nothing here; only the direction is reachable"
	whyShape      = "drawn or said, no number printed"
)

// olafPaper is "Olaf", with what its micro-benchmark, simulations, trainings, proofs and synthesis found.
func olafPaper() Paper {
	return Paper{
		Name:     "olaf",
		rows:     slices.Concat(olafTable1(), olafReductions(), olafFigures(), olafMultiHop(), olafFormal(), olafHardware()),
		measured: olafMeasured,
		was:      func(r *row, column string) string { return r.artefact + "." + slug(r.row) + "." + column },
		names:    []string{"table1", "table1-trace", "aom", "fig6", "fig2", "fig3", "fig7", "fig8", "table2", "table3", "fig10", "smt", "hardware"},
	}
}

func olafTable1() []row {
	const source = "OLAF §8.1, Table 1"
	cell := func(column string, value float64, unit string, tolerance float64, why, against, odd string) Claim {
		return Claim{Column: column, Value: value, Unit: unit, TolerancePct: tolerance, Why: why, Against: against, Inconsistency: odd}
	}
	const derived = "not printed; sent − received − aggregated"
	return []row{
		{artefact: "table1", row: "fifo 40G", source: source, cells: []Claim{
			cell("received", 6109, "frames", 2.5, whyFIFO, "table1.olaf.40g.received", ""),
			cell("lost_pct", 55.8, "%", 2.5, whyFIFO, "table1.olaf.40g.lost_pct", "6109 of 13,500 received make 54.75 %; the count is fitted, not the percentage"),
		}, id: "fifo.40g"},
		{artefact: "table1", row: "olaf 40G", source: source, cells: []Claim{
			cell("received", 4823, "frames", 8, whyCalibrated, "table1.fifo.40g.received", "fewer than 40/100 of the updates leave, so the egress loses cycles"),
			cell("aggregated", 7204, "updates", 8, whyCalibrated, "table1.olaf.20g.aggregated", ""),
			cell("lost_pct", 11, "%", 10, whyRest, "table1.fifo.40g.lost_pct", "10.9 % by count"),
			cell("lost", 1473, "updates", 10, whyRest, "table1.fifo.40g.lost", derived),
		}, id: "olaf.40g"},
		{artefact: "table1", row: "fifo 20G", source: source, cells: []Claim{
			cell("received", 3476, "frames", 2.5, whyFIFO, "table1.olaf.20g.received", ""),
			cell("lost_pct", 74.3, "%", 2.5, whyFIFO, "table1.olaf.20g.lost_pct", ""),
		}, id: "fifo.20g"},
		{artefact: "table1", row: "olaf 20G", source: source, cells: []Claim{
			cell("received", 2604, "frames", 8, whyCalibrated, "table1.fifo.20g.received", ""),
			cell("aggregated", 9343, "updates", 8, whyCalibrated, "table1.olaf.40g.aggregated", ""),
			cell("lost_pct", 11.5, "%", 10, whyRest, "table1.fifo.20g.lost_pct", ""),
			cell("lost", 1553, "updates", 10, whyRest, "table1.fifo.20g.lost", derived),
		}, id: "olaf.20g"},
	}
}

func olafReductions() []row {
	const source = "OLAF §8.1, text"
	at := func(rate string, value float64) row {
		literal := "both per cluster, as §8.1 words it"
		return row{artefact: "aom", row: rate, source: source, cells: []Claim{
			{Column: "reduction", Value: value, Unit: "%", TolerancePct: 6, Why: whyReading,
				Inconsistency: "per cluster for both, FIFO would need gaps of CV² > 4.5 to be this old"},
			{Column: "reduction literal", Value: value, Unit: "%", TolerancePct: 6, Why: whyLiteral, Expect: SameDirection, Inconsistency: literal},
		}}
	}
	return []row{at("40G", 69), at("20G", 78)}
}

func olafFigures() []row {
	shape := func(statements ...string) []Claim {
		cells := make([]Claim, len(statements))
		for i, s := range statements {
			cells[i] = Claim{Column: s, Relation: Holds}
		}
		return cells
	}
	return []row{
		{artefact: "fig6", row: "aggregations", source: "OLAF §8.1, Fig. 6", cells: shape("20G right of 40G", "5G right of 20G")},
		{artefact: "fig7", row: "speedup", source: "OLAF §8.2, Fig. 7", cells: append(shape("grows as capacity shrinks"),
			Claim{Column: "smallest", Value: 1, Relation: AtLeast, Why: "called significant at all capacities; with all 100 clusters active at once Olaf's own cycles cost it the lead above 30 Gb/s", Expect: SameDirection})},
		{artefact: "fig2", row: "reward", source: "OLAF §2.1, Fig. 2", cells: shape("async over periodic aggregation", "periodic aggregation over sync")},
		{artefact: "fig3", row: "iterations", source: "OLAF §2.1, Fig. 3", cells: shape("fewer with more workers")},
		{artefact: "fig8", row: "reward over fifo", source: "OLAF §8.2, Fig. 8", cells: []Claim{
			{Column: "40G", Value: 82, Unit: "%", TolerancePct: 25, Why: "one training task, reward noise between seeds", Expect: SameDirection},
			{Column: "20G", Value: 86.5, Unit: "%", TolerancePct: 25, Why: "one training task, reward noise between seeds", Expect: SameDirection},
		}},
	}
}

// olafMultiHop is Tables 2 and 3 and Fig. 10.
func olafMultiHop() []row {
	const t2, t3, f10 = "OLAF §8.3, Table 2", "OLAF §8.3, Table 3", "OLAF §8.3, Fig. 10"
	cells := func(loss, s1, s2, jain Claim) []Claim {
		loss.Column, loss.Unit = "loss_pct", "%"
		s1.Column, s1.Unit = "aom s1", "ms"
		s2.Column, s2.Unit = "aom s2", "ms"
		jain.Column = "jain"
		return []Claim{loss, s1, s2, jain}
	}
	near := func(value, tolerance float64, why, against string) Claim {
		return Claim{Value: value, TolerancePct: tolerance, Why: why, Against: against}
	}
	direction := func(value float64, against string) Claim {
		return Claim{Value: value, TolerancePct: 10, Why: whyControl, Against: against, Expect: SameDirection}
	}
	impossible := Claim{Value: 0.86, TolerancePct: 10, Why: "no reproduction can reach it", Against: "table3.olaf.jain", Expect: SameDirection,
		Inconsistency: "Jain's index over ten clusters with these group means is at most 0.741"}
	tcLoss := near(4.7, 100, whyMultiLoss, "table3.fifo.loss_pct")
	tcLoss.Expect = SameDirection
	return []row{
		{artefact: "table2", row: "fifo", source: t2, cells: cells(near(88, 2.5, "a saturated bottleneck", "table2.olaf.loss_pct"), near(1714, 25, whyPhase, "table2.olaf.aom_s1"),
			near(1710, 25, whyPhase, "table2.olaf.aom_s2"), near(0.88, 10, whyPhase, "table2.olaf.jain"))},
		{artefact: "table2", row: "olaf", source: t2, cells: append(cells(near(4.5, 100, whyMultiLoss, "table2.fifo.loss_pct"), near(245, 15, "the delays of the hops are assumed", "table2.fifo.aom_s1"),
			near(244, 15, "the delays of the hops are assumed", "table2.fifo.aom_s2"), near(0.98, 5, "near its maximum", "table2.fifo.jain")),
			Claim{Column: "as with control", Relation: Holds})},
		{artefact: "table3", row: "fifo", source: t3, cells: cells(near(86, 2.5, "a saturated bottleneck", "table3.olaf.loss_pct"), near(1381, 25, whyPhase, "table3.olaf.aom_s1"),
			near(5382, 25, whyPhase, "table3.olaf.aom_s2"), impossible)},
		{artefact: "table3", row: "olaf", source: t3, cells: cells(near(5.6, 100, whyMultiLoss, "table3.fifo.loss_pct"), near(243, 15, "the delays of the hops are assumed", "table3.fifo.aom_s1"),
			near(291, 15, "the delays of the hops are assumed", "table3.fifo.aom_s2"), near(0.91, 8, "follows from both ages", "table3.fifo.jain"))},
		{artefact: "table3", row: "olaf tc", source: t3, cells: append(cells(tcLoss, direction(263, "table3.olaf.aom_s1"),
			direction(270, "table3.olaf.aom_s2"), direction(0.99, "table3.olaf.jain")),
			Claim{Column: "gap narrows", Relation: Holds, Why: whyControl})},
		{artefact: "fig10", row: "fifo", source: f10, cells: []Claim{
			{Column: "s1 at 0.1", Value: 2900, Unit: "ms", Relation: AtLeast, Why: "said as a bound"},
			{Column: "s2 stable", Relation: Holds, Expect: SameDirection},
		}},
		{artefact: "fig10", row: "olaf tc", source: f10, cells: []Claim{{Column: "s1 falls", Relation: Holds}, {Column: "s2 flat and low", Relation: Holds}}},
	}
}

func olafFormal() []row {
	return []row{{artefact: "smt", row: "fairness query", source: "OLAF §6, §12.3", cells: []Claim{
		{Column: "solver time", Value: 40, Unit: "s", Relation: AtMost, Why: "another machine and solver version", Elsewhere: "olafctl verify fairness", Inconsistency: "ε = 0.1 and p/C = 2 carry no unit"},
	}}}
}

func olafHardware() []row {
	const synthesis = "needs a Vivado synthesis for the XCU55"
	const pipeline = "needs a card; the twin's merge costs a calibrated number of cycles, whatever the size"
	return []row{
		{artefact: "hardware", row: "latency", source: "OLAF §7", cells: []Claim{
			{Column: "1500 B", Value: 96, Unit: "ns", Why: "24 cycles of 64 bytes at 250 MHz", Untestable: pipeline},
			{Column: "9036 B", Value: 1152, Unit: "ns", Why: "cycles are counted", Untestable: pipeline,
				Inconsistency: "142 beats of 64 bytes make 568 ns; the printed 1152 ns are 288 cycles"},
		}},
		{artefact: "hardware", row: "clock", source: "OLAF §7", cells: []Claim{{Column: "output rate", Value: 50, Unit: "Gbps", Untestable: "a limit of timing closure on the card"}}},
		{artefact: "hardware", row: "utilisation", source: "OLAF §7", cells: []Claim{
			{Column: "lut", Value: 3.52, Unit: "%", Untestable: synthesis},
			{Column: "ff", Value: 1.5, Unit: "%", Untestable: synthesis},
			{Column: "mux", Value: 1, Unit: "%", Untestable: synthesis},
		}},
	}
}

// rateName is the form that rates have in ids: 40g.
func rateName(bps int64) string {
	return strings.ToLower(strings.TrimSuffix(olaf.Rate(bps).String(), "bps"))
}

// olafMeasured takes values for Table 1, the Age-of-Model reductions and Fig. 6.
func olafMeasured(b *results.Bench) Ours {
	ours := Ours{}
	cdf := map[int64][]results.CDFPoint{}
	for i := range b.Rows {
		r := &b.Rows[i]
		prefix := fmt.Sprintf("olaf/table1.%s.%s.", r.Queue, rateName(r.OutRateBPS))
		for _, name := range []string{"received", "aggregated", "lost", "lost_pct"} {
			ours[prefix+name] = *r.Stats.Of(name)
		}
		if r.Queue == "olaf" {
			cdf[r.OutRateBPS] = r.CDF
		}
	}
	for i := range b.Comparisons {
		c := &b.Comparisons[i]
		if c.Queue != "olaf" || c.Versus != "fifo" {
			continue
		}
		prefix := "olaf/aom." + rateName(c.OutRateBPS) + ".reduction"
		ours[prefix], ours[prefix+"_literal"] = c.AoMReduction.WorkerCluster, c.AoMReduction.ClusterCluster
	}
	for _, pair := range [][2]int64{{20, 40}, {5, 20}} {
		slow, fast := cdf[pair[0]*1e9], cdf[pair[1]*1e9]
		if len(slow) > 0 && len(fast) > 0 {
			ours[fmt.Sprintf("olaf/fig6.aggregations.%dg_right_of_%dg", pair[0], pair[1])] = Shape(RightOf(slow, fast))
		}
	}
	return ours
}
