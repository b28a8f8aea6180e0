package paper

import "slices"

// causeHosts is the heading in docs/notes/reproduction.md under which iSwitch's times are explained.
const causeHosts = "Host time per message"

// jobSeeds is the number of runs for each of iSwitch's times. One is enough, because these runs have no randomness.
const jobSeeds = 1

// iswitchModels lists the models in the columns of iSwitch's tables. The hosts' costs were fitted to the first and the
// third model.
var iswitchModels = []string{"dqn", "a2c", "ppo", "ddpg"}

// fittedOr returns the basis for numbers of the i-th model, which depends on whether the hosts' costs were fitted to
// this model.
func fittedOr(i int) Basis {
	if i%2 == 0 {
		return Calibrated
	}
	return Predicted
}

// iswitchPaper returns the claims from "Accelerating Distributed Reinforcement Learning with In-Switch Computing"
// (ISCA'19).
func iswitchPaper() Paper {
	const sizes, property = "iSwitch (ISCA'19)", "a property of its models"
	return Paper{Name: "iswitch", was: iswitchWas, rows: slices.Concat(
		iswitchTable3(), iswitchTable4(), iswitchTable5(), iswitchFigures(), iswitchBoard(), iswitchRatios(), iswitchAsynchrony(),
		iswitchTrainings(),
		[]row{{artefact: "table1", row: "model size", source: sizes, cells: slices.Concat(
			theirMachineClaims("MB", property, iswitchModels[:2], "6.41", "3.31"), theirMachineClaims("kB", property,
				iswitchModels[2:], "40.02", "157.52"))}},
	)}
}

// iswitchWas returns the id that a claim had before ids contained the paper's name. Only claims on Tables 1 and 3 had
// one.
func iswitchWas(r *row, column string) string {
	if r.artefact != "table1" && r.artefact != "table3" {
		return ""
	}
	return oldSystemID("iswitch")(r, column)
}

// Numbers printed in iSwitch's tables, one per model, for the arithmetic below.
var (
	iswitchSync      = [4]string{"3.66", "2.55", "1.72", "1.83"} // speed-ups over the server, Table 3
	iswitchAllReduce = [4]string{"1.97", "1.62", "0.91", "0.90"}
	iswitchAsync     = [4]string{"3.71", "3.14", "1.92", "1.56"}
	// iswitchSyncHours contains, for each model, the hours of training with a server, with AllReduce and with iSwitch
	// (Table 4).
	iswitchSyncHours = [4][3]string{{"31.72", "16.08", "8.66"}, {"2.87", "1.78", "1.12"}, {"0.39", "0.42", "0.22"},
		{"8.07", "9.01", "4.40"}}
	// iswitchAsyncHours contains, for each model, the hours of asynchronous training with a server and with iSwitch
	// (Table 5).
	iswitchAsyncHours = [4][2]string{{"43.54", "11.74"}, {"4.38", "1.39"}, {"0.51", "0.27"}, {"9.65", "6.20"}}
)

// iswitchTable3 returns the claims on speed-ups over the parameter server, with one column per model.
func iswitchTable3() []row {
	const why = "a ratio of two times, each of which depends on the hosts' time per message"
	speedups := func(name string, printed [4]string, expect [4]Verdict) row {
		var cells []Claim
		for i, model := range iswitchModels {
			cells = append(cells, withBasis(fittedOr(i), jobSeeds, Claim{Column: model, Printed: printed[i], Unit: "x",
				Kind: Value, Expect: expect[i],
				Explanation: why, Cause: causeHosts, Neighbour: &Neighbour{Is: 1}})...)
		}
		return row{artefact: "table3", row: name, source: "iSwitch (ISCA'19), Table 3", cells: cells}
	}
	return []row{
		speedups("sync speedup over ps", iswitchSync, [4]Verdict{Near, WithinTwo, Near, Near}),
		speedups("allreduce speedup over ps", iswitchAllReduce, [4]Verdict{Near, Near, Near, Near}),
		speedups("async speedup over ps", iswitchAsync, [4]Verdict{Near, WithinTwo, Near, Opposite}),
	}
}

// approaches maps each column of Tables 4 and 5 to the column with which it is compared.
var approaches = map[string]string{"ps": "ar", "ar": "ps", "isw": "ps"}

// iswitchTable4 returns the claims on the hours of synchronous training, with one row per model.
func iswitchTable4() []row {
	const why = "the hosts' time per message was fitted to DQN and PPO; the number of iterations is the paper's, so " +
		"the hours deviate as much as one iteration"
	expect := [4][3]Verdict{{Near, Near, Match}, {Near, Near, Near}, {Near, Near, Match}, {WithinTwo, WithinTwo,
		WithinTwo}}
	var rows []row
	for i, model := range iswitchModels {
		var cells []Claim
		for k, column := range []string{"ps", "ar", "isw"} {
			cells = append(cells, valueClaim(column, iswitchSyncHours[i][k], "h", expect[i][k], why, causeHosts,
				"table4."+model+"."+approaches[column]))
		}
		rows = append(rows, row{artefact: "table4", row: model, source: "iSwitch (ISCA'19), Table 4",
			cells: withBasis(fittedOr(i), jobSeeds, cells...)})
	}
	return rows
}

// iswitchTable5 returns the claims on the intervals between asynchronous updates, with one row per model.
func iswitchTable5() []row {
	const server = "the server's time per update was fitted to DQN and PPO"
	printed := iswitchIntervals
	expect := [4]Verdict{Near, WithinTwo, Near, WithinTwo}
	var rows []row
	for i, model := range iswitchModels {
		isw := valueClaim("isw", printed[i][1], "ms", Match,
			"an input: the computing time of a gradient was derived from it", "", "table5."+model+".ps")
		isw.Disagreement = "by the paper's own hours, asynchronous iSwitch trains longer than synchronous iSwitch"
		rows = append(rows, row{artefact: "table5", row: model, source: "iSwitch (ISCA'19), Table 5", cells: slices.Concat(
			withBasis(fittedOr(i), jobSeeds, valueClaim("ps", printed[i][0], "ms", expect[i], server, causeHosts,
				"table5."+model+".isw")),
			withBasis(Input, jobSeeds, isw))})
	}
	return rows
}

// iswitchFigures returns the claims on the ranges in the text about Fig. 12, and on the order of the curves in Fig. 15.
func iswitchFigures() []row {
	const source, why = "iSwitch (ISCA'19), §6.1", "the least or most of four training runs, two of which are fitted"
	span := func(name, least, most string, expect [2]Verdict) row {
		var cells []Claim
		for i, c := range []Claim{{Column: "least", Printed: least}, {Column: "most", Printed: most}} {
			c.Unit, c.Kind, c.Expect, c.Explanation, c.Cause, c.Neighbour = "%", Value, expect[i], why, causeHosts, &Neighbour{}
			cells = append(cells, c)
		}
		return row{artefact: "fig12", row: name, source: source, cells: withBasis(Calibrated, jobSeeds, cells...)}
	}
	overAR := span("iteration below ar", "36.7", "48.9", [2]Verdict{WithinTwo, Contradiction})
	overAR.cells[1].Contradiction = "4.40 h of 9.01 h in Table 4 are 51.2 % less, for DDPG"
	overPS := span("aggregation below ps", "81.6", "85.8", [2]Verdict{Near, Near})
	overPS.cells[1].Disagreement = "with DQN's 72.7 % shorter iteration, aggregation would be 84.7 to 89.1 % of the " +
		"server's iteration; the text has at most 83.2 %"
	order := func(model string) row {
		trend := func(column string) Claim {
			return Claim{Column: column, Unit: "x", Kind: Trend, Side: Above, Neighbour: &Neighbour{}, Expect: Holds,
				Explanation: "the difference of the speed-ups from 4 to 12 workers, which the figure shows without numbers"}
		}
		return row{artefact: "fig15", row: model, source: "iSwitch (ISCA'19), Fig. 15", cells: withBasis(Predicted,
			jobSeeds, trend("isw over ps"), trend("ps over ar"))}
	}
	return []row{
		span("iteration below ps", "41.9", "72.7", [2]Verdict{WithinTwo, Near}), overAR, overPS,
		span("aggregation below ar", "63.4", "87.9", [2]Verdict{WithinTwo, WithinTwo}),
		order("ppo"), order("ddpg"),
	}
}
