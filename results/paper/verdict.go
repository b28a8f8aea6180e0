package paper

import "slices"

// Verdict says how a result stands to what was published.
type Verdict string

const (
	Match     Verdict = "match"      // within 2 %, or in our interval, where that interval is no wider than 2 %
	Near      Verdict = "near"       // within 10 %, on the printed side of its neighbour
	WithinTwo Verdict = "within ×2"  // of equal sign and at most twice or half as large, and no slowdown for a speed-up
	Holds     Verdict = "holds"      // a claim without a number, shown to be on the claimed side
	TrendOnly Verdict = "trend only" // a number that is missed, though shown to be on the claimed side
	Differs   Verdict = "differs"    // neither side is shown
	Opposite  Verdict = "opposite"   // shown to be on the other side

	BoundMet    Verdict = "bound met"
	BoundMissed Verdict = "bound missed"

	TooShort      Verdict = "too short"                 // measured by fewer or shorter runs than the number takes
	LeftOut       Verdict = "left out by this run"      // it can be measured here, and this run did not
	NotTestable   Verdict = "not testable here"         // needs what is not here: a card, a cluster, a synthesis
	TheirMachine  Verdict = "property of their machine" // says nothing of a system: another machine has another number
	Contradiction Verdict = "contradiction"             // other printed numbers exclude it
)

// orders lists the verdicts that judge a result, from best to worst.
var orders = map[Kind][]Verdict{
	Value: {Match, Near, WithinTwo, TrendOnly, Differs, Opposite},
	Trend: {Holds, Differs, Opposite},
	Bound: {BoundMet, Differs, BoundMissed},
}

// Verdicts lists all words in the order in which they are counted.
func Verdicts() []Verdict {
	return []Verdict{Match, Near, WithinTwo, BoundMet, Holds, TrendOnly, Differs, Opposite, BoundMissed, Contradiction,
		TooShort, LeftOut, NotTestable, TheirMachine}
}

// Judges reports whether v is a verdict on a result of ours.
func (v Verdict) Judges() bool {
	for _, order := range orders {
		if slices.Contains(order, v) {
			return true
		}
	}
	return false
}

// Adverse reports whether v says that our result is on the other side of what was printed.
func (v Verdict) Adverse() bool { return v == Opposite || v == BoundMissed }

// Unmeasured reports whether v says that there is no result of ours, and there will be none here.
func (v Verdict) Unmeasured() bool { return v == NotTestable || v == TheirMachine }

// Bases lists on what our numbers rest in the order in which they are counted.
func Bases() []Basis { return []Basis{Calibrated, Predicted, Input, Arithmetic, Timed} }

// worse reports whether v is a verdict on a result, and below what the claim expects.
func (c *Claim) worse(v Verdict) bool {
	order := orders[c.Kind]
	at, expected := slices.Index(order, v), slices.Index(order, c.Expect)
	return expected >= 0 && at > expected
}
