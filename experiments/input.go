package experiments

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// Input is a physical quantity from which an experiment computes its numbers: a rate, a time or a size.
type Input struct {
	Name string
	// Factor is the factor by which a test changes the input. It is 2 if time slots hide a smaller change.
	Factor float64
}

// InputsByTenth returns inputs that a test changes by 10 %.
func InputsByTenth(names ...string) []Input {
	return olaf.Map(names, func(name string) Input { return Input{name, 1.1} })
}

// noInput means that no input is changed. The zero Input cannot mean this, because rows without a verdict are left out
// only if an input is set.
var noInput = Input{Name: "nothing", Factor: 1}

// ScaleInput returns v, multiplied by the input's factor if the options change that input.
func ScaleInput[T ~int | ~int64 | ~float64](o *Options, input string, v T) T {
	if o.Changed.Name != input || input == "" {
		return v
	}
	return T(float64(v) * o.Changed.Factor)
}

// FindUnmoved changes each of e's inputs in turn and returns the ids of predicted rows whose number never changes. A
// number that depends on no input does not come from a model and is therefore not a prediction. o determines the length
// of the runs.
func (e *Experiment) FindUnmoved(ctx context.Context, o Options) ([]string, error) {
	o.Changed = noInput
	still, err := e.readRows(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, input := range e.Inputs {
		if len(still) == 0 {
			break
		}
		o.Changed = input
		after, err := e.readRows(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("%s with its %s times %g: %w", e.Name, input.Name, input.Factor, err)
		}
		for id, mean := range still {
			if !same(mean, after[id]) {
				delete(still, id)
			}
		}
	}
	return slices.Sorted(maps.Keys(still)), nil
}

// readRows runs e and returns its values for predicted numbers, by the ids of the papers' claims.
func (e *Experiment) readRows(ctx context.Context, o Options) (map[string]results.Float, error) {
	report, err := e.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	numbers := map[string]results.Float{}
	for _, row := range report.Paper() {
		if row.Basis == string(paper.Predicted) && row.Ours.Known() {
			numbers[row.ID] = row.Ours.Mean
		}
	}
	return numbers, nil
}

// same reports whether two numbers agree to nine significant digits.
func same(a, b results.Float) bool {
	return math.Abs(float64(a-b)) <= 1e-9*math.Abs(float64(a))
}
