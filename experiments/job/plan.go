package job

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/experiments/system"
)

// Plan is everything that decides a Report: the same job of some systems under some seeds. It is written as JSON, and what is read
// back gives the same again.
type Plan struct {
	Title      string          `json:"title"`           // one line about the job
	Basis      string          `json:"basis,omitempty"` // of what its numbers rest on
	Config     json.RawMessage `json:"config"`          // what was asked for
	Seeds      []uint64        `json:"seeds"`
	Statements []string        `json:"statements"`
	Jobs       []*Spec         `json:"jobs"`
}

// Run plays all jobs, one after the other. done is called after each run; nil for nobody.
func (p *Plan) Run(ctx context.Context, done func()) (*Report, error) {
	outcomes, err := RunAll(ctx, p.Jobs, p.Seeds, done)
	if err != nil {
		return nil, err
	}
	return &Report{Plan: *p, Outcomes: outcomes}, nil
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

// UnmarshalJSON reads what MarshalJSON wrote. The error matches system.ErrUnknown where this olafctl has no such system or mode.
func (s *Spec) UnmarshalJSON(raw []byte) (err error) {
	var f specFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	*s = Spec{Options: f.Options, Network: f.Network, Job: f.Job}
	if s.System, err = system.All().Waiting().Find(f.System); err != nil {
		return err
	}
	s.Mode, err = s.System.Mode(f.Mode)
	return err
}
