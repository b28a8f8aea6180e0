package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
)

// Headings in docs/notes/reproduction.md about numbers that do not match.
const (
	causeBursts  = "Bursts of Table 1"
	causeReading = "Age per worker or per cluster"
	causePhases  = "Phases of periodic senders"
	causeHops    = "Hop delays"
	causeLoss    = "Definition of loss"
	causeControl = "Meaning of N"
	causeActive  = "Simultaneously active clusters"
	causeReward  = "Training rewards"
)

// Numbers of runs needed for published numbers.
const (
	benchSeeds    = 30
	networkSeeds  = 100
	trainingSeeds = 5
)

// olafPaper returns the claims from "Olaf", on its micro-benchmark, simulations, training runs, proofs and synthesis.
func olafPaper() Paper {
	return Paper{
		Name: "olaf",
		rows: slices.Concat(olafTable1(), olafReductions(), olafFigures(), olafTable2(), olafTable3(),
			olafFig10(), olafFormal(), olafHardware(), olafText()),
		measured: olafMeasured,
		was:      olafWas,
		names: []string{"table1", "table1-trace", "aom", "fig6", "fig2", "fig3", "fig7", "fig8", "table2",
			"table3", "fig10", "smt", "hardware"},
	}
}

// olafWas returns the id that a claim had before ids contained the paper's name.
func olafWas(r *row, column string) string {
	if r.late {
		return ""
	}
	return r.artefact + "." + slug(r.row) + "." + column
}

// valueClaim returns a claim on a printed value whose neighbour is another claim.
func valueClaim(column, text, unit string, expect Verdict, why, cause, neighbour string) Claim {
	return Claim{Column: column, Printed: text, Unit: unit, Kind: Value, Expect: expect, Explanation: why, Cause: cause,
		Neighbour: &Neighbour{ID: neighbour}}
}

// withBasis returns the claims with the given basis and number of runs.
func withBasis(b Basis, seeds int, claims ...Claim) []Claim {
	for i := range claims {
		claims[i].Basis, claims[i].Seeds = b, seeds
	}
	return claims
}

func olafTable1() []row {
	const (
		source = "OLAF §8.1, Table 1"
		fifo   = "FIFO's counts depend only on burst length and line rate, which two of the four cells determine"
		count  = "traffic and engine cycles were fitted to the counts of this table"
		rest   = "lost follows from the fitted counts: 1 % of aggregated is 5 to 6 % of lost"
	)
	cells := func(c ...Claim) []Claim { return withBasis(Calibrated, benchSeeds, c...) }
	excluded := valueClaim("lost_pct", "55.8", "%", Contradiction, fifo, "", "table1.olaf.40g.lost_pct")
	excluded.Contradiction = "if 6109 of 13,500 are received, 54.75 % are lost, not 55.8; the count was fitted"
	odd := valueClaim("received", "4823", "frames", Near, count, causeBursts, "table1.fifo.40g.received")
	odd.Inconsistency = "fewer than 40/100 of the updates leave, so the egress loses cycles"
	return []row{
		{artefact: "table1", row: "fifo 40G", id: "fifo.40g", source: source,
			cells: cells(valueClaim("received", "6109", "frames", Match, fifo, causeBursts, "table1.olaf.40g.received"),
				excluded)},
		{artefact: "table1", row: "olaf 40G", id: "olaf.40g", source: source, cells: cells(odd,
			valueClaim("aggregated", "7204", "updates", Near, count, causeBursts, "table1.olaf.20g.aggregated"),
			valueClaim("lost_pct", "11", "%", Near, rest, causeBursts, "table1.fifo.40g.lost_pct"))},
		{artefact: "table1", row: "fifo 20G", id: "fifo.20g", source: source, cells: cells(
			valueClaim("received", "3476", "frames", Near, fifo, causeBursts, "table1.olaf.20g.received"),
			valueClaim("lost_pct", "74.3", "%", Match, fifo, causeBursts, "table1.olaf.20g.lost_pct"))},
		{artefact: "table1", row: "olaf 20G", id: "olaf.20g", source: source, cells: cells(
			valueClaim("received", "2604", "frames", Near, count, causeBursts, "table1.fifo.20g.received"),
			valueClaim("aggregated", "9343", "updates", Match, count, causeBursts, "table1.olaf.40g.aggregated"),
			valueClaim("lost_pct", "11.5", "%", Near, rest, causeBursts, "table1.fifo.20g.lost_pct"))},
	}
}

// olafReductions returns the claims on reductions of the age. They are judged by the reading that was chosen because it
// fits the paper. Readings that compare like with like are shown as well.
func olafReductions() []row {
	at := func(rate, text string, expect Verdict) row {
		return row{artefact: "aom", row: rate, source: "OLAF §8.1, text", cells: withBasis(Calibrated, benchSeeds,
			Claim{Column: "reduction", Printed: text, Unit: "%", Kind: Value,
				Expect: expect, Neighbour: &Neighbour{},
				Explanation: "FIFO's age per worker, Olaf's per cluster: chosen because it fits; like for like, the " +
					"reduction is smaller", Cause: causeReading,
				Inconsistency: "per cluster for both, FIFO needs gaps with CV² > 4.5 to be this old"})}
	}
	return []row{at("40G", "69", Match), at("20G", "78", Near)}
}

func olafFigures() []row {
	const definition = "relative to the untrained policy, a choice made after rewards were below zero; the paper " +
		"does not say what its percentages are relative to"
	trend := func(column, unit string, side Side, than float64, expect Verdict, why, cause string) Claim {
		return Claim{Column: column, Unit: unit, Kind: Trend, Side: side, Neighbour: &Neighbour{Is: than},
			Expect: expect, Explanation: why, Cause: cause}
	}
	const more = "the difference of the mean aggregations per outgoing update; the whole distribution must be to the " +
		"right of the other"
	const steps = "partly because every update is one step of full size"
	return []row{
		{artefact: "fig6", row: "aggregations", source: "OLAF §8.1, Fig. 6", cells: slices.Concat(
			withBasis(Calibrated, benchSeeds, trend("20G right of 40G", "updates", Above, 0, Holds, more, "")),
			withBasis(Predicted, benchSeeds, trend("5G right of 20G", "updates", Above, 0, Holds, more, "")))},
		{artefact: "fig7", row: "speedup", source: "OLAF §8.2, Fig. 7", cells: withBasis(Predicted, trainingSeeds,
			trend("grows as capacity shrinks", "x", Above, 0, Holds,
				"the decrease of the speed-up from the lowest to the highest output rate", ""),
			trend("smallest", "x", Above, 1, Opposite,
				"the paper claims a gain at every capacity; with all 100 clusters active at once, Olaf's own cycles "+
					"cost it the lead above 30 Gbps", causeActive))},
		{artefact: "fig2", row: "reward", source: "OLAF §2.1, Fig. 2", cells: withBasis(Predicted, trainingSeeds,
			trend("async over periodic aggregation", "", Above, 0, Holds,
				"the difference of the last ten iterations' mean rewards; "+steps, causeReward),
			trend("periodic aggregation over sync", "", Above, 0, Holds,
				"the difference of the last ten iterations' mean rewards; "+steps, causeReward))},
		{artefact: "fig3", row: "iterations", source: "OLAF §2.1, Fig. 3", cells: withBasis(Predicted, trainingSeeds,
			trend("fewer with more workers", "", Above, 0, Holds, "how many fewer iterations 16 workers need than "+
				"one; "+
				steps, causeReward))},
		{artefact: "fig8", row: "reward over fifo", source: "OLAF §8.2, Fig. 8", cells: withBasis(Predicted, trainingSeeds,
			Claim{Column: "40G", Printed: "82", Unit: "%", Kind: Value, Neighbour: &Neighbour{}, Expect: TrendOnly,
				Explanation: definition, Cause: causeReward},
			Claim{Column: "20G", Printed: "86.5", Unit: "%", Kind: Value, Neighbour: &Neighbour{}, Expect: WithinTwo,
				Explanation: definition, Cause: causeReward})},
		{artefact: "fig8", row: "olaf", late: true, source: "OLAF §8.2, Fig. 8", cells: withBasis(Predicted, trainingSeeds,
			trend("same at every rate", "%", Below, FlatPct, Opposite, fmt.Sprintf("how much more reward Olaf gained "+
				"at 40 than at 20 Gbps; the same means at most %d %%; at 20 Gbps, a queue of 8 slots loses a quarter "+
				"of the updates and merges more, and a merged update is only one step", FlatPct), causeReward))},
		{artefact: "fig8", row: "age", late: true, source: "OLAF §§1 and 2.2", cells: withBasis(Predicted, trainingSeeds,
			trend("proxy of time to reward", "", Above, 0, Holds, "Spearman's correlation between the mean age per "+
				"cluster and the time until the reward that the slowest network reached, over the networks of one seed",
				causeReward))},
	}
}

// olafText returns the claims on statements in words about the micro-benchmark.
func olafText() []row {
	trend := func(column, unit, why string) Claim {
		return Claim{Column: column, Unit: unit, Kind: Trend, Side: Above, Neighbour: &Neighbour{}, Expect: Holds, Explanation: why}
	}
	older := trend("older with more slots", "us", "the smallest growth between consecutive queues of 4, 8, 16 and 32 "+
		"slots, at 20 Gbps; a longer queue also loses fewer updates, which outweighs its delay for ages per worker "+
		"up to 16 slots")
	older.Expect, older.Cause = Opposite, causeReading
	const fewer, before = "per cent fewer than FIFO's; the server answers each frame once",
		"before the last switch, which copies an ACK for the workers of its cluster"
	return []row{
		{artefact: "text", row: "fifo", late: true, source: "OLAF §8.1", cells: withBasis(Predicted, benchSeeds,
			older)},
		{artefact: "text", row: "fewer acks", late: true, source: "OLAF §10", cells: withBasis(Calibrated, benchSeeds,
			trend("40G", "%", fewer), trend("20G", "%", fewer))},
		{artefact: "text", row: "fewer downlink bytes", late: true, source: "OLAF §10", cells: withBasis(Calibrated, benchSeeds,
			trend("40G", "%", before), trend("20G", "%", before))},
	}
}

// cell is a number in Table 2 or 3.
type cell struct {
	text   string
	expect Verdict
}

// multiHopRow returns a row of Table 2 or 3 with claims on loss, both ages and fairness. The row named beside is the
// neighbour.
func multiHopRow(artefact, name, beside string, why [4]string, cause [4]string, cells [4]cell) row {
	var claims []Claim
	for i, column := range [4][2]string{{"loss_pct", "%"}, {"aom s1", "ms"}, {"aom s2", "ms"}, {"jain", "by 1 − J"}} {
		claims = append(claims, valueClaim(column[0], cells[i].text, column[1], cells[i].expect, why[i], cause[i],
			artefact+"."+beside+"."+slug(column[0])))
	}
	claims[3].Unfairness = true
	return row{artefact: artefact, row: name, source: "OLAF §8.3, Table " + strings.TrimPrefix(artefact, "table"),
		cells: withBasis(Calibrated, networkSeeds, claims...)}
}

// ofWorkers is the text that describes the earlier definition of fairness for FIFO.
const ofWorkers = "it used the means of workers, and now uses those of clusters"

var (
	fifoWhy = [4]string{"a saturated bottleneck; its rate was fitted to this loss",
		"drop-tail locks the phases of periodic senders; ages per worker, the reading that fits",
		"drop-tail locks the phases of periodic senders; ages per worker, the reading that fits",
		"Jain's index over the per-cluster ages, judged by its distance from 1"}
	fifoCause = [4]string{causePhases, causePhases, causePhases, causePhases}
	olafWhy   = [4]string{"counted in packets: the paper does not say whether packets or the updates in them count",
		"the hop delays are not given; ages per cluster, the reading that fits",
		"the hop delays are not given; ages per cluster, the reading that fits",
		"Jain's index over the per-cluster ages, judged by its distance from 1"}
	olafCause = [4]string{causeLoss, causeHops, causeHops, causeHops}
)

func olafTable2() []row {
	fifo := multiHopRow("table2", "fifo", "olaf", fifoWhy, fifoCause, [4]cell{{"88", Match}, {"1714", WithinTwo},
		{"1710", WithinTwo}, {"0.88", TrendOnly}})
	fifo.cells[3].Renewed = ofWorkers
	merged := multiHopRow("table2", "olaf", "fifo", olafWhy, olafCause, [4]cell{{"4.5", WithinTwo}, {"245", Near},
		{"244", Near}, {"0.98", TrendOnly}})
	alike := Claim{Column: "as with control", Unit: "%", Kind: Trend, Side: Below,
		Neighbour: &Neighbour{Is: FlatPct}, Expect: Holds, Cause: causeControl,
		Explanation: "the difference between a group's ages with and without transmission control, for the group with the " +
			"larger difference; N counts the active clusters, as in the text"}
	merged.cells = append(merged.cells, withBasis(Calibrated, networkSeeds, alike)...)
	return []row{fifo, merged}
}

func olafTable3() []row {
	const control = "N counts the active clusters, as in the text, so no send probability is below 8/10 and little " +
		"changes"
	why, cause := [4]string{control, control, control, olafWhy[3] + "; " + control}, [4]string{causeControl,
		causeControl, causeControl, causeControl}
	fifo := multiHopRow("table3", "fifo", "olaf", fifoWhy, fifoCause, [4]cell{{"86", Near}, {"1381", WithinTwo},
		{"5382", WithinTwo}, {"0.86", WithinTwo}})
	fifo.cells[3].Disagreement = "for ten clusters with the printed ages, Jain's index is at most 0.741; the printed " +
		"ages fit as ages per worker"
	merged := multiHopRow("table3", "olaf", "fifo", olafWhy, olafCause, [4]cell{{"5.6", WithinTwo},
		{"243", WithinTwo}, {"291", WithinTwo}, {"0.91", WithinTwo}})
	controlled := multiHopRow("table3", "olaf tc", "olaf", why, cause, [4]cell{{"4.7", WithinTwo},
		{"263", WithinTwo}, {"270", WithinTwo}, {"0.99", TrendOnly}})
	narrows := Claim{Column: "gap narrows", Unit: "ms", Kind: Trend, Side: Above, Neighbour: &Neighbour{},
		Expect: Holds, Cause: causeControl,
		Explanation: "how much closer together the groups' ages are than without control, seed by seed"}
	controlled.cells = append(controlled.cells, withBasis(Calibrated, networkSeeds, narrows)...)
	fifo.cells[3].Renewed = ofWorkers
	for i := range controlled.cells {
		controlled.cells[i].Renewed = "N counted senders and now counts clusters"
	}
	return []row{fifo, merged, controlled}
}

func olafFig10() []row {
	const source = "OLAF §8.3, Fig. 10"
	flat := fmt.Sprintf("how far the highest mean is above the lowest; flat and stable mean at most %d %%", FlatPct)
	trend := func(column, unit string, side Side, than float64, expect Verdict, why, cause string) Claim {
		return Claim{Column: column, Unit: unit, Kind: Trend, Side: side, Neighbour: &Neighbour{Is: than},
			Expect: expect, Explanation: why, Cause: cause}
	}
	return []row{
		{artefact: "fig10", row: "fifo", source: source, cells: withBasis(Predicted, networkSeeds,
			Claim{Column: "s1 at 0.1", Printed: "2900", Unit: "ms", Kind: Bound, Side: Above, Expect: BoundMet,
				Explanation: "“exceeding”: the paper does not say by how much", Cause: causePhases},
			trend("s2 stable", "%", Below, FlatPct, Opposite, flat+
				"; FIFO's S2 gets older as S1's share of the bottleneck grows", causePhases))},
		{artefact: "fig10", row: "olaf tc", source: source, cells: withBasis(Predicted, networkSeeds,
			trend("s1 falls", "ms", Above, 0, Holds, "from the lowest to the highest rate of SW1", ""),
			trend("s2 flat and low", "%", Below, FlatPct, Holds, flat+"; low means below S1 at SW1's lowest rate",
				""))},
	}
}

func olafFormal() []row {
	cells := theirMachineClaims("s",
		"the time of their solver on their machine; ours takes less than a tenth of a second, possibly for a "+
			"different question",
		[]string{"solver time"}, "40")
	cells[0].Inconsistency = "ε = 0.1 and p/C = 2 carry no unit"
	return []row{{artefact: "smt", row: "fairness query", source: "OLAF §6, §12.3", cells: cells}}
}

func olafHardware() []row {
	const (
		source    = "OLAF §7"
		synthesis = "needs a Vivado synthesis for the XCU55"
	)
	latency := func(size, text string, beats float64, expect Verdict) Claim {
		return Claim{Column: size, Printed: text, Unit: "ns", Kind: Value, Basis: Arithmetic, Expect: expect,
			Follows: 4 * beats, Neighbour: &Neighbour{},
			Explanation: fmt.Sprintf("%g cycles of 64 bytes at 250 MHz", beats)}
	}
	jumbo := latency("9036 B", "1152", 142, Contradiction)
	jumbo.Contradiction = "142 blocks of 64 bytes take 568 ns at 250 MHz, just as 24 blocks take the 96 ns printed " +
		"for 1500 bytes; 1152 ns are 288 cycles"
	headers := Claim{Column: "of a packet", Printed: "304", Unit: "bits", Kind: Value, Basis: Arithmetic, Expect: Contradiction,
		Follows: 8 * (14 + 20 + 8), Neighbour: &Neighbour{}, Explanation: "Ethernet with 14, IPv4 with 20 and UDP with 8 bytes",
		Contradiction: "the three named headers have 336 bits; 304 bits leave 4 bytes for UDP, which are its two ports"}
	untestable := func(column, text, unit, why string) Claim {
		return Claim{Column: column, Printed: text, Unit: unit, Kind: Value, Basis: Timed, Expect: NotTestable,
			Untestable: why}
	}
	return []row{
		{artefact: "hardware", row: "latency", source: "OLAF §12.1",
			cells: []Claim{latency("1500 B", "96", 24, Match), jumbo}},
		{artefact: "hardware", row: "headers", late: true, source: source, cells: []Claim{headers}},
		{artefact: "hardware", row: "clock", source: source, cells: []Claim{untestable("output rate", "50", "Gbps",
			"limited by timing closure on the card")}},
		{artefact: "hardware", row: "utilisation", source: source, cells: []Claim{
			untestable("lut", "3.52", "%", synthesis), untestable("ff", "1.5", "%", synthesis), untestable("mux", "1",
				"%", synthesis),
		}},
	}
}

// rateName returns a rate in the form used in ids, such as 40g.
func rateName(bps int64) string {
	return strings.ToLower(strings.TrimSuffix(olaf.Rate(bps).String(), "bps"))
}

// olafMeasured returns a bench's results for Table 1, the Age-of-Model reductions and Fig. 6.
func olafMeasured(b *results.Bench) Ours {
	ours := Ours{}
	merged := map[string]map[int64]*results.Row{} // rows of queues that merge waiting updates, by queue and rate
	for i := range b.Rows {
		r := &b.Rows[i]
		prefix := fmt.Sprintf("olaf/table1.%s.%s.", r.Queue, rateName(r.OutRateBPS))
		for _, name := range []string{"received", "aggregated", "lost_pct"} {
			ours[prefix+name] = Of(*r.Stats.Of(name))
		}
		// a program that sums in front of the queue counts differently
		if len(r.CDF) > 1 && r.Stats.Of("aggregated").Known() {
			if merged[r.Queue] == nil {
				merged[r.Queue] = map[int64]*results.Row{}
			}
			merged[r.Queue][r.OutRateBPS] = r
		}
	}
	for i := range b.Comparisons {
		c := &b.Comparisons[i]
		if merged[c.Queue] == nil || merged[c.Versus] != nil {
			continue // the reductions compare a merging queue with one that does not merge
		}
		ours["olaf/aom."+rateName(c.OutRateBPS)+".reduction"] = Measured{Statistic: c.AoMReduction.WorkerCluster,
			Others: []Other{
				{Assumption: "both per cluster", Statistic: c.AoMReduction.ClusterCluster},
				{Assumption: "both per worker", Statistic: c.AoMReduction.WorkerWorker},
			}}
	}
	for _, rows := range merged {
		for _, pair := range [][2]int64{{20, 40}, {5, 20}} {
			if slow, fast := rows[pair[0]*1e9], rows[pair[1]*1e9]; slow != nil && fast != nil {
				ours[fmt.Sprintf("olaf/fig6.aggregations.%dg_right_of_%dg", pair[0], pair[1])] = rightOf(slow, fast)
			}
		}
	}
	return ours
}

// rightOf returns the difference in mean aggregations per outgoing update between the rows slow and fast. If their
// distributions cross, Breaks is set.
func rightOf(slow, fast *results.Row) Measured {
	a, b := meanAggregations(slow), meanAggregations(fast)
	mean, half := difference(&a, &b)
	m := Of(results.Statistic{Mean: results.Float(mean), SD: results.Missing(), CI95: results.Float(half),
		Min: results.Missing(), Max: results.Missing(), N: min(a.N, b.N)})
	if !RightOf(slow.CDF, fast.CDF) {
		m.Breaks = "the distributions cross"
	}
	return m
}

// meanAggregations returns the mean number of aggregations per outgoing update. Its variation between runs is estimated
// by the sum of the variations of the two counts in the ratio, which is an upper limit whatever their correlation.
func meanAggregations(r *results.Row) results.Statistic {
	mean := results.Float(0)
	for _, p := range r.CDF {
		mean += 1 - p.P
	}
	out, in := r.Stats.Of("received"), r.Stats.Of("aggregated")
	sd := mean * (out.SD/out.Mean + in.SD/in.Mean)
	return results.Statistic{Mean: mean, SD: sd, CI95: results.Missing(), Min: results.Missing(),
		Max: results.Missing(), N: min(out.N, in.N)}
}
