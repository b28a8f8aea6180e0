package paper

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Headings in docs/notes/reproduction.md about P4INC-AOI's numbers.
const (
	causeLoad    = "Load from P4INC-AOI's jobs"
	causeTestbed = "Jobs in P4INC-AOI's testbed"
	causeOptics  = "Initial connections in P4INC-AOI"
)

// planSeeds is the number of workloads per number of P4INC-AOI. proofSeeds is the number of these workloads that are
// given to a solver.
const (
	planSeeds  = 10
	proofSeeds = 3
)

// p4incPaper returns the claims from "P4INC-AOI: All-Optical Interconnect Empowered by In-Network Computing for DML
// Workloads".
func p4incPaper() Paper {
	return Paper{Name: "p4inc", was: p4incWas, rows: slices.Concat(p4incTable1(), p4incTestbed(),
		p4incSimulations(), p4incShapes())}
}

// p4incWas returns the id that a claim had before ids contained the paper's name.
func p4incWas(r *row, column string) string {
	return map[string]string{
		"fig7.inc_under_tw.resnet50": "p4inc-aoi.completion_time_saved.resnet50",
		"fig7.inc_under_tw.vgg16":    "p4inc-aoi.completion_time_saved.vgg16",
		"table1.50_jobs.tw_gap":      "p4inc-aoi.heuristic_above_optimum.least",
		"table1.40_jobs.tw_gap":      "p4inc-aoi.heuristic_above_optimum.most",
		"table1.50_jobs.tw_time":     "p4inc-aoi.heuristic_time.about",
	}[r.artefact+"."+r.slug()+"."+column]
}

// table1Line is a row of Table I as it is printed. For more than 60 jobs it has no values for MILP.
type table1Line struct {
	jobs                        int
	milp, fcfs, tw, still       string // CT-BTI in s; still is without reconfigurations
	took                        [4]string
	gaps                        [3]string
	milpAOI, fcfsAOI, twAOI     string
	expectMILP                  Verdict
	expectFCFS, expectTW, never Verdict
}

func p4incTable1() []row {
	const source = "P4INC-AOI, Table I"
	rows := []row{}
	for _, l := range []table1Line{
		{40, "3.4", "6.0", "4.1", "5.1", [4]string{"84.6", "0.6", "0.8", "0.7"}, [3]string{"43.3", "17.1", "33.3"},
			"1", "1", "1", WithinTwo, WithinTwo, WithinTwo, WithinTwo},
		{50, "6.9", "11.2", "8.2", "9.8", [4]string{"105.3", "0.8", "1.0", "0.9"}, [3]string{"38.4", "15.9", "29.6"},
			"1", "1", "1", WithinTwo, Differs, WithinTwo, Differs},
		{60, "14.8", "23.8", "17.7", "21.7", [4]string{"357.5", "0.9", "1.1", "1.0"}, [3]string{"37.8", "16.4",
			"31.8"}, "1", "2", "2", Differs, Differs, Differs, Differs},
		{80, "", "29.9", "19.8", "21.7", [4]string{"", "1.3", "1.5", "1.4"}, [3]string{}, "", "5", "4", "", Differs,
			Differs, Differs},
		{100, "", "31.8", "26.7", "30.7", [4]string{"", "1.6", "2.1", "1.7"}, [3]string{}, "", "11", "5", "", Differs,
			Differs, Differs},
	} {
		rows = append(rows, row{artefact: "table1", row: fmt.Sprintf("%d jobs", l.jobs), source: source, cells: l.claims()})
	}
	const text = "P4INC-AOI, §VII-C"
	span := func(column, printed string) Claim {
		return Claim{Column: column, Printed: printed, Unit: "%", Kind: Value, Neighbour: &Neighbour{},
			Expect: Differs, Cause: causeLoad,
			Explanation: "how much longer the jobs take without reconfigurations than with TW; the text divides by TW here, " +
				"but by the larger number in the table"}
	}
	return append(rows, row{artefact: "table1", row: "norecon over tw", source: text,
		cells: unmovedClaims(span("least", "9.6"), span("most", "24.4"))})
}

// unmovedClaims sets the basis of claims on numbers that stay 0 if any rate, size or time is doubled or halved. With
// the printed parameters, jobs hardly wait, so that both policies make the same plans.
func unmovedClaims(claims ...Claim) []Claim {
	for i := range claims {
		claims[i].Basis, claims[i].Seeds = Arithmetic, 0
		claims[i].Explanation += "; 0 even if any rate, size or time is doubled or halved, because both policies make the " +
			"same plans when jobs hardly wait"
	}
	return claims
}

// claims returns the claims on the numbers in a row, column by column.
func (l *table1Line) claims() []Claim {
	const machine = "the time of their solver and their Python code on their machine; docs/papers/p4inc.md has our " +
		"times"
	at := fmt.Sprintf("table1.%d_jobs.", l.jobs)
	seconds := func(column, printed, beside string, expect Verdict) Claim {
		c := valueClaim(column+" ct bti", printed, "s", expect,
			"with the printed capacities, jobs wait for little except their own interfaces; the paper does not print "+
				"what made its jobs wait", causeLoad, at+beside+"_ct_bti")
		if l.jobs == 60 && column != "norecon" {
			c.Disagreement = "ten more jobs than in the line above, at most 0.7 Tb, double the time"
		}
		if l.jobs == 80 && column == "norecon" {
			c.Disagreement = "21.7 s are printed for 60 and for 80 jobs"
		}
		return c
	}
	connections := func(column, printed, beside string) Claim {
		c := valueClaim(column+" aoi", printed, "connections", Differs,
			"set up from an even mesh; the paper does not print its initial connections", causeOptics, at+beside+"_aoi")
		if column == "milp" {
			c.Disagreement = "called the minimum, but the printed objective does not count reconfigurations"
		}
		return c
	}
	var cells []Claim
	if l.milp != "" {
		cells = append(withBasis(Predicted, proofSeeds, seconds("milp", l.milp, "tw", l.expectMILP),
			connections("milp", l.milpAOI, "tw")), theirMachineClaims("s", machine, []string{"milp time"}, l.took[0])...)
	}
	cells = append(cells, withBasis(Predicted, planSeeds,
		seconds("fcfs", l.fcfs, "tw", l.expectFCFS), connections("fcfs", l.fcfsAOI, "tw"),
		seconds("tw", l.tw, "fcfs", l.expectTW), connections("tw", l.twAOI, "fcfs"),
		seconds("norecon", l.still, "tw", l.never))...)
	cells = append(cells, theirMachineClaims("s", machine, []string{"fcfs time", "tw time", "norecon time"},
		l.took[1:]...)...)
	for i, heuristic := range []struct{ name, took string }{{"fcfs", l.fcfs}, {"tw", l.tw}, {"norecon", l.still}} {
		if l.milp != "" {
			cells = append(cells, gapClaim(heuristic.name, l.gaps[i], heuristic.took, l.milp))
		}
	}
	return cells
}

// gapClaim returns a claim on the printed distance between a heuristic and the optimum, relative to the heuristic.
func gapClaim(heuristic, text, took, least string) Claim {
	h, _ := strconv.ParseFloat(took, 64)
	m, _ := strconv.ParseFloat(least, 64)
	follows := math.Round(1000*(h/m-1)) / 10
	return Claim{Column: heuristic + " gap", Printed: text, Unit: "%", Kind: Value, Basis: Arithmetic,
		Follows: follows, Neighbour: &Neighbour{}, Expect: Contradiction,
		Explanation: "called the gap to the optimum",
		Contradiction: fmt.Sprintf("%s s are %.1f %% above the optimum of %s s; %s divides the difference by %s",
			took, follows, least, text, took)}
}

// p4incTestbed returns the claims on Figs. 5 to 7, in which jobs with the same model run on four racks.
func p4incTestbed() []row {
	saved := func(column, printed string, expect Verdict, why string) Claim {
		return Claim{Column: column, Printed: printed, Unit: "%", Kind: Value, Neighbour: &Neighbour{},
			Expect: expect, Explanation: why, Cause: causeTestbed}
	}
	const streams = 2 // streams share an interface of 40 Gbps, compared with one each
	var speedups []Claim
	for _, m := range []struct {
		model, printed string
		expect         Verdict
	}{{"ResNet50", "1.56", WithinTwo}, {"ResNet101", "1.83", Near}, {"ResNet152", "1.65", WithinTwo},
		{"VGG11", "3.7", WithinTwo}, {"VGG16", "3.7", WithinTwo}, {"VGG19", "3.8", WithinTwo}} {
		c := Claim{Column: m.model, Printed: m.printed, Unit: "x", Kind: Value, Neighbour: &Neighbour{Is: 1},
			Expect: m.expect, Cause: causeTestbed,
			Explanation: "only the transfer of gradients: two workers of 40 Gbps into one interface of 40 Gbps, against one " +
				"interface each, which is independent of the model; computing time makes it less, and nothing on the " +
				"wire makes it more"}
		if m.printed > "2" {
			c.Inconsistency = "the network can't explain more than a factor of two; a server that adds more slowly " +
				"than its interface receives could, but is not printed"
		}
		c.Basis, c.Follows = Arithmetic, streams
		speedups = append(speedups, c)
	}
	const many = "the mean over 10, 20, 40 and 60 jobs with one iteration each; their numbers of iterations and " +
		"computing times are not printed"
	total := func(name string, resnet, vgg string, expect Verdict) row {
		cells := []Claim{saved("resnet50", resnet, expect, many), saved("vgg16", vgg, expect, many)}
		if expect == Differs {
			unmovedClaims(cells...)
		} else {
			withBasis(Predicted, planSeeds, cells...)
		}
		return row{artefact: "fig7", row: name, source: "P4INC-AOI, Fig. 7", cells: cells}
	}
	return []row{
		{artefact: "fig5", row: "speedup of inc", source: "P4INC-AOI, Fig. 5", cells: speedups},
		{artefact: "fig6", row: "reconfigurations saved", source: "P4INC-AOI, Fig. 6", cells: append(
			withBasis(Predicted, planSeeds, saved("inc", "48.8", Differs, "both policies and models, "+many)),
			unmovedClaims(saved("tw", "47.5", Differs, "with and without aggregating switches, both models, "+
				""+many))...)},
		{artefact: "fig6", row: "inc tw", source: "P4INC-AOI, Fig. 6",
			cells: unmovedClaims(aheadClaim("fewest reconfigurations", "connections", Differs, causeTestbed,
				"how many fewer than the best of the other three"))},
		total("inc under fcfs", "33.57", "43.96", TrendOnly), total("inc under tw", "46.66", "56.34", TrendOnly),
		total("tw without inc", "12.34", "12.7", Differs), total("tw with inc", "29.62", "32.0", Differs),
	}
}

// aheadClaim returns a claim that one quantity exceeds another. Our result for it is the difference.
func aheadClaim(column, unit string, expect Verdict, cause, why string) Claim {
	return Claim{Column: column, Unit: unit, Kind: Trend, Side: Above, Neighbour: &Neighbour{}, Expect: expect,
		Cause: cause, Explanation: why}
}

// p4incSimulations returns the claims on Figs. 8 and 9, in which training and MapReduce jobs run on 64 units.
func p4incSimulations() []row {
	const over8, over9 = "the mean over 800, 1000, 1200 and 1400 jobs",
		"the mean over 200, 300, 400 and 500 jobs; their number of jobs is not printed, and their trace is not part " +
			"of the text"
	saved := func(column, printed string, expect Verdict, cause, why string) Claim {
		return Claim{Column: column, Printed: printed, Unit: "%", Kind: Value, Neighbour: &Neighbour{},
			Expect: expect, Explanation: why, Cause: cause}
	}
	at := func(artefact, name string, cells ...Claim) row {
		return row{artefact: artefact, row: name, source: "P4INC-AOI, Fig. " + artefact[3:], cells: cells}
	}
	predicted := func(cells ...Claim) []Claim { return withBasis(Predicted, planSeeds, cells...) }
	const fewer, sooner = "how many fewer than the best of the other three, ",
		"how much sooner than the best of the other three, "
	return []row{
		at("fig8", "reconfigurations saved", slices.Concat(
			predicted(saved("inc under fcfs", "55.4", WithinTwo, causeOptics, over8), saved("inc under tw", "50.3",
				WithinTwo, causeOptics, over8)),
			unmovedClaims(saved("tw without inc", "92.8", Differs, causeLoad, over8), saved("tw with inc", "91.7",
				Differs, causeLoad, over8)))...),
		at("fig8", "ct bti saved", unmovedClaims(saved("tw without inc", "86.8", Differs, causeLoad, over8),
			saved("tw with inc", "85.6", Differs, causeLoad, over8))...),
		at("fig8", "inc tw", unmovedClaims(aheadClaim("fewest reconfigurations", "connections", Differs, causeLoad,
			fewer+over8), aheadClaim("shortest ct bti", "s", Differs, causeLoad, sooner+over8))...),
		at("fig8", "noinc tw", predicted(aheadClaim("sooner than inc fcfs", "s", Opposite, causeLoad,
			"how much sooner, "+over8))...),
		at("fig9", "inc tw over noinc fcfs", predicted(saved("reconfigurations saved", "89.5", WithinTwo, causeLoad,
			over9), saved("ct bti saved", "72.6", TrendOnly, causeLoad, over9))...),
		at("fig9", "inc tw", unmovedClaims(aheadClaim("fewest reconfigurations", "connections", Differs, causeLoad,
			fewer+over9), aheadClaim("shortest ct bti", "s", Differs, causeLoad, sooner+over9))...),
	}
}

// p4incScenarios lists the columns of Figs. 10 to 12.
var p4incScenarios = []string{"noinc fcfs", "noinc tw", "inc fcfs", "inc tw"}

// p4incShapes returns the claims on Figs. 10 to 12, about which the text has no numbers.
func p4incShapes() []row {
	trends := func(artefact, name, unit, why, cause string, expect [4]Verdict) row {
		r := row{artefact: artefact, row: name, source: "P4INC-AOI, Fig. " + artefact[3:]}
		for i, s := range p4incScenarios {
			if expect[i] == "" {
				continue
			}
			r.cells = append(r.cells, withBasis(Predicted, planSeeds, aheadClaim(s, unit, expect[i], cause, why))...)
		}
		return r
	}
	flat := func(artefact, name, why, cause string, columns []string, expect Verdict) row {
		r := row{artefact: artefact, row: name, source: "P4INC-AOI, Fig. " + artefact[3:]}
		for _, c := range columns {
			r.cells = append(r.cells, withBasis(Predicted, planSeeds, Claim{Column: c, Unit: "%", Kind: Trend,
				Side: Below, Neighbour: &Neighbour{Is: FlatPct}, Expect: expect, Cause: cause, Explanation: why})...)
		}
		return r
	}
	one := func(artefact, name string, cells ...Claim) row {
		return row{artefact: artefact, row: name, source: "P4INC-AOI, Fig. " + artefact[3:],
			cells: withBasis(Predicted, planSeeds, cells...)}
	}
	still := flat("fig11", "reconfigurations flat",
		"without aggregating switches, the switches' places do not matter for any model", causeLoad,
		p4incScenarios[:2], Holds)
	for i := range still.cells {
		still.cells[i].Basis, still.cells[i].Seeds, still.cells[i].Follows = Arithmetic, 0, 0
	}
	falls := trends("fig10", "ct bti falls", "s",
		"the decrease from 8 to 64 units, for 1000 jobs; an increase at any step breaks the claim", causeLoad,
		[4]Verdict{Differs, Differs, Differs, Differs})
	unmovedClaims(falls.cells[:2]...)
	beyond := flat("fig11", "flat beyond 8",
		"reconfigurations with 8 and with 16 places; the spread of the curve, in per cent of its mean; flat means "+
			"below 5",
		causeLoad, p4incScenarios[2:], Holds)
	unmovedClaims(beyond.cells...)
	const connections, s = "connections", "s"
	const grows = "the decrease from 8 to 64 units, for 1000 jobs; an increase at any step breaks the claim"
	const places = "the decrease from 1 to 16 places, for 1000 jobs; an increase at any step breaks the claim"
	const slots = "the increase from slots of 0.25 s to slots of 4 s, for 1000 jobs"
	const spread = "the spread of the curve, in per cent of its mean; flat means below 5"
	return []row{
		trends("fig10", "reconfigurations fall", connections, grows, causeOptics, [4]Verdict{Opposite, Opposite,
			Opposite, Opposite}),
		falls,
		one("fig10", "noinc tw", aheadClaim("fewer reconfigurations than inc fcfs", connections, Opposite, causeLoad,
			"how many fewer, the mean over the units"),
			aheadClaim("sooner than inc fcfs", s, Opposite, causeLoad, "how much sooner, the mean over the units")),
		one("fig10", "inc tw", aheadClaim("fewest reconfigurations", connections, Differs, causeLoad,
			"how many fewer than the best of the other three, the mean over the units")),
		trends("fig11", "reconfigurations fall", connections, places, causeLoad, [4]Verdict{"", "", Holds, Holds}),
		trends("fig11", "ct bti falls", s, places, causeLoad, [4]Verdict{"", "", Differs, Differs}),
		still,
		beyond,
		trends("fig12", "reconfigurations fall", connections,
			"the decrease from slots of 0.25 s to slots of 4 s, for 1000 jobs; an increase at any step breaks the "+
				"claim",
			causeLoad, [4]Verdict{Holds, Holds, Holds, Holds}),
		flat("fig12", "reconfigurations converge", "with slots of 2 s and of 4 s; "+spread, causeLoad, p4incScenarios, Holds),
		trends("fig12", "ct bti grows", s, slots, causeLoad, [4]Verdict{Holds, Holds, Holds, Holds}),
		{artefact: "fig12", row: "tw grows less than fcfs", source: "P4INC-AOI, Fig. 12",
			cells: unmovedClaims(aheadClaim("without inc", s, Differs, causeLoad,
				"how much less it grows from slots of 0.25 s to slots of 4 s"),
				aheadClaim("with inc", s, Differs, causeLoad, "how much less it grows from slots of 0.25 s to slots "+
					"of 4 s"))},
	}
}
