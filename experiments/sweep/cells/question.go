package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/olafctl/olaf/experiments/aomcheck"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// Question is the specification of a cell that verifies an objective over all arrival patterns.
type Question struct {
	Problem  aomcheck.Problem `json:"problem"`
	Solver   string           `json:"solver"` // one of aomcheck.Ways
	LimitS   float64          `json:"limit_s"`
	Simulate int              `json:"simulate"`
	Tighten  bool             `json:"tighten,omitempty"`
}

// answered lists the metrics of a Question. They do not include the solver, its time and its counter-example. These
// cannot be reproduced, because solvers race.
var answered = makeMetrics(row{"holds", "Objective holds", ""},
	row{"least_bound_ns", "Least bound that is proved", "ns"},
	row{"variables", "Variables of the question", ""}, row{"assertions", "Assertions of the question", ""})

// QuestionMetrics returns the metrics of a Question.
func QuestionMetrics() []*metric.Metric { return answered }

// Verify answers a Question. If there is no answer in time, there is no result, because another machine may be faster.
func Verify(ctx context.Context, spec json.RawMessage, _, _ int) (*sweep.Lot, error) {
	q, err := readSpec[Question](spec)
	if err != nil {
		return nil, err
	}
	o := aomcheck.Options{Limit: time.Duration(q.LimitS * float64(time.Second)), Simulate: q.Simulate}
	o.Ask(q.Solver)
	v, err := aomcheck.Verify(ctx, q.Problem, o)
	if err != nil {
		return nil, err
	}
	verdicts := map[aomcheck.Answer]results.Float{aomcheck.Holds: 1, aomcheck.Violated: 0}
	holds, ok := verdicts[v.Answer]
	if !ok {
		return nil, fmt.Errorf("no answer within %v; give it more --time-limit", o.Limit)
	}
	run := sweep.Run{Values: []results.Float{holds, results.Missing(), results.Missing(), results.Missing()}}
	if v.Script.Variables > 0 {
		run.Values[2], run.Values[3] = results.Float(v.Script.Variables), results.Float(v.Script.Assertions)
	}
	if q.Tighten && v.Answer == aomcheck.Holds {
		tight, err := aomcheck.Tighten(ctx, v.Problem, o)
		if err != nil {
			return nil, err
		}
		run.Values[1] = results.Float(tight.Proved.NS())
	}
	lot := newLot(answered)
	lot.Runs = []sweep.Run{run}
	return lot, nil
}
