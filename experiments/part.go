package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// Part is a piece of an experiment's work. Parts can run anywhere and in any order, before the experiment combines
// their results. Equal specifications have equal results.
type Part struct {
	Name string          // unique in its experiment, for display
	Spec json.RawMessage // everything that determines its result
}

// Parts divides an experiment into parts that can run separately.
type Parts struct {
	// Kind names the kind of part; experiments with the same kind share parts.
	Kind string
	// List returns the parts, in the order in which the experiment uses them.
	List func(Options) ([]Part, error)
	// Do runs one part.
	Do func(ctx context.Context, spec json.RawMessage) (json.RawMessage, error)
}

// FindDone looks up the result of a part that was already run, and decodes it into to. ok is false if there is no such
// result.
func (o *Options) FindDone(spec, to any) (ok bool, err error) {
	if o.Done == nil {
		return false, nil
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return false, err
	}
	result, ok := o.Done(raw)
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(result, to); err != nil {
		return false, fmt.Errorf("read the result of a part: %w", err)
	}
	return true, nil
}

// NewParts returns parts of a kind. list calls add with the name and the specification of every part, and do runs one
// part.
func NewParts[S, R any](kind string, list func(o *Options, add func(name string, spec S)) error,
	do func(context.Context, S) (R, error)) *Parts {
	return &Parts{
		Kind: kind,
		List: func(o Options) (parts []Part, err error) {
			var wrong error
			err = list(&o, func(name string, one S) {
				spec, err := json.Marshal(&one)
				parts, wrong = append(parts, Part{Name: name, Spec: spec}), errors.Join(wrong, err)
			})
			return parts, errors.Join(err, wrong)
		},
		Do: func(ctx context.Context, spec json.RawMessage) (json.RawMessage, error) {
			var one S
			if err := json.Unmarshal(spec, &one); err != nil {
				return nil, err
			}
			done, err := do(ctx, one)
			if err != nil {
				return nil, err
			}
			return json.Marshal(done)
		},
	}
}

// BenchParts returns parts for an experiment that consists of benches. Each part is a share of a bench. systems
// contains the available systems.
func BenchParts(systems system.Set, specs func(*Options) ([]bench.Spec, error)) *Parts {
	return NewParts("bench", func(o *Options, add func(string, share)) error {
		all, err := specs(o)
		for i := range all {
			for _, share := range divideShares(&all[i]) {
				add(fmt.Sprintf("bench %d, runs %d to %d", i+1, share.From+1, share.From+share.Runs), share)
			}
		}
		return err
	}, func(ctx context.Context, one share) (*shared, error) {
		one.Spec.Systems = systems
		return one.run(ctx)
	})
}

// Measure runs a bench. If all its shares were already run, it assembles the result from them instead.
func (o *Options) Measure(ctx context.Context, s bench.Spec, stream *bench.Stream,
	beside bench.PaperComparison) (*bench.Measurement, error) {
	var all []*shared
	for _, share := range divideShares(&s) {
		one := new(shared)
		found, err := o.FindDone(&share, one)
		if err != nil {
			return nil, err
		}
		if !found {
			return bench.MeasureSpec(ctx, s, bench.Options{Device: o.Device, Access: o.Access, Stream: stream,
				ComparePaper: beside})
		}
		all = append(all, one)
	}
	return combineShares(&s, all, beside)
}

// Judged provides an experiment's published numbers next to ours. Err returns an error if our numbers are invalid.
type Judged interface {
	Paper() []results.PaperRow
	Err() error
}

// Verdicts implements Judged and has a JSON form. It is used for experiments that ran on another machine.
type Verdicts struct {
	Rows    []results.PaperRow `json:"paper"`
	Invalid string             `json:"invalid,omitempty"` // reason why the verdicts are not valid
}

// VerdictsOf returns the Verdicts with j's numbers and error.
func VerdictsOf(j Judged) *Verdicts {
	v := &Verdicts{Rows: j.Paper()}
	if err := j.Err(); err != nil {
		v.Invalid = err.Error()
	}
	return v
}

// Paper implements Judged.
func (v *Verdicts) Paper() []results.PaperRow { return v.Rows }

// Err implements Judged.
func (v *Verdicts) Err() error {
	if v.Invalid == "" {
		return nil
	}
	return errors.New(v.Invalid)
}
