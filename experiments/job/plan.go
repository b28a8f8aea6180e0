package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/experiments/system"
)

// Plan is everything that decides a Report: the same job of some systems under some seeds. It is written as JSON, and what ReadPlan
// reads back gives the same again.
type Plan struct {
	Title      string          `json:"title"`           // one line about the job
	Basis      string          `json:"basis,omitempty"` // of what its numbers rest on
	Config     json.RawMessage `json:"config"`          // what was asked for
	Seeds      []uint64        `json:"seeds"`
	Statements []string        `json:"statements"`
	Jobs       []*Spec         `json:"jobs"`
	Printed    []Printed       `json:"printed,omitempty"` // what of it papers printed
	// Partial says that it is what was whole of a plan that was left before its end.
	Partial bool `json:"partial,omitempty"`
}

// Run plays all jobs, one after the other. done is called after each run; nil for nobody. Whoever ends it is told of what was whole by then, as of a plan
// of that alone, which gives it again.
func (p *Plan) Run(ctx context.Context, done func()) (*Report, error) {
	r := &Report{Plan: *p}
	for i, s := range p.Jobs {
		o, whole, err := RunUntil(ctx, s, p.Seeds, done)
		switch {
		case err == nil:
			r.Outcomes = append(r.Outcomes, o)
			continue
		case ctx.Err() == nil:
			return nil, err
		case i == 0 && o != nil:
			r.Outcomes, r.Seeds = append(r.Outcomes, o), whole
		}
		return r.left(p), err
	}
	return r, nil
}

// left makes it one of what was whole of a plan; nil where nothing was.
func (r *Report) left(p *Plan) *Report {
	n := len(r.Outcomes)
	if n == 0 {
		return nil
	}
	r.Jobs, r.Partial = p.Jobs[:n], true
	r.Printed = slices.DeleteFunc(slices.Clone(p.Printed), func(c Printed) bool { return c.Job >= n })
	r.Statements = append(slices.Clone(p.Statements), Left(r.Runs(), p.Runs()))
	return r
}

// Left says how much there is of what was left before its end.
func Left(whole, runs int) string {
	return fmt.Sprintf("partial: it was left before its end, and this is %d of %s", whole, olaf.Plural(runs, "run"))
}

// Runs is how many single runs there are.
func (p *Plan) Runs() int { return len(p.Jobs) * len(p.Seeds) }

// specFile is the JSON form of a Spec.
type specFile struct {
	System  string         `json:"system"`
	Mode    string         `json:"mode"`
	Options system.Options `json:"options"`
	Network closed.Network `json:"network"`
	Job     closed.Job     `json:"job"`
}

// MarshalJSON writes what decides the job; one that somebody hands gradients or times to can't be written.
func (s *Spec) MarshalJSON() ([]byte, error) {
	if j := &s.Job; j.Begin != nil || j.Values != nil || j.Applied != nil {
		return nil, errors.New("a job that is handed gradients or times can't be written")
	}
	return json.Marshal(specFile{s.System.Name, s.Mode.Name, s.Options, s.Network, s.Job})
}

// ReadSpec reads what MarshalJSON wrote, of a system of a set. The error matches system.ErrUnknown or system.ErrMode where there is
// none such.
func ReadSpec(systems system.Set, raw []byte) (*Spec, error) {
	var f specFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	s := &Spec{Options: f.Options, Network: f.Network, Job: f.Job}
	var err error
	if s.System, err = systems.Waiting().Find(f.System); err != nil {
		return nil, err
	}
	s.Mode, err = s.System.Mode(f.Mode)
	return s, err
}

// ReadPlan reads a plan that was written, of systems of a set. Errors are those of ReadSpec.
func ReadPlan(systems system.Set, raw []byte) (*Plan, error) {
	var f struct {
		Plan
		Jobs []json.RawMessage `json:"jobs"` // in the place of the plan's
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	for _, one := range f.Jobs {
		s, err := ReadSpec(systems, one)
		if err != nil {
			return nil, err
		}
		f.Plan.Jobs = append(f.Plan.Jobs, s)
	}
	return &f.Plan, nil
}
