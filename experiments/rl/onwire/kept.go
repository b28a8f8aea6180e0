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

// Training contains one training run and the evidence for its validity.
type Training struct {
	System  string       `json:"system"`
	Seed    uint64       `json:"seed"`
	Real    bool         `json:"real"`   // with real packets; else simulated
	Curves  [][]rl.Point `json:"curves"` // by worker, one point per iteration
	Greedy  float64      `json:"greedy_reward"`
	LostPct float64      `json:"lost_pct"`       // updates lost or replaced; 0 if workers wait
	Inside  float64      `json:"updates_inside"` // per delivered one; 0 if workers wait
	// ArrivedPct is the percentage of updates that reached the server, by the place of their packets; empty if workers
	// wait.
	ArrivedPct []float64 `json:"arrived_pct,omitempty"`

	// For real packets: counts, identities, and the timing of the programs.
	Counts        map[string]uint64 `json:"counts,omitempty"`
	Identities    []Check           `json:"identities,omitempty"`
	Decisions     *olaf.Decisions   `json:"decisions,omitempty"`
	Pacing        *fpga.Pacing      `json:"pacing,omitempty"`
	WorkersLateNS *olaf.Quantiles   `json:"workers_late_ns,omitempty"`
	Weights       string            `json:"weights_sha256,omitempty"` // digest of all workers' weights, if they wait for sums
	Invalid       []string          `json:"invalid,omitempty"`
}

// Kinds of training runs.
const (
	Real      = "real"      // real packets between processes
	Simulated = "simulated" // simulated network
)

// AllKinds returns both kinds of training runs: with real packets and simulated.
func AllKinds() []string { return []string{Real, Simulated} }

// titles maps each kind of training run to the name of its curve.
var titles = map[string]string{Real: "real packets", Simulated: Simulated}

// kind returns the kind of the training run.
func (t *Training) kind() string {
	if t.Real {
		return Real
	}
	return Simulated
}

// name returns the name of the training run's curve.
func (t *Training) name() string { return t.System + ", " + titles[t.kind()] }

// Report is a figure together with the training runs that its curves show.
type Report struct {
	*result.Result
	Trainings []*Training
}

// TrainingsFile is the name of a file that is stored next to a comparison's document. It contains one Training per
// line.
const TrainingsFile = "trainings.jsonl"

// Files implements bench.Attaching. It returns the file with the training runs.
func (r *Report) Files() (map[string][]byte, error) { return writeLines(TrainingsFile, r.Trainings) }

// writeLines returns a file with one JSON value per line.
func writeLines[T any](name string, values []*T) (map[string][]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	for i, v := range values {
		if err := lines.Encode(v); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, i+1, err)
		}
	}
	return map[string][]byte{name: b.Bytes()}, nil
}

// readLines reads a stored file with one JSON value per line.
func readLines[T any](f *store.Folder, name string) (values []*T, err error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := json.NewDecoder(bufio.NewReader(file)); ; {
		v := new(T)
		switch err := lines.Decode(v); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, fmt.Errorf("%w: %s: %s: %w", store.ErrDamaged, f.ID(), name, err)
		}
		values = append(values, v)
	}
}

// IsKept reports whether a run in the store is a comparison of training runs.
func IsKept(f *store.Folder) bool {
	_, err := os.Stat(f.Path(TrainingsFile))
	return err == nil
}

// Load reads a comparison and its training runs from the store.
func Load(f *store.Folder) (*Comparison, *Report, error) {
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
	trainings, err := readLines[Training](f, TrainingsFile)
	if err != nil {
		return nil, nil, err
	}
	return document.Config, &Report{Result: &document.Result, Trainings: trainings}, nil
}

// Proof contains the results of verifying a stored comparison.
type Proof struct {
	Repeated   int   // simulated runs with the same result, bit for bit
	Real       int   // runs that cannot be repeated
	Invalid    int   // invalid runs among these
	Identities int   // valid identities in these runs
	Decisions  int64 // decisions in the kernel, equal to the engine's
	Digests    int   // digests of weights that all workers ended with
}

// Verify recomputes a stored comparison: the curves from the training runs, and the simulated runs from their
// configuration. The counts of runs with real packets must satisfy their accounting identities. s is needed for workers
// that wait for sums, and nil otherwise. c and r come from Load. If anything differs, the error matches
// archive.ErrMismatch.
func (c *Comparison) Verify(ctx context.Context, r *Report, s *Sums) (*Proof, error) {
	again := c.figure(r.Trainings)
	if why := results.Difference(r.Panels, again.Panels); why != "" {
		return nil, fmt.Errorf("%w: the curves: %s", archive.ErrMismatch, why)
	}
	p := new(Proof)
	for _, t := range r.Trainings {
		if t.Real {
			if err := p.checkReal(t); err != nil {
				return nil, err
			}
			continue
		}
		made, err := c.repeat(ctx, t, s)
		if err != nil {
			return nil, err
		}
		if t.ArrivedPct == nil { // stored before this was counted
			made.ArrivedPct = nil
		}
		if why := results.Difference(t, made); why != "" {
			return nil, fmt.Errorf("%w: %s, seed %d, simulated: %s", archive.ErrMismatch, t.System, t.Seed, why)
		}
		p.Repeated++
	}
	return p, nil
}

// repeat carries out a simulated training run again.
func (c *Comparison) repeat(ctx context.Context, t *Training, s *Sums) (*Training, error) {
	if c.Job != nil {
		return c.simulateSums(ctx, s, t.Seed)
	}
	config := c.Of(t.System, t.Seed)
	return c.simulate(ctx, &config)
}

// checkReal checks the evidence for a training run with real packets.
func (p *Proof) checkReal(t *Training) error {
	p.Real++
	if len(t.Invalid) > 0 {
		p.Invalid++
		return nil
	}
	for i := range t.Identities {
		if k := &t.Identities[i]; !k.Holds() {
			return fmt.Errorf("%w: %s, seed %d, was kept as valid, but %s: %d, %d", archive.ErrMismatch, t.System,
				t.Seed, k.Name, k.Left, k.Right)
		}
		p.Identities++
	}
	if d := t.Decisions; d != nil {
		if d.Void != "" || d.Differ() {
			return fmt.Errorf("%w: %s, seed %d, was kept as valid, but %d of %d decisions are the engine's",
				archive.ErrMismatch, t.System, t.Seed, d.Equal, d.Checked)
		}
		p.Decisions += d.Checked
	}
	if t.Weights != "" {
		p.Digests++
	}
	return nil
}
