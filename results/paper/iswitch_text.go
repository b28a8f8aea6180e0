package paper

import (
	"fmt"
	"math"
	"slices"
)

// causePrinted is the heading in docs/notes/reproduction.md under which calculations with the paper's numbers are
// explained.
const causePrinted = "Arithmetic with iSwitch's printed numbers"

// Numbers printed in iSwitch's §§2 to 6, one per model, for the arithmetic below.
var (
	// iswitchBytes contains the size of each model in bytes (Table 1). The units there are binary, as the layers of the
	// networks show.
	iswitchBytes = [4]float64{6.41 * (1 << 20), 3.31 * (1 << 20), 40.02 * (1 << 10), 157.52 * (1 << 10)}
	// iswitchStudied contains the number of training iterations for each model, in millions (Table 1).
	iswitchStudied = [4]string{"200.00", "2.00", "0.15", "2.50"}
)

// Numbers of the board and its cluster (§§4 and 5.3).
const (
	iswitchWorkers   = 4
	iswitchStaleness = 3       // the paper's S
	iswitchLanes     = 366     // float32 in a packet of 1,522 bytes with a VLAN tag and its check sequence
	iswitchFrame     = 1514    // bytes of the same packet on the accelerator's bus
	iswitchLine      = 1538    // bytes that this packet occupies on the wire
	iswitchPortBPS   = 10e9    // rate of each of the four ports
	iswitchBusBytes  = 32      // bytes per cycle
	iswitchClockHz   = 200e6   // clock of the bus
	iswitchBRAMPct   = 44.5    // percentage used by the accelerator
	virtexBRAMBytes  = 6773760 // block RAM of an XC7VX690T in bytes: 1,470 blocks of 36 Kib
)

// iswitchSegments returns the number of packets per vector for model i. Each packet has its own counter.
func iswitchSegments(i int) float64 { return math.Ceil(iswitchBytes[i] / 4 / iswitchLanes) }

// iswitchBusPct returns the load on the accelerator's bus, in percent, if the given number of ports receive at line
// rate.
func iswitchBusPct(ports float64) float64 {
	const cycles, seconds = (iswitchFrame + iswitchBusBytes - 1) / iswitchBusBytes, iswitchLine * 8 / iswitchPortBPS
	return 100 * ports * cycles / iswitchClockHz / seconds
}

// arithmeticClaim returns c as a claim about a number that can be calculated from other printed numbers. value is the
// result of the calculation. contradiction, if not empty, explains how the printed numbers exclude the claim.
func arithmeticClaim(c Claim, value float64, contradiction string) Claim {
	c.Basis, c.Follows, c.Cause = Arithmetic, value, causePrinted
	if contradiction != "" {
		c.Expect, c.Contradiction = Contradiction, contradiction
	}
	return c
}

// iswitchBoard returns the claims on the bus and the memory of the accelerator.
func iswitchBoard() []row {
	bus := func(column string, ports float64) Claim {
		return arithmeticClaim(Claim{Column: column, Unit: "%", Kind: Trend, Side: Below,
			Neighbour: &Neighbour{Is: 100}, Expect: Holds,
			Explanation: "on four ports, a full packet takes 48 of the 61.5 cycles until the next; the text says without a " +
				"number that the bus keeps up"}, iswitchBusPct(ports), "")
	}
	var held []Claim
	for i, model := range iswitchModels {
		const segment = iswitchLanes*4 + 2 // bytes of the sum and a counter
		taken := iswitchSegments(i) * segment
		c := Claim{Column: model, Printed: "44.5", Unit: "% of block RAM", Kind: Bound, Side: Below, Expect: BoundMet,
			Explanation: "a whole vector in buffers, and a two-byte counter per segment"}
		pct, why := 100*taken/virtexBRAMBytes, ""
		if pct > iswitchBRAMPct {
			why = fmt.Sprintf("%.0f segments of %d bytes are %.2f MB; %g %% of the chip's %.2f MB are %.2f MB, and "+
				"the paper does not say how segments would be recycled",
				iswitchSegments(i), segment, taken/1e6, iswitchBRAMPct, virtexBRAMBytes/1e6, iswitchBRAMPct*virtexBRAMBytes/1e8)
		}
		held = append(held, arithmeticClaim(c, pct, why))
	}
	return []row{
		{artefact: "text", row: "bus load", source: "iSwitch (ISCA'19), §3.3 and §4",
			cells: []Claim{bus("four ports", iswitchWorkers), bus("and results", iswitchWorkers+1)}},
		{artefact: "text", row: "vector in memory", source: "iSwitch (ISCA'19), §4", cells: held},
		{artefact: "text", row: "counters of a vector", source: "iSwitch (ISCA'19), §3.3 and Algorithm 1",
			cells: []Claim{arithmeticClaim(
				Claim{Column: "dqn", Unit: "counters", Kind: Trend, Side: Below, Neighbour: &Neighbour{Is: 2}, Expect: Opposite,
					Explanation: fmt.Sprintf("Algorithm 1 sums H gradient vectors with one count; our reading: the "+
						"accelerator counts each of the %.0f segments up to H separately, so that with unequal "+
						"rates, jitter or loss a sum's segments come from different vectors. No printed number "+
						"excludes one count", iswitchSegments(0))},
				iswitchSegments(0), "")}},
		{artefact: "text", row: "staleness bound", source: "iSwitch (ISCA'19), §3.3 and Algorithm 1",
			cells: []Claim{arithmeticClaim(
				Claim{Column: "after 4 losses", Printed: "3", Unit: "iterations", Kind: Bound, Side: Below, Expect: BoundMissed,
					Explanation: "our reading: packets have no iteration number, so each lost packet leaves its segment's " +
						"sums one gradient behind, and S + 1 = 4 losses exceed S = 3. No printed number excludes the " +
						"bound, and Table 2's Help and FBcast handle lost packets"},
				iswitchStaleness+1, "")}},
	}
}

// iswitchRatios returns claims on speed-ups that can be calculated from the printed hours, and on ranges in the text
// that follow from other ranges.
func iswitchRatios() []row {
	speedup := func(name string, printed [4]string, expect [4]Verdict, ratio func(i int) float64) row {
		r := row{artefact: "text", row: name, source: "iSwitch (ISCA'19), Tables 3 to 5"}
		for i, model := range iswitchModels {
			c := Claim{Column: model, Printed: printed[i], Unit: "x", Kind: Value, Neighbour: &Neighbour{Is: 1},
				Expect: expect[i], Explanation: "ratio of the printed hours"}
			if got := fmt.Sprintf("%.2f", ratio(i)); got != printed[i] {
				c.Disagreement = fmt.Sprintf(
					"the printed hours give %s, Table 3 has %s; rounding may explain the difference", got, printed[i])
			}
			r.cells = append(r.cells, arithmeticClaim(c, ratio(i), ""))
		}
		return r
	}
	all := [4]Verdict{Match, Match, Match, Match}
	const shorter, least, most = 72.7, 81.6, 85.8
	share := arithmeticClaim(Claim{Column: "dqn", Printed: "83.2", Unit: "%", Kind: Bound, Side: Below,
		Explanation: "the least share of DQN's iteration that aggregation takes with a parameter server"}, 100*shorter/most,
		fmt.Sprintf("if an iteration is %g %% shorter because aggregation is %g to %g %% shorter, aggregation was "+
			"%.1f to %.1f %% of it", shorter, least, most, 100*shorter/most, 100*shorter/least))
	r := row{artefact: "text", row: "iterations", source: "iSwitch (ISCA'19), Tables 1 and 4",
		cells: theirMachineClaims("M",
			"Table 1 is about other authors' training runs; the paper's own in Table 4 have fewer iterations, which "+
				"is no contradiction",
			iswitchModels, iswitchStudied[:]...)}
	return []row{
		speedup("sync speedup by hours", iswitchSync, [4]Verdict{Match, Match, Near, Match},
			func(i int) float64 { return ratioOf(iswitchSyncHours[i][0], iswitchSyncHours[i][2]) }),
		speedup("allreduce speedup by hours", iswitchAllReduce, [4]Verdict{Match, Match, Near, Match},
			func(i int) float64 { return ratioOf(iswitchSyncHours[i][0], iswitchSyncHours[i][1]) }),
		speedup("async speedup by hours", iswitchAsync, all,
			func(i int) float64 { return ratioOf(iswitchAsyncHours[i][0], iswitchAsyncHours[i][1]) }),
		{artefact: "text", row: "aggregation of an iteration", source: "iSwitch (ISCA'19), §§2.3 and 6.1",
			cells: []Claim{share}}, r,
	}
}

// Numbers printed in Tables 4 and 5, one row per model.
var (
	iswitchSyncMillions  = [4]string{"1.40", "0.20", "0.08", "0.75"}
	iswitchAsyncMillions = [4][2]string{{"6.30", "3.50"}, {"1.20", "0.40"}, {"0.54", "0.12"}, {"3.00", "1.50"}}
	iswitchIntervals     = [4][2]string{{"24.88", "12.07"}, {"13.13", "12.53"}, {"3.40", "7.99"}, {"11.58", "14.89"}} // in ms
	iswitchSyncRewards   = [4][3]string{{"20.00", "19.94", "20.00"}, {"13491.73", "13478.39", "13489.22"},
		{"3090.24", "3093.18", "3091.61"}, {"2476.75", "2487.43", "2479.62"}}
	iswitchAsyncRewards = [4][2]string{{"19.10", "19.82"}, {"13402.83", "13505.46"}, {"3083.67", "3084.23"},
		{"2421.89", "2485.35"}}
)

// iswitchTrainings returns claims on the numbers in iSwitch's tables that come from training runs, and on numbers that
// follow from these.
func iswitchTrainings() (rows []row) {
	const trained = "needs the paper's training runs of DQN, A2C, PPO and DDPG on Atari and MuJoCo"
	const table4, table5 = "iSwitch (ISCA'19), Table 4", "iSwitch (ISCA'19), Table 5"
	rows = append(rows, row{artefact: "table4", row: "iterations", source: table4,
		cells: untestableClaims("M", trained, iswitchModels, iswitchSyncMillions[:]...)})
	var async [2][]Claim
	for i, model := range iswitchModels {
		rows = append(rows,
			row{artefact: "table4", row: "reward of " + model, source: table4,
				cells: untestableClaims("", trained, []string{"ps", "ar", "isw"}, iswitchSyncRewards[i][:]...)},
			row{artefact: "table5", row: "reward of " + model, source: table5,
				cells: untestableClaims("", trained, []string{"ps", "isw"}, iswitchAsyncRewards[i][:]...)})
		for k := range async {
			async[k] = append(async[k], arithmeticClaim(Claim{Column: model, Printed: iswitchAsyncHours[i][k], Unit: "h",
				Kind: Value, Neighbour: &Neighbour{}, Expect: Match, Explanation: "the printed iterations times their printed interval"},
				valueOf(iswitchAsyncMillions[i][k])*valueOf(iswitchIntervals[i][k])/3.6, ""))
		}
	}
	for k, name := range []string{"ps", "isw"} {
		var printed []string
		for i := range iswitchModels {
			printed = append(printed, iswitchAsyncMillions[i][k])
		}
		rows = append(rows, row{artefact: "table5", row: "iterations of " + name, source: table5,
			cells: untestableClaims("M", trained, iswitchModels, printed...)},
			row{artefact: "table5", row: "hours of " + name, source: table5, cells: async[k]})
	}
	return append(rows, iswitchReductions()...)
}

// iswitchReductions returns claims on the percentage ranges in the text. Some of them follow from Table 5, and others
// need further data.
func iswitchReductions() []row {
	const source = "iSwitch (ISCA'19), §6.2 and Table 5"
	span := func(name string, of [4][2]string, models []int, least, most string) row {
		low, high := math.Inf(1), math.Inf(-1)
		for _, i := range models {
			cut := 100 * (1 - ratioOf(of[i][1], of[i][0]))
			low, high = min(low, cut), max(high, cut)
		}
		claim := func(column, printed string, value float64) Claim {
			return arithmeticClaim(Claim{Column: column, Printed: printed, Unit: "%", Kind: Value, Neighbour: &Neighbour{},
				Expect: Match, Explanation: "how much lower Table 5 is for iSwitch than for the server"}, value, "")
		}
		return row{artefact: "text", row: name, source: source, cells: []Claim{claim("least", least, low), claim("most", most, high)}}
	}
	all := []int{0, 1, 2, 3}
	return []row{
		span("iterations saved", iswitchAsyncMillions, all, "44.4", "77.8"),
		span("interval saved", iswitchIntervals, all[:2], "4.6", "51.5"),
		span("hours saved", iswitchAsyncHours, all, "35.7", "73.0"),
		{artefact: "text", row: "aggregation at least", source: "iSwitch (ISCA'19), §§1 and 2.3", cells: untestableClaims("%",
			"the bars of Fig. 4 need the paper's cluster and training runs", []string{"of an iteration"}, "49.9")},
		{artefact: "text", row: "utilisation", source: "iSwitch (ISCA'19), §4", cells: slices.Concat(
			untestableClaims("%", "needs a synthesis for the NetFPGA-SUME", []string{"lut", "ff"}, "18.6", "17.3"),
			untestableClaims("slices", "needs a synthesis for the NetFPGA-SUME", []string{"dsp"}, "17"))},
	}
}

// valueOf parses a number in the form in which the paper prints it.
func valueOf(text string) float64 {
	v, _ := parsePrinted(text)
	return v
}

// ratioOf returns the printed number a divided by the printed number b.
func ratioOf(a, b string) float64 { return valueOf(a) / valueOf(b) }

// iswitchAsynchrony returns claims on the gain from asynchronous training, as calculated from the paper's own tables.
func iswitchAsynchrony() []row {
	const source, hours = "iSwitch (ISCA'19), §6.2 and Table 5", "iSwitch (ISCA'19), Tables 4 and 5"
	expect := [4]Verdict{Opposite, Opposite, Holds, Opposite}
	fewer, sooner := row{artefact: "text", row: "gradients saved", source: source},
		row{artefact: "text", row: "async over sync", source: hours}
	for i, model := range iswitchModels {
		server, own := valueOf(iswitchAsyncMillions[i][0]), iswitchWorkers*valueOf(iswitchAsyncMillions[i][1])
		async, sync := iswitchAsyncHours[i][1], iswitchSyncHours[i][2]
		saved := Claim{Column: model, Unit: "%", Kind: Trend, Side: Above, Neighbour: &Neighbour{}, Expect: expect[i],
			Explanation: "how many fewer gradients asynchronous iSwitch uses than the server; the text claims fewer " +
				"iterations because of fresher gradients",
			Disagreement: fmt.Sprintf(
				"an iteration has 1 gradient with the server and %d with iSwitch: %.2f M against %.2f M",
				iswitchWorkers,
				server, own)}
		fewer.cells = append(fewer.cells, arithmeticClaim(saved, 100*(1-own/server), ""))
		sooner.cells = append(sooner.cells, arithmeticClaim(Claim{Column: model, Unit: "x", Kind: Trend, Side: Below,
			Neighbour: &Neighbour{Is: 1}, Expect: Opposite,
			Explanation: "the hours of asynchronous over those of synchronous iSwitch, which §6.1 declines to compare; " +
				"asynchronous training is meant to save waiting",
			Disagreement: fmt.Sprintf("asynchronous iSwitch trains longer: %s h against %s h", async, sync)},
			ratioOf(async, sync), ""))
	}
	given := arithmeticClaim(Claim{Column: "most", Printed: "3", Unit: "iterations", Kind: Value,
		Neighbour: &Neighbour{}, Expect: Match,
		Explanation: "if four workers take turns, the three others commit between two gradients of one worker",
		Disagreement: "the asynchronous server gets S = 3 “for fairness”, but with 4 workers it never exceeds 3, as " +
			"the sentence itself says"}, iswitchWorkers-1, "")
	return []row{fewer, sooner, {artefact: "text", row: "staleness of the server", source: source, cells: []Claim{given}}}
}
