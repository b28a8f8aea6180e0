package process

import (
	"context"
	"encoding/json"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Sums implements Work for a worker that checks every value of every sum. Its own values are computed from their place
// (see Value).
type Sums struct {
	Job            Job
	Worker         olaf.WorkerID
	Every          time.Duration // minimum interval between two vectors
	Checked, Wrong int
}

// Compute implements Work.
func (w *Sums) Compute(_ context.Context, vector uint32) Computed {
	c := Computed{Values: make([]uint32, w.Job.Values), Due: time.Duration(vector) * w.Every}
	for i := range c.Values {
		c.Values[i] = uint32(Value(int(w.Worker), int(vector), i))
	}
	return c
}

// Apply implements Work.
func (w *Sums) Apply(a *endpoint.Aggregate) {
	for i, v := range a.Values {
		w.Checked++
		if int32(v) != w.Job.Sum(int(a.Number), i) {
			w.Wrong++
		}
	}
}

// SumsReport is the result of a worker that waits for sums.
type SumsReport struct {
	Worker olaf.WorkerID `json:"worker"`
	Report
	Checked int `json:"values_checked"`
	Wrong   int `json:"values_wrong"`
	// Work is the report of a Work other than Sums.
	Work json.RawMessage `json:"work,omitempty"`
}

// Data returns the number of packets with parts of vectors that were sent to the aggregator.
func (r *SumsReport) Data() uint64 {
	return r.Counts["packets_sent"] + r.Counts["packets_resent"] + uint64(r.Doubled) - uint64(r.Skipped)
}
