package paper

import (
	"maps"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
)

// slug is the form of a row's or column's name inside an id.
func slug(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "_")) }

// Ours are measured values by claim id. A claim that Holds takes 1 when it does and 0 when it does not.
type Ours map[string]results.Statistic

// Shape is the statistic of an ordering: 1 when it holds, else 0.
func Shape(holds bool) results.Statistic {
	v := results.Float(0)
	if holds {
		v = 1
	}
	return results.Describe([]results.Float{v}, "")
}

// Compare sets ours beside every claim that the given experiments stand beside (olaf/table1), in the papers' order; with
// none given, beside all of them.
// A claim without a value of ours is not testable here, and the note says why.
func Compare(ours Ours, experiments ...string) []results.PaperRow {
	claims := Claims()
	byID := make(map[string]*Claim, len(claims))
	for i := range claims {
		byID[claims[i].ID] = &claims[i]
	}
	var rows []results.PaperRow
	for i := range claims {
		c := &claims[i]
		if len(experiments) > 0 && !slices.Contains(experiments, ExperimentOf(c.ID)) {
			continue
		}
		value, measured := ours[c.ID]
		if !measured {
			value = results.Describe(nil, "not measured")
		}
		row := results.PaperRow{ID: c.ID, Artefact: c.Artefact, Row: c.Row, Column: c.Column, Unit: c.Unit, Source: c.Source,
			Published: results.Float(c.Value), Ours: value, DeviationPct: results.Missing(), TolerancePct: results.Float(c.TolerancePct)}
		if c.Relation != Equals {
			row.TolerancePct = results.Missing()
		}
		if value.Known() && c.Relation != Holds && c.Value != 0 {
			row.DeviationPct = 100 * (value.Mean - row.Published) / row.Published
		}
		row.Verdict = string(judge(c, ours, byID))
		row.Note = note(c, &value)
		rows = append(rows, row)
	}
	return rows
}

// judge is the verdict over one claim.
func judge(c *Claim, ours Ours, byID map[string]*Claim) Verdict {
	value := ours[c.ID]
	if !value.Known() {
		return NotTestable
	}
	v := float64(value.Mean)
	if within(c, v) {
		return Reproduced
	}
	if c.Relation == Holds {
		return Deviates
	}
	// Without a neighbour in the paper the direction is the sign.
	direction, published := v, c.Value
	if other := byID[c.Against]; other != nil {
		beside := ours[c.Against]
		if !beside.Known() {
			return Deviates
		}
		direction, published = v-float64(beside.Mean), c.Value-other.Value
	}
	if direction*published > 0 {
		return SameDirection
	}
	return Deviates
}

func within(c *Claim, v float64) bool {
	switch c.Relation {
	case AtLeast:
		return v >= c.Value
	case AtMost:
		return v <= c.Value
	case Holds:
		return v == 1
	}
	room := c.TolerancePct / 100 * abs(c.Value)
	if below := abs(v) < abs(c.Value); below && c.TolerancePct >= 100 {
		// So wide a tolerance means a factor, and a factor of 2 below is half, not nothing.
		room = abs(c.Value) - abs(c.Value)/(1+c.TolerancePct/100)
	}
	// A hair of room, so that a value at the very edge does not depend on rounding.
	return abs(v-c.Value) <= room*(1+1e-12)
}

func abs(v float64) float64 { return max(v, -v) }

// note says what a reader must know beside the number.
func note(c *Claim, value *results.Statistic) string {
	var parts []string
	switch {
	case c.Untestable != "":
		parts = append(parts, c.Untestable)
	case !value.Known() && c.Elsewhere != "":
		parts = append(parts, "measured by "+c.Elsewhere)
	case !value.Known() && value.Reason != "":
		parts = append(parts, value.Reason)
	}
	if c.Why != "" && c.Untestable == "" {
		parts = append(parts, c.Why)
	}
	if c.Inconsistency != "" {
		parts = append(parts, c.Inconsistency)
	}
	return strings.Join(parts, "; ")
}

// rank orders verdicts from best to worst; what was not measured is neither.
func rank(v Verdict) int {
	return slices.Index([]Verdict{Reproduced, SameDirection, Deviates}, v)
}

// Misses lists the rows whose verdict is worse than the reproduction study found reachable. What was not measured is
// not a miss.
func Misses(rows []results.PaperRow) []results.PaperRow {
	expect := map[string]Verdict{}
	for _, c := range Claims() {
		expect[c.ID] = c.Expect
	}
	var out []results.PaperRow
	for _, r := range rows {
		if v := Verdict(r.Verdict); v != NotTestable && rank(v) > max(rank(expect[Canonical(r.ID)]), 0) {
			out = append(out, r)
		}
	}
	return out
}

// FromBench takes what a bench measured as values of every claim that it reaches.
func FromBench(b *results.Bench) Ours {
	ours := Ours{}
	for _, p := range papers() {
		if p.measured != nil {
			maps.Copy(ours, p.measured(b))
		}
	}
	return ours
}

// RightOf says whether distribution a lies stochastically right of b: nowhere above it, and somewhere below.
func RightOf(a, b []results.CDFPoint) bool {
	at := func(points []results.CDFPoint, i int) results.Float {
		if i < len(points) {
			return points[i].P
		}
		return 1
	}
	below := false
	for i := range max(len(a), len(b)) {
		if at(a, i) > at(b, i) {
			return false
		}
		below = below || at(a, i) < at(b, i)
	}
	return below
}
