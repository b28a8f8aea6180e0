// Package paper holds every number and ordering that the OLAF paper published, and those of the systems it builds on, as
// data: where it stands, how near a reproduction can come and why, and what is known to be odd about it. Tables, the
// workbook, the report and reproduce all read this one place.
package paper

import "math"

// Verdict says how a result stands to what was published.
type Verdict string

const (
	Reproduced    Verdict = "reproduced"
	SameDirection Verdict = "same direction"
	Deviates      Verdict = "deviates"
	NotTestable   Verdict = "not testable here"
)

// Relation is how a published value binds a result.
type Relation string

const (
	Equals  Relation = "="     // within the tolerance
	AtLeast Relation = "≥"     // a bound from below
	AtMost  Relation = "≤"     // a bound from above
	Holds   Relation = "holds" // an ordering or shape: the result is 1 when it holds, else 0
)

// Claim is one published number or statement.
type Claim struct {
	ID       string // artefact.row.column
	Artefact string // the experiment's name: table1, aom, fig6, …
	Row      string
	Column   string
	Value    float64 // not a number where the paper only draws or says it
	Unit     string
	Relation Relation
	// TolerancePct is how far a reproduced value may lie, relative to Value, and Why it is that far.
	TolerancePct float64
	Why          string
	Source       string
	// Against names the claim that this one is set beside in the paper: a result that misses the tolerance but lies on
	// the same side of that one's result is in the same direction.
	Against string
	// Inconsistency tells what is odd about the published value.
	Inconsistency string
	// Untestable says why this project can't measure it; empty when it can.
	Untestable string
	// Elsewhere is the command that measures it where no experiment does; empty when one does.
	Elsewhere string
	// Expect is the best verdict that the reproduction study found reachable; a worse one is a miss.
	Expect Verdict
}

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
	whyElsewhere  = "a number of another system, kept for comparison"
)

type row struct {
	artefact, row, source string
	cells                 []Claim
}

// Claims lists every claim in the order of the papers. The slice is the caller's.
func Claims() []Claim {
	var out []Claim
	for _, group := range [][]row{table1(), reductions(), figures(), multiHop(), formal(), hardware(), others()} {
		for _, r := range group {
			for _, c := range r.cells {
				c.Artefact, c.Row, c.Source = r.artefact, r.row, r.source
				c.ID = r.artefact + "." + slug(r.row) + "." + slug(c.Column)
				out = append(out, finished(c))
			}
		}
	}
	return out
}

// finished fills what most claims share.
func finished(c Claim) Claim {
	if c.Relation == "" {
		c.Relation = Equals
	}
	if c.Relation == Holds {
		c.Value, c.Why = math.NaN(), whyShape
	}
	if c.Expect == "" {
		c.Expect = Reproduced
	}
	if c.Untestable != "" {
		c.Expect = NotTestable
	}
	return c
}

func table1() []row {
	const source = "OLAF §8.1, Table 1"
	cell := func(column string, value float64, unit string, tolerance float64, why, against, odd string) Claim {
		return Claim{Column: column, Value: value, Unit: unit, TolerancePct: tolerance, Why: why, Against: against, Inconsistency: odd}
	}
	const derived = "not printed; sent − received − aggregated"
	return []row{
		{"table1", "fifo 40G", source, []Claim{
			cell("received", 6109, "frames", 2.5, whyFIFO, "table1.olaf_40g.received", ""),
			cell("lost_pct", 55.8, "%", 2.5, whyFIFO, "table1.olaf_40g.lost_pct", "6109 of 13,500 received make 54.75 %; the count is fitted, not the percentage"),
		}},
		{"table1", "olaf 40G", source, []Claim{
			cell("received", 4823, "frames", 8, whyCalibrated, "table1.fifo_40g.received", "fewer than 40/100 of the updates leave, so the egress loses cycles"),
			cell("aggregated", 7204, "updates", 8, whyCalibrated, "table1.olaf_20g.aggregated", ""),
			cell("lost_pct", 11, "%", 10, whyRest, "table1.fifo_40g.lost_pct", "10.9 % by count"),
			cell("lost", 1473, "updates", 10, whyRest, "table1.fifo_40g.lost", derived),
		}},
		{"table1", "fifo 20G", source, []Claim{
			cell("received", 3476, "frames", 2.5, whyFIFO, "table1.olaf_20g.received", ""),
			cell("lost_pct", 74.3, "%", 2.5, whyFIFO, "table1.olaf_20g.lost_pct", ""),
		}},
		{"table1", "olaf 20G", source, []Claim{
			cell("received", 2604, "frames", 8, whyCalibrated, "table1.fifo_20g.received", ""),
			cell("aggregated", 9343, "updates", 8, whyCalibrated, "table1.olaf_40g.aggregated", ""),
			cell("lost_pct", 11.5, "%", 10, whyRest, "table1.fifo_20g.lost_pct", ""),
			cell("lost", 1553, "updates", 10, whyRest, "table1.fifo_20g.lost", derived),
		}},
	}
}

func reductions() []row {
	const source = "OLAF §8.1, text"
	at := func(rate string, value float64) row {
		literal := "both per cluster, as §8.1 words it"
		return row{"aom", rate, source, []Claim{
			{Column: "reduction", Value: value, Unit: "%", TolerancePct: 6, Why: whyReading,
				Inconsistency: "per cluster for both, FIFO would need gaps of CV² > 4.5 to be this old"},
			{Column: "reduction literal", Value: value, Unit: "%", TolerancePct: 6, Why: whyLiteral, Expect: SameDirection, Inconsistency: literal},
		}}
	}
	return []row{at("40G", 69), at("20G", 78)}
}

func figures() []row {
	shape := func(statements ...string) []Claim {
		cells := make([]Claim, len(statements))
		for i, s := range statements {
			cells[i] = Claim{Column: s, Relation: Holds}
		}
		return cells
	}
	return []row{
		{"fig6", "aggregations", "OLAF §8.1, Fig. 6", shape("20G right of 40G", "5G right of 20G")},
		{"fig7", "speedup", "OLAF §8.2, Fig. 7", append(shape("grows as capacity shrinks"),
			Claim{Column: "smallest", Value: 1, Relation: AtLeast, Why: "called significant at all capacities; with all 100 clusters active at once Olaf's own cycles cost it the lead above 30 Gb/s", Expect: SameDirection})},
		{"fig2", "reward", "OLAF §2.1, Fig. 2", shape("async over periodic aggregation", "periodic aggregation over sync")},
		{"fig3", "iterations", "OLAF §2.1, Fig. 3", shape("fewer with more workers")},
		{"fig8", "reward over fifo", "OLAF §8.2, Fig. 8", []Claim{
			{Column: "40G", Value: 82, Unit: "%", TolerancePct: 25, Why: "one training task, reward noise between seeds", Expect: SameDirection},
			{Column: "20G", Value: 86.5, Unit: "%", TolerancePct: 25, Why: "one training task, reward noise between seeds", Expect: SameDirection},
		}},
	}
}

// multiHop is Tables 2 and 3 and Fig. 10.
func multiHop() []row {
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
		{"table2", "fifo", t2, cells(near(88, 2.5, "a saturated bottleneck", "table2.olaf.loss_pct"), near(1714, 25, whyPhase, "table2.olaf.aom_s1"),
			near(1710, 25, whyPhase, "table2.olaf.aom_s2"), near(0.88, 10, whyPhase, "table2.olaf.jain"))},
		{"table2", "olaf", t2, append(cells(near(4.5, 100, whyMultiLoss, "table2.fifo.loss_pct"), near(245, 15, "the delays of the hops are assumed", "table2.fifo.aom_s1"),
			near(244, 15, "the delays of the hops are assumed", "table2.fifo.aom_s2"), near(0.98, 5, "near its maximum", "table2.fifo.jain")),
			Claim{Column: "as with control", Relation: Holds})},
		{"table3", "fifo", t3, cells(near(86, 2.5, "a saturated bottleneck", "table3.olaf.loss_pct"), near(1381, 25, whyPhase, "table3.olaf.aom_s1"),
			near(5382, 25, whyPhase, "table3.olaf.aom_s2"), impossible)},
		{"table3", "olaf", t3, cells(near(5.6, 100, whyMultiLoss, "table3.fifo.loss_pct"), near(243, 15, "the delays of the hops are assumed", "table3.fifo.aom_s1"),
			near(291, 15, "the delays of the hops are assumed", "table3.fifo.aom_s2"), near(0.91, 8, "follows from both ages", "table3.fifo.jain"))},
		{"table3", "olaf tc", t3, append(cells(tcLoss, direction(263, "table3.olaf.aom_s1"),
			direction(270, "table3.olaf.aom_s2"), direction(0.99, "table3.olaf.jain")),
			Claim{Column: "gap narrows", Relation: Holds, Why: whyControl})},
		{"fig10", "fifo", f10, []Claim{
			{Column: "s1 at 0.1", Value: 2900, Unit: "ms", Relation: AtLeast, Why: "said as a bound"},
			{Column: "s2 stable", Relation: Holds, Expect: SameDirection},
		}},
		{"fig10", "olaf tc", f10, []Claim{{Column: "s1 falls", Relation: Holds}, {Column: "s2 flat and low", Relation: Holds}}},
	}
}

func formal() []row {
	return []row{{"smt", "fairness query", "OLAF §6, §12.3", []Claim{
		{Column: "solver time", Value: 40, Unit: "s", Relation: AtMost, Why: "another machine and solver version", Elsewhere: "olafctl verify fairness", Inconsistency: "ε = 0.1 and p/C = 2 carry no unit"},
	}}}
}

func hardware() []row {
	const synthesis = "needs a Vivado synthesis for the XCU55"
	const pipeline = "needs a card; the twin's merge costs a calibrated number of cycles, whatever the size"
	return []row{
		{"hardware", "latency", "OLAF §7", []Claim{
			{Column: "1500 B", Value: 96, Unit: "ns", Why: "24 cycles of 64 bytes at 250 MHz", Untestable: pipeline},
			{Column: "9036 B", Value: 1152, Unit: "ns", Why: "cycles are counted", Untestable: pipeline,
				Inconsistency: "142 beats of 64 bytes make 568 ns; the printed 1152 ns are 288 cycles"},
		}},
		{"hardware", "clock", "OLAF §7", []Claim{{Column: "output rate", Value: 50, Unit: "Gbps", Untestable: "a limit of timing closure on the card"}}},
		{"hardware", "utilisation", "OLAF §7", []Claim{
			{Column: "lut", Value: 3.52, Unit: "%", Untestable: synthesis},
			{Column: "ff", Value: 1.5, Unit: "%", Untestable: synthesis},
			{Column: "mux", Value: 1, Unit: "%", Untestable: synthesis},
		}},
	}
}

// others are the figures of the systems that the paper builds on or compares with.
func others() []row {
	models := []string{"dqn", "a2c", "ppo", "ddpg"}
	elsewhere := func(unit, why string, columns []string, values ...float64) []Claim {
		cells := make([]Claim, len(values))
		for i, v := range values {
			cells[i] = Claim{Column: columns[i], Value: v, Unit: unit, Why: whyElsewhere, Untestable: why}
		}
		return cells
	}
	const cluster = "needs that system's cluster and switch"
	const iswitch, xagg, aoi = "iSwitch (ISCA'19), Table 3", "XAgg (ToN'23)", "P4INC-AOI, Table I and text"
	return []row{
		{"iswitch", "sync speedup over ps", iswitch, elsewhere("x", cluster, models, 3.66, 2.55, 1.72, 1.83)},
		{"iswitch", "allreduce speedup over ps", iswitch, elsewhere("x", cluster, models, 1.97, 1.62, 0.91, 0.90)},
		{"iswitch", "async speedup over ps", iswitch, elsewhere("x", cluster, models, 3.71, 3.14, 1.92, 1.56)},
		{"iswitch", "model size", "iSwitch (ISCA'19)", elsewhere("kB", "a property of its models", models, 6410, 3310, 40.02, 157.52)},
		{"xagg", "throughput", xagg, elsewhere("Gbps", cluster, []string{"1 core", "10 cores"}, 13, 99.5)},
		{"xagg", "over tcp", xagg, elsewhere("x", cluster, []string{"throughput"}, 3.3)},
		{"xagg", "communication time saved", xagg, elsewhere("%", cluster, []string{"least", "most"}, 49, 82)},
		{"p4inc-aoi", "completion time saved", aoi, elsewhere("%", cluster, []string{"resnet50", "vgg16"}, 46.66, 56.34)},
		{"p4inc-aoi", "heuristic above optimum", aoi, elsewhere("%", cluster, []string{"least", "most"}, 16, 17)},
		{"p4inc-aoi", "heuristic time", aoi, elsewhere("s", cluster, []string{"about"}, 1)},
	}
}
