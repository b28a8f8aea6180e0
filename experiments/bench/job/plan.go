package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
)

// Plan contains everything that determines a Report: the same job for some systems, with some seeds. ReadPlan can read
// its JSON form, and running the plan again returns the same report.
type Plan struct {
	Title      string          `json:"title"`           // one line describing the job
	Basis      string          `json:"basis,omitempty"` // basis of its numbers
	Config     json.RawMessage `json:"config"`          // requested settings
	Seeds      []uint64        `json:"seeds"`
	Statements []string        `json:"statements"`
	Jobs       []*Spec         `json:"jobs"`
	Printed    []Printed       `json:"printed,omitempty"` // numbers for comparison with papers
	// Partial is set if the plan contains only the finished part of an interrupted one.
	Partial bool `json:"partial,omitempty"`
}

// Run runs all jobs one after the other. It calls done, if not nil, after each run. If ctx ends early, Run also returns
// a report on the finished part, with a plan for that part, or nil if nothing was finished.
func (p *Plan) Run(ctx context.Context, done func()) (*Report, error) {
	var outcomes []*Outcome
	seeds := p.Seeds
	for i, s := range p.Jobs {
		o, whole, err := RunUntil(ctx, s, p.Seeds, done)
		switch {
		case err == nil:
			outcomes = append(outcomes, o)
			continue
		case ctx.Err() == nil:
			return nil, err
		case i == 0 && o != nil:
			outcomes, seeds = append(outcomes, o), whole
		}
		if len(outcomes) == 0 {
			return nil, err
		}
		return p.part(len(outcomes), seeds).report(outcomes), err
	}
	return p.report(outcomes), nil
}

// part returns a plan with the first n jobs and the given seeds.
func (p *Plan) part(n int, seeds []uint64) *Plan {
	left := *p
	left.Jobs, left.Seeds, left.Partial = p.Jobs[:n], seeds, true
	left.Printed = slices.DeleteFunc(slices.Clone(p.Printed), func(c Printed) bool { return c.Job >= n })
	left.Statements = append(slices.Clone(p.Statements), DescribePart(left.Runs(), p.Runs()))
	return &left
}

// DescribePart returns a sentence about an interrupted plan of which only some runs were finished.
func DescribePart(whole, runs int) string {
	return fmt.Sprintf("partial: it was stopped early, and this is %d of %s", whole, olaf.Plural(runs, "run"))
}

// Runs returns the number of single runs in the plan.
func (p *Plan) Runs() int { return len(p.Jobs) * len(p.Seeds) }

// specFile is the JSON form of a Spec.
type specFile struct {
	System  string             `json:"system"`
	Mode    string             `json:"mode"`
	Options system.Options     `json:"options"`
	Network closedloop.Network `json:"network"`
	Job     closedloop.Job     `json:"job"`
}

// MarshalJSON writes everything that determines the job. It fails for a job that has callbacks for gradients or times.
func (s *Spec) MarshalJSON() ([]byte, error) {
	if j := &s.Job; j.Begin != nil || j.Values != nil || j.Applied != nil {
		return nil, errors.New("a job that is handed gradients or times can't be written")
	}
	return json.Marshal(specFile{s.System.Name, s.Mode.Name, s.Options, s.Network, s.Job})
}

// ReadSpec parses the output of MarshalJSON. systems contains the available systems. The error matches
// system.ErrUnknown or system.ErrMode.
func ReadSpec(systems system.Set, raw []byte) (*Spec, error) {
	var f specFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	s := &Spec{Options: f.Options, Network: f.Network, Job: f.Job}
	var err error
	s.System, s.Mode, err = systems.ClosedLoop().FindMode(f.System, f.Mode)
	return s, err
}

// ReadPlan parses a plan. systems contains the available systems. Its errors are those of ReadSpec.
func ReadPlan(systems system.Set, raw []byte) (*Plan, error) {
	var f struct {
		Plan
		Jobs []json.RawMessage `json:"jobs"` // replaces the plan's
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
