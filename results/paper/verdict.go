package paper

import "slices"

// Verdict describes how our result relates to a published number or statement.
type Verdict string

const (
	Match     Verdict = "match"      // within 2 %, or the published value is in our interval and the interval is no wider than 2 %
	Near      Verdict = "near"       // within 10 % and on the printed side of its neighbour
	WithinTwo Verdict = "within ×2"  // equal sign, at most twice or half as large, and not a slowdown for a speed-up
	Holds     Verdict = "holds"      // a claim without a number: the result is shown to be on the claimed side
	TrendOnly Verdict = "trend only" // the number is missed, but the result is shown to be on the claimed side
	Differs   Verdict = "differs"    // neither side is shown
	Opposite  Verdict = "opposite"   // shown to be on the other side

	BoundMet    Verdict = "bound met"
	BoundMissed Verdict = "bound missed"

	TooShort Verdict = "too short"            // runs are fewer or shorter than the number needs
	LeftOut  Verdict = "left out by this run" // this run did not measure it, although it can be measured here
	// NotTestable is the verdict on claims that need something that is not available here, such as a card, a cluster or
	// a synthesis.
	NotTestable   Verdict = "not testable here"
	TheirMachine  Verdict = "property of their machine" // no statement about the system: other machines differ
	Contradiction Verdict = "contradiction"             // excluded by other printed numbers
)

// orders contains the verdicts on results for each kind of claim, from best to worst.
var orders = map[Kind][]Verdict{
	Value: {Match, Near, WithinTwo, TrendOnly, Differs, Opposite},
	Trend: {Holds, Differs, Opposite},
	Bound: {BoundMet, Differs, BoundMissed},
}

// Grade is the colour class of a verdict: good, fair, bad, or empty for verdicts without a comparison.
type Grade string

const (
	Good Grade = "good"
	Fair Grade = "fair"
	Bad  Grade = "bad"
)

// Grade returns the colour class in which reports and the dashboard show the verdict.
func (v Verdict) Grade() Grade {
	switch v {
	case Match, Near, BoundMet, Holds:
		return Good
	case WithinTwo, TrendOnly:
		return Fair
	case Differs, Opposite, BoundMissed:
		return Bad
	}
	return ""
}

// AllVerdicts returns all verdicts, in the order in which reports count them.
func AllVerdicts() []Verdict {
	return []Verdict{Match, Near, WithinTwo, BoundMet, Holds, TrendOnly, Differs, Opposite, BoundMissed, Contradiction,
		TooShort, LeftOut, NotTestable, TheirMachine}
}

// Judges reports whether v is a verdict on a result of ours, and not a reason why there is no result.
func (v Verdict) Judges() bool {
	for _, order := range orders {
		if slices.Contains(order, v) {
			return true
		}
	}
	return false
}

// Adverse reports whether v means that our result is on the opposite side from the published one.
func (v Verdict) Adverse() bool { return v == Opposite || v == BoundMissed }

// IsUnmeasured reports whether v means that we have no result for a claim and cannot obtain one here.
func (v Verdict) IsUnmeasured() bool { return v == NotTestable || v == TheirMachine }

// AllBases returns all bases, in the order in which reports count them.
func AllBases() []Basis { return []Basis{Calibrated, Predicted, Input, Arithmetic, Timed} }

// worse reports whether v is a verdict on a result and is worse than the claim's expectation.
func (c *Claim) worse(v Verdict) bool {
	order := orders[c.Kind]
	at, expected := slices.Index(order, v), slices.Index(order, c.Expect)
	return expected >= 0 && at > expected
}
