package saturate

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/internal/splitmix"
)

// ErrConfig is matched by the error for any rejected configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad feed")

// Config contains the settings of a run.
type Config struct {
	Vectors int       // per worker and run
	Line    olaf.Rate // per worker, and of the server; 0 for no limit
	Seed    uint64    // for the values
}

// Limits of Config.
const (
	MaxVectors = 10_000
	MaxRuns    = 10_000
)

// Check checks a configuration. The error matches ErrConfig.
func (c *Config) Check() error {
	switch {
	case c.Vectors < 1 || c.Vectors > MaxVectors:
		return fmt.Errorf("%w: %d vectors; use 1 to %d", ErrConfig, c.Vectors, MaxVectors)
	case c.Line < 0:
		return fmt.Errorf("%w: a line of %v; use 0 for no limit, or more", ErrConfig, c.Line)
	}
	return nil
}

// Run is the result of sending all vectors once.
type Run struct {
	Seed      uint64         `json:"seed"`
	TookNS    int64          `json:"took_ns"`
	Sent      uint64         `json:"sent"`           // packets, including repeated ones
	Resent    uint64         `json:"resent"`         // by workers, for missing sums
	SumsAgain uint64         `json:"sums_resent"`    // by aggregators, for losses above them
	Sums      uint64         `json:"sums"`           // distinct sums at the server
	Repeated  uint64         `json:"repeated"`       // repeated arrivals
	Checked   uint64         `json:"values_checked"` // in sums, at all workers
	Wrong     uint64         `json:"values_wrong"`
	LatencyNS olaf.Quantiles `json:"latency_ns"` // latency of a sum, from its last packet to the server
	Decisions olaf.Decisions `json:"decisions"`
	// Kernel contains the counts of every aggregator, by name.
	Kernel  map[string]map[string]uint64 `json:"kernel"`
	Invalid []string                     `json:"invalid,omitempty"`
}

// Valid reports whether the run is valid.
func (r *Run) Valid() bool { return len(r.Invalid) == 0 }

// valueBits limits the size of values, so that the sum over the maximum number of workers does not overflow.
const valueBits = 24

// ValueAt returns the value that a worker sends at a place in a vector. It depends on the run's seed.
func ValueAt(seed uint64, worker, vector, place int) int32 {
	return int32(splitmix.MixBits(seed^uint64(worker)<<48^uint64(vector)<<32^uint64(place))) >> (32 - valueBits)
}

// checkRun checks the accounting identities of a run. There must not be more decisions than packets sent, each sum must
// be made exactly once, and every value must be correct.
func (r *Run) checkRun(p *lab.Plan, c *Config) {
	addReason := func(format string, a ...any) { r.Invalid = append(r.Invalid, fmt.Sprintf(format, a...)) }
	sums := uint64(p.Fragments * c.Vectors)
	if r.Wrong > 0 {
		addReason("%d of %d values of sums are wrong", r.Wrong, r.Checked)
	}
	if want := sums * uint64(p.Lanes*len(p.Workers())); r.Sums != sums || r.Checked != want {
		addReason("%d sums with %d values came, not %d with %d", r.Sums, r.Checked, sums, want)
	}
	came := uint64(0) // at all aggregators
	for i := range p.Adders {
		n := &p.Nodes[p.Adders[i].Node]
		k := r.Kernel[n.Name]
		if added, want := k["consumed"]+k["completed"], sums*uint64(len(n.Down)); added != want || k["completed"] != sums {
			addReason("%s added %d packets to %d sums, not %d to %d", n.Name, added, k["completed"], want, sums)
		}
		if odd := k["malformed"] + k["misidentified"] + k["lost_before_engine"]; odd > 0 {
			addReason("%d packets at %s were broken, of another child than they said, or came before it ran", odd, n.Name)
		}
		came += sumDecisions(k)
	}
	// Sums from below the topmost aggregator go to another aggregator.
	if out := r.Sent + sums*uint64(len(p.Adders)-1) + r.SumsAgain; came > out {
		addReason("%d packets were decided about, of %d that were sent", came, out)
	}
	if d := &r.Decisions; d.Differ() {
		addReason("%d of %d decisions differ from the program's; the first: %s", d.Checked-d.Equal, d.Checked, d.First)
	}
}

// sumDecisions returns the number of packets about which an aggregator made a decision.
func sumDecisions(k map[string]uint64) (n uint64) {
	for _, class := range []string{"consumed", "completed", "duplicate", "late", "mismatched", "out_of_range"} {
		n += k[class]
	}
	return n
}
