package aomcheck

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
)

// Tight is the result of a search for the smallest provable bound. The search has a resolution of a twentieth of a
// service time.
type Tight struct {
	Proved   olaf.Duration // least bound that was proved
	Violated olaf.Duration // greatest violated bound; -1 if none was found
}

// Tighten searches for the smallest bound that can be proved, starting from a problem that is already proved. It
// bisects, with one verification per step, each under opt's time limit. An unknown answer counts as not proved. The
// error matches ErrProblem for an objective without a bound; other errors come from Verify.
func Tighten(ctx context.Context, p Problem, opt Options) (Tight, error) {
	switch p.Objective.Kind {
	case Fairness, MaxPeak, MeanPeak:
	default:
		return Tight{}, bad("tighten", fmt.Sprintf("the objective %s has no single bound", p.Objective.Kind))
	}
	opt.Dump = nil
	step := max(p.Service/20, 1)
	tight := Tight{Proved: p.Objective.Bound, Violated: -1}
	low, high := int64(-1), int64((p.Objective.Bound+step-1)/step) // low is not proved, high is
	for high-low > 1 {
		middle := low + (high-low)/2
		p.Objective.Bound = olaf.Duration(middle) * step
		if p.Objective.Bound == 0 && p.Objective.Kind != Fairness {
			low = middle
			continue
		}
		v, err := Verify(ctx, p, opt)
		if err != nil {
			return tight, err
		}
		if v.Answer == Holds {
			high, tight.Proved = middle, p.Objective.Bound
			continue
		}
		low = middle
		if v.Answer == Violated {
			tight.Violated = max(tight.Violated, p.Objective.Bound)
		}
	}
	return tight, nil
}
