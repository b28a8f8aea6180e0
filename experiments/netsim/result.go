package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ClusterResult contains the results of one cluster.
type ClusterResult struct {
	Cluster int
	Group   string
	Values  metric.Values // within the window
}

// GroupResult contains the averages over the clusters of a group.
type GroupResult struct {
	Group    string
	Clusters int
	Workers  int
	Values   metric.Values // within the window
}

// PortResult contains the results of one output port over the whole run, including the warm-up.
type PortResult struct {
	Port   string
	Queue  string
	Slots  int
	Values metric.Values
}

// WorkerResult contains the results of one worker.
type WorkerResult struct {
	Cluster, Worker int
	Share           float64 // phase divided by period, in [0, 1)
	Sent, Received  uint32
	AoM             results.Float // ns
}

// Result contains the measurements of one run.
type Result struct {
	Topology   string
	Queue      string
	Control    bool
	Seed       uint64
	Window     string
	Time       olaf.Duration `json:"-"` // simulated, including the warm-up
	Events     uint64
	Values     metric.Values // within the window; updates, ages in ns, and shares in per cent, as named
	Background [2]uint64
	Groups     []GroupResult
	Clusters   []ClusterResult
	Ports      []PortResult
	Workers    []WorkerResult `json:"-"`
	// Totals is the balanced account of the whole run, including the warm-up; Values cover the window only. LostPct is
	// the loss according to Totals, as in stored runs; missing for an imported trace.
	Totals  olaf.Counts `json:",omitzero"`
	LostPct results.Float
	Waited  *Waited `json:"-"` // nil for open-loop runs

	swept metric.Values // sweep statistics
}

// Of returns the run's value with the given name, missing if there is none.
func (r *Result) Of(name string) results.Float { return r.Values.Of(name) }

// SweepValues returns the run's values of SweepStatistics.
func (r *Result) SweepValues() metric.Values { return r.swept }

// setTotals sets the whole run's counts and the loss computed from them.
func (r *Result) setTotals(totals olaf.Counts) error {
	r.Totals = totals
	if sent := totals.SumOffered(); sent > 0 {
		r.LostPct = results.Float(100 * float64(totals.SumLost()) / float64(sent))
	}
	return totals.Balance()
}

// OnTheWayPct returns the percentage of sent updates that were in flight at the end of the run; missing if none was
// sent.
func (r *Result) OnTheWayPct() results.Float {
	sent := r.Totals.SumOffered()
	if sent == 0 {
		return results.Missing()
	}
	return results.Float(100 * float64(r.Totals.SumInside()) / float64(sent))
}
