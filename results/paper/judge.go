package paper

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/results"
)

// slug converts the name of a row or column to the form used in ids.
func slug(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "_")) }

// Measured is our result for a claim. For a trend it is the quantity to compare with the neighbour, such as a
// difference.
type Measured struct {
	results.Statistic
	// Short explains how the runs were shortened, so that they do not support a verdict; empty for runs of full length.
	Short string
	// Breaks explains why a trend is broken although the number is on the claimed side, such as by a step in the other
	// direction.
	Breaks string
	// Others contains the same number under other assumptions.
	Others []Other
}

// Other is our result under another assumption than the judged result.
type Other struct {
	Assumption string
	results.Statistic
	Breaks string
	// Judged requests a verdict under this assumption too.
	Judged bool
}

// Ours contains our results by claim id.
type Ours map[string]Measured

// Of returns a Measured that contains only a statistic.
func Of(s results.Statistic) Measured { return Measured{Statistic: s} }

// MarkShortened records in all results how their runs were shortened, and returns the results. If how is empty, nothing
// is changed.
func (o Ours) MarkShortened(how string) Ours {
	for id, m := range o {
		m.Short = how
		o[id] = m
	}
	return o
}

// Compare compares our results with all claims of the given experiments, such as olaf/table1, or with all claims if no
// experiments are given. The rows are in the order of the papers. A claim for which we have no result is not testable
// here, and its note contains the reason.
func Compare(ours Ours, experiments ...string) []results.PaperRow {
	claims := ListClaims()
	byID := make(map[string]*Claim, len(claims))
	for i := range claims {
		byID[claims[i].ID] = &claims[i]
	}
	var rows []results.PaperRow
	for i := range claims {
		if c := &claims[i]; len(experiments) == 0 || slices.Contains(experiments, ExperimentOf(c.ID)) {
			rows = append(rows, rowOf(c, ours, byID))
		}
	}
	markRepeats(rows)
	return rows
}

// markRepeats finds rows of the same artefact in which our number is the same to nine digits, and refers from each to
// the first. A model cannot distinguish such rows, so they count as one result. Numbers that do not depend on our
// models are skipped.
func markRepeats(rows []results.PaperRow) {
	type number struct{ experiment, unit, mean, sd string }
	digits := func(f results.Float) string { return strconv.FormatFloat(float64(f), 'g', 9, 64) }
	first := map[number]string{}
	for i := range rows {
		r := &rows[i]
		if b := Basis(r.Basis); !r.Ours.Known() || b != Calibrated && b != Predicted {
			continue
		}
		n := number{ExperimentOf(r.ID), r.Unit, digits(r.Ours.Mean), digits(r.Ours.SD)}
		if id, again := first[n]; again {
			r.SameAs = id
			r.Note = strings.TrimSuffix("same number as "+id+"; "+r.Note, "; ")
			continue
		}
		first[n] = r.ID
	}
}

// rowOf returns the row that compares our result with claim c.
func rowOf(c *Claim, ours Ours, byID map[string]*Claim) results.PaperRow {
	m, measured := ours[c.ID]
	switch {
	case c.Basis == Arithmetic:
		m.Statistic, m.Short, m.Breaks = results.Statistic{Mean: results.Float(c.Follows), SD: results.Missing(),
			CI95: 0, Min: results.Float(c.Follows), Max: results.Float(c.Follows), N: 1}, "", ""
	case !measured:
		m = Of(results.Describe(nil, "not measured"))
	}
	b := findReference(c, ours, byID, "")
	row := results.PaperRow{ID: c.ID, Artefact: c.Artefact, Row: c.Row, Column: c.Column, Unit: c.Unit, Source: c.Source,
		Basis: string(c.Basis), Kind: string(c.Kind), Side: string(c.Side), Published: results.Float(c.Value),
		Rounding: results.Float(c.Rounding),
		Than:     results.Missing(), Ours: m.Statistic, DeviationPct: c.deviation(&m.Statistic),
		Expected: string(c.Expect), Contradiction: cmp.Or(c.Contradiction, c.Disagreement)}
	if n := c.Neighbour; n != nil {
		if row.Neighbour = n.ID; n.ID == "" {
			row.Than = results.Float(n.Is)
		}
	}
	verdict, reason := c.judge(&m, b)
	row.Verdict, row.Note = string(verdict), c.note(reason)
	for i := range m.Others {
		o := &m.Others[i]
		s := results.Sensitivity{Assumption: o.Assumption, Ours: o.Statistic}
		if o.Judged {
			v, _ := c.judge(&Measured{Statistic: o.Statistic, Short: m.Short, Breaks: o.Breaks}, findReference(c, ours, byID,
				o.Assumption))
			s.Verdict = string(v)
		}
		row.Sensitivity = append(row.Sensitivity, s)
	}
	return row
}

// reference is the reference for results that cannot be judged by their own value. ours is our value of the neighbour.
// side is the side of the neighbour on which the paper's number is, or 0 if it is on neither.
type reference struct {
	ours results.Statistic
	side float64
}

// findReference returns the reference for a claim, or nil if it has none. If there is a value of the neighbour under
// the given assumption, it is used, and otherwise the judged value.
func findReference(c *Claim, ours Ours, byID map[string]*Claim, assumption string) *reference {
	n := c.Neighbour
	if n == nil {
		return nil
	}
	b := &reference{ours: exactStatistic(n.Is)}
	published := n.Is
	if other := byID[n.ID]; other != nil {
		b.ours, published = ours[n.ID].under(assumption), other.Value
	}
	switch {
	case c.Side == Above, c.Side == "" && c.Value > published:
		b.side = 1
	case c.Side == Below, c.Value < published:
		b.side = -1
	}
	return b
}

// under returns the statistic under the given assumption, or the judged one if there is none.
func (m Measured) under(assumption string) results.Statistic {
	for i := range m.Others {
		if m.Others[i].Assumption == assumption {
			return m.Others[i].Statistic
		}
	}
	return m.Statistic
}

// exactStatistic returns a statistic for an exact number, without an interval.
func exactStatistic(v float64) results.Statistic {
	return results.Statistic{Mean: results.Float(v), N: 1}
}

// judge returns the verdict on our result for a claim. If the number itself was not judged, it also returns the reason.
func (c *Claim) judge(m *Measured, b *reference) (Verdict, string) {
	switch {
	case c.Contradiction != "":
		return Contradiction, c.Contradiction
	case c.Untestable != "":
		return c.Expect, c.Untestable
	case !m.Known():
		return LeftOut, cmp.Or(m.Reason, "not measured")
	case m.Short != "":
		return TooShort, m.Short
	case m.N < c.Seeds:
		return c.judgeFew(m, b)
	}
	return c.decide(m, b)
}

// decide returns the verdict on our result for a claim, and the reason if there is one. It does not consider whether
// the result has enough runs.
func (c *Claim) decide(m *Measured, b *reference) (Verdict, string) {
	switch c.Kind {
	case Bound:
		return c.judgeBound(&m.Statistic), ""
	case Value:
		if v := c.judgeValue(&m.Statistic); v != "" {
			return v, ""
		}
	}
	v, reason := b.judgeTrend(m)
	if v == TrendOnly && c.Kind == Trend {
		v = Holds
	}
	return v, reason
}

// judgeFew returns the verdict on a result that has fewer runs than the claim needs. The verdict is used only if more
// runs are unlikely to change it. This is the case if the verdict is the same when the mean is moved to either end of
// its interval.
func (c *Claim) judgeFew(m *Measured, b *reference) (Verdict, string) {
	few := fmt.Sprintf("%d of %d runs", m.N, c.Seeds)
	v, reason := c.decide(m, b)
	if v == Differs || !m.CI95.Known() {
		return TooShort, few
	}
	for _, end := range []results.Float{-1, 1} {
		shifted := *m
		shifted.Mean += end * m.CI95
		if at, _ := c.decide(&shifted, b); at != v {
			return TooShort, few
		}
	}
	if reason != "" {
		few += "; " + reason
	}
	return v, few + ", and both ends of the interval agree"
}

// isOnOtherSide reports whether v and the printed value are on different sides of the claim's reference number, such as
// a slowdown where the paper has a speed-up. It returns false if the reference is another result.
func (c *Claim) isOnOtherSide(v float64) bool {
	n := c.Neighbour
	return n != nil && n.ID == "" && c.Value != n.Is && (v-n.Is)*(c.Value-n.Is) <= 0
}

// scale returns the value to judge, which for a fairness index is its distance to 1.
func (c *Claim) scale(v float64) float64 {
	if c.Unfairness {
		return 1 - v
	}
	return v
}

// deviation returns the deviation of our scaled value from the published one, in percent.
func (c *Claim) deviation(ours *results.Statistic) results.Float {
	published := c.scale(c.Value)
	if published == 0 {
		return results.Missing()
	}
	return results.Float(100 * (c.scale(float64(ours.Mean)) - published) / published) // missing if either number is
}

// Limits for verdicts on values, relative to the published value, and a small margin so that the verdict on a value at
// a limit does not depend on rounding.
const (
	matchLimit = 0.02
	nearLimit  = 0.10
	factor     = 2
	hair       = 1 + 1e-12
)

// judgeValue returns the verdict on a value that deviates by at most a factor and is on the same side of its neighbour
// as the printed value. It returns "" for other values.
func (c *Claim) judgeValue(ours *results.Statistic) Verdict {
	v, published := c.scale(float64(ours.Mean)), c.scale(c.Value)
	off, size := math.Abs(v-published), float64(math.Abs(published)*hair)
	// covered means that the printed value, up to the paper's rounding, is in our interval.
	covered := ours.CI95.Known() && off <= (float64(ours.CI95)+c.Rounding)*hair
	switch {
	case c.isOnOtherSide(float64(ours.Mean)):
		return ""
	case off <= nearLimit*size && c.isPrecise(ours) && (covered || off <= matchLimit*size):
		return Match
	case off <= nearLimit*size:
		return Near
	case c.Neighbour != nil && c.Neighbour.ID == "" && c.Value == c.Neighbour.Is:
		return "" // neither number is printed
	case v*published > 0 && math.Abs(v) <= factor*size && size <= factor*math.Abs(v)*hair*hair:
		return WithinTwo
	}
	return ""
}

// isPrecise reports whether our result is precise enough for a match, because a wide interval alone must not be a
// match. A number without randomness is exact after one run.
func (c *Claim) isPrecise(ours *results.Statistic) bool {
	if !ours.CI95.Known() {
		return c.Seeds <= 1
	}
	return float64(ours.CI95) <= matchLimit*math.Abs(c.scale(c.Value))*hair
}

// judgeBound returns the verdict on a bound. The bound is met or missed if the complete interval is on one side of it.
func (c *Claim) judgeBound(ours *results.Statistic) Verdict {
	side := 1.0
	if c.Side == Below {
		side = -1
	}
	return decideSide(float64(side*(float64(ours.Mean)-c.Value)), float64(ours.CI95), BoundMet, BoundMissed)
}

// judgeTrend returns the verdict on a trend. It uses the interval of the difference to the neighbour.
func (b *reference) judgeTrend(m *Measured) (Verdict, string) {
	switch {
	case b == nil, !b.ours.Known():
		return Differs, "the result to compare it with was not measured"
	case b.side == 0:
		return Differs, "the paper's number equals its neighbour's"
	}
	mean, half := difference(&m.Statistic, &b.ours)
	v := decideSide(float64(b.side*mean), half, TrendOnly, Opposite)
	if v == TrendOnly && m.Breaks != "" {
		v = Differs
	}
	return v, m.Breaks
}

// decideSide returns the verdict on a difference whose claimed sign is positive. If the interval excludes 0, the
// verdict is claimed or other. If it includes 0, or half is NaN, the verdict is Differs.
func decideSide(mean, half float64, claimed, other Verdict) Verdict {
	switch {
	case mean-half > 0:
		return claimed
	case mean+half < 0:
		return other
	}
	return Differs
}

// confidence is the confidence level of all intervals.
const confidence = 0.95

// difference returns a − b with the half-width of its interval. It uses Welch's method, which needs neither equal
// variances nor pairs. half is NaN if a or b has no interval.
func difference(a, b *results.Statistic) (mean, half float64) {
	mean = float64(a.Mean - b.Mean)
	if b.SD == 0 {
		return mean, float64(a.CI95)
	}
	ofA, ofB := exactmath.Pow(float64(a.SD), 2)/float64(a.N), exactmath.Pow(float64(b.SD), 2)/float64(b.N)
	freedom := exactmath.Pow(ofA+ofB, 2) / (float64(ofA*ofA)/float64(a.N-1) + float64(ofB*ofB)/float64(b.N-1))
	if math.IsNaN(freedom) { // one of the two has a single run
		return mean, math.NaN()
	}
	return mean, float64(exactmath.StudentQuantile(freedom, 1-(1-confidence)/2) * math.Sqrt(ofA+ofB))
}

// note returns the remarks on a result. They explain why it was not judged, how the statement is read or what prevents
// a match, and oddities of the publication.
func (c *Claim) note(reason string) string {
	var parts []string
	for _, part := range []string{reason, c.Explanation, c.Disagreement, c.Inconsistency} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// FindMisses returns the rows whose verdict is worse than the claim's expectation. Results with fewer runs than needed
// are not misses.
func FindMisses(rows []results.PaperRow) []results.PaperRow {
	claims := ClaimsByID()
	var out []results.PaperRow
	for _, r := range rows {
		if c, ok := claims[Canonical(r.ID)]; ok && r.Ours.N >= c.Seeds && c.worse(Verdict(r.Verdict)) {
			out = append(out, r)
		}
	}
	return out
}

// JudgeAgain returns the rows of a stored document with verdicts under current rules. It uses the numbers that bench
// measured, and otherwise those in the rows. Some rows cannot be judged again: trends of the first version, which
// stored only whether they held, and numbers whose definition has changed. Rows of removed claims are dropped.
func JudgeAgain(rows []results.PaperRow, bench *results.Bench) []results.PaperRow {
	claims := ClaimsByID()
	measured, ours, kept := FromBench(bench), Ours{}, map[string]bool{}
	for i := range rows {
		id := Canonical(rows[i].ID)
		c, ok := claims[id]
		m, again := measured[id]
		switch {
		case !ok:
			continue
		case again:
			ours[id] = m
		case c.Kind == Trend, c.Renewed != "":
			ours[id] = Of(results.Describe(nil, "stored by an earlier olafctl: "+
				cmp.Or(c.Renewed, "it stored only whether the trend held")+"; run it again"))
		default:
			ours[id] = Of(rows[i].Ours)
		}
		kept[id] = true
	}
	return slices.DeleteFunc(Compare(ours), func(r results.PaperRow) bool { return !kept[r.ID] })
}

// FromBench returns a bench's results for all claims that the bench covers.
func FromBench(b *results.Bench) Ours {
	ours := Ours{}
	for _, p := range listPapers() {
		if p.measured != nil {
			maps.Copy(ours, p.measured(b))
		}
	}
	return ours
}

// RightOf reports whether distribution a is stochastically greater than b. This is the case if the CDF of a is nowhere
// above the CDF of b, and somewhere below it.
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
