package onwire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// Training is one training and what it is believed by.
type Training struct {
	System  string       `json:"system"`
	Seed    uint64       `json:"seed"`
	Real    bool         `json:"real"`   // its packets were; else it was simulated
	Curves  [][]rl.Point `json:"curves"` // by worker, one point an iteration
	Greedy  float64      `json:"greedy_reward"`
	LostPct float64      `json:"lost_pct"`       // of the updates, or replaced; 0 where workers wait
	Inside  float64      `json:"updates_inside"` // of a delivered one; 0 where workers wait
	// ArrivedPct is how many of the updates reached the server, by the place of their packets; none where workers wait.
	ArrivedPct []float64 `json:"arrived_pct,omitempty"`

	// Of real packets: what was counted, what had to hold, and how well the programs kept time.
	Counts        map[string]uint64 `json:"counts,omitempty"`
	Identities    []Check           `json:"identities,omitempty"`
	Decisions     *olaf.Decisions   `json:"decisions,omitempty"`
	Pacing        *fpga.Pacing      `json:"pacing,omitempty"`
	WorkersLateNS *olaf.Quantiles   `json:"workers_late_ns,omitempty"`
	Weights       string            `json:"weights_sha256,omitempty"` // of all workers, where they wait for sums
	Invalid       []string          `json:"invalid,omitempty"`
}

// Kinds of trainings.
const (
	Real      = "real"      // packets, of processes
	Simulated = "simulated" // network
)

// Kinds are both.
func Kinds() []string { return []string{Real, Simulated} }

// titles are how the curves of a kind are called.
var titles = map[string]string{Real: "real packets", Simulated: Simulated}

// kind is what the training was.
func (t *Training) kind() string {
	if t.Real {
		return Real
	}
	return Simulated
}

// name is how its curve is called.
func (t *Training) name() string { return t.System + ", " + titles[t.kind()] }

// Report is a figure and the trainings that its curves are of.
type Report struct {
	*result.Result
	Trainings []*Training
}

// TrainingsFile is what a kept comparison has beside its document: a Training a line.
const TrainingsFile = "trainings.jsonl"

// Files implements bench.Attaching.
func (r *Report) Files() (map[string][]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	for _, t := range r.Trainings {
		if err := lines.Encode(t); err != nil {
			return nil, fmt.Errorf("keep the training of %s, seed %d: %w", t.System, t.Seed, err)
		}
	}
	return map[string][]byte{TrainingsFile: b.Bytes()}, nil
}

// IsKept says whether a run of the store is a comparison of trainings.
func IsKept(f *store.Folder) bool {
	_, err := os.Stat(f.Path(TrainingsFile))
	return err == nil
}

// Kept reads a comparison of the store, and its trainings.
func Kept(f *store.Folder) (*Comparison, *Report, error) {
	var document struct {
		result.Result
		Config *Comparison `json:"config"`
	}
	if err := f.ReadJSON(archive.DocumentFile, &document); err != nil {
		return nil, nil, err
	}
	if document.Config == nil {
		return nil, nil, fmt.Errorf("%w: %s: it does not describe the training", store.ErrDamaged, f.ID())
	}
	r := &Report{Result: &document.Result}
	file, err := f.Open(TrainingsFile)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	for lines := json.NewDecoder(bufio.NewReader(file)); ; {
		t := new(Training)
		switch err := lines.Decode(t); {
		case errors.Is(err, io.EOF):
			return document.Config, r, nil
		case err != nil:
			return nil, nil, fmt.Errorf("%w: %s: %s: %w", store.ErrDamaged, f.ID(), TrainingsFile, err)
		}
		r.Trainings = append(r.Trainings, t)
	}
}

// Proof is what a verification found in order.
type Proof struct {
	Repeated   int   // simulated trainings that came out the same, to the last bit
	Real       int   // trainings that nobody can repeat
	Invalid    int   // of them
	Identities int   // of those that hold
	Decisions  int64 // of the kernel, each the engine's
	Digests    int   // of weights that all workers ended with
}

// Verify computes a kept comparison again as far as that can be: the curves from the trainings, and the simulated trainings from what
// was asked for. What real packets came to must fulfil the identities that were held then. Simulate is for workers that wait for
// sums, nil else; c and r are what Kept reads. A difference matches archive.ErrMismatch.
func (c *Comparison) Verify(ctx context.Context, r *Report, s *Sums) (*Proof, error) {
	again := c.figure(r.Trainings)
	if why := results.Difference(r.Panels, again.Panels); why != "" {
		return nil, fmt.Errorf("%w: the curves: %s", archive.ErrMismatch, why)
	}
	p := new(Proof)
	for _, t := range r.Trainings {
		if t.Real {
			if err := p.believe(t); err != nil {
				return nil, err
			}
			continue
		}
		made, err := c.again(ctx, t, s)
		if err != nil {
			return nil, err
		}
		if t.ArrivedPct == nil { // it was kept before that was counted
			made.ArrivedPct = nil
		}
		if why := results.Difference(t, made); why != "" {
			return nil, fmt.Errorf("%w: %s, seed %d, simulated: %s", archive.ErrMismatch, t.System, t.Seed, why)
		}
		p.Repeated++
	}
	return p, nil
}

// again carries a simulated training out once more.
func (c *Comparison) again(ctx context.Context, t *Training, s *Sums) (*Training, error) {
	if c.Job != nil {
		return c.simulateSums(ctx, s, t.Seed)
	}
	config := c.Of(t.System, t.Seed)
	return c.simulate(ctx, &config)
}

// believe holds what a training with real packets was believed by.
func (p *Proof) believe(t *Training) error {
	p.Real++
	if len(t.Invalid) > 0 {
		p.Invalid++
		return nil
	}
	for i := range t.Identities {
		if k := &t.Identities[i]; !k.Holds() {
			return fmt.Errorf("%w: %s, seed %d, was kept as valid, but %s: %d, %d", archive.ErrMismatch, t.System, t.Seed, k.Name, k.Left, k.Right)
		}
		p.Identities++
	}
	if d := t.Decisions; d != nil {
		if d.Void != "" || d.Differ() {
			return fmt.Errorf("%w: %s, seed %d, was kept as valid, but %d of %d decisions are the engine's", archive.ErrMismatch, t.System, t.Seed, d.Equal, d.Checked)
		}
		p.Decisions += d.Checked
	}
	if t.Weights != "" {
		p.Digests++
	}
	return nil
}
