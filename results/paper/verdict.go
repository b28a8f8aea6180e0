package paper

import "slices"

// Verdict says how a result stands to what was published.
type Verdict string

const (
	Match     Verdict = "match"      // within 2 %, or within 10 % with the printed value in our interval
	Near      Verdict = "near"       // within 10 %
	WithinTwo Verdict = "within ×2"  // of equal sign and at most twice or half as large, and no slowdown for a speed-up
	TrendOnly Verdict = "trend only" // shown to be on the claimed side
	Differs   Verdict = "differs"    // neither side is shown
	Opposite  Verdict = "opposite"   // shown to be on the other side

	BoundMet    Verdict = "bound met"
	BoundMissed Verdict = "bound missed"

	TooShort      Verdict = "too short"         // measured by fewer or shorter runs than the number takes
	NotTestable   Verdict = "not testable here" // not measured
	Contradiction Verdict = "contradiction"     // other printed numbers exclude it
)

// orders list the verdicts that judge a result, from best to worst.
var orders = map[Kind][]Verdict{
	Value: {Match, Near, WithinTwo, TrendOnly, Differs, Opposite},
	Trend: {TrendOnly, Differs, Opposite},
	Bound: {BoundMet, Differs, BoundMissed},
}

// Verdicts lists all words in the order in which they are counted.
func Verdicts() []Verdict {
	return []Verdict{Match, Near, WithinTwo, BoundMet, TrendOnly, Differs, Opposite, BoundMissed, Contradiction, TooShort, NotTestable}
}

// Bases lists on what our numbers rest in the order in which they are counted.
func Bases() []Basis { return []Basis{Calibrated, Predicted, Arithmetic, Timed} }

// worse says whether v is a verdict on a result, and below what the claim expects.
func (c *Claim) worse(v Verdict) bool {
	order := orders[c.Kind]
	at, expected := slices.Index(order, v), slices.Index(order, c.Expect)
	return expected >= 0 && at > expected
}
