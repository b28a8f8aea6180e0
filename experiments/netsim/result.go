package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ClusterResult is one cluster.
type ClusterResult struct {
	Cluster int           `json:"cluster"`
	Group   string        `json:"group"`
	Values  metric.Values `json:"*"` // within the window
}

// GroupResult averages the clusters of a group.
type GroupResult struct {
	Group    string        `json:"group"`
	Clusters int           `json:"clusters"`
	Workers  int           `json:"workers"`
	Values   metric.Values `json:"*"` // within the window
}

// PortResult is one output port over the whole run, warm-up included.
type PortResult struct {
	Port   string        `json:"port"`
	Queue  string        `json:"queue"`
	Slots  int           `json:"slots"`
	Values metric.Values `json:"*"`
}

// WorkerResult is one worker.
type WorkerResult struct {
	Cluster, Worker int
	Share           float64 // its phase as a share of its period, 0 to below 1
	Sent, Received  uint32
	AoM             results.Float // ns
}

// Result is what one run measured.
type Result struct {
	Topology   string          `json:"topology"`
	Queue      string          `json:"queue"`
	Control    bool            `json:"transmission_control"`
	Seed       uint64          `json:"seed"`
	Window     string          `json:"aom_window"`
	Time       olaf.Duration   `json:"-"` // simulated, warm-up included
	Events     uint64          `json:"events"`
	Values     metric.Values   `json:"*"` // within the window; updates, ages in ns, and shares in per cent, as the names say
	Background [2]uint64       `json:"background_sent_delivered"`
	Groups     []GroupResult   `json:"groups"`
	Clusters   []ClusterResult `json:"clusters"`
	Ports      []PortResult    `json:"ports"`
	Workers    []WorkerResult  `json:"-"`
	// Totals is the account of the whole run, warm-up included, in which everything balances; the Values above are those
	// of the window. LostPct is what it counts as lost, as a kept run has it; missing for an imported trace.
	Totals  olaf.Counts   `json:"whole_run,omitzero"`
	LostPct results.Float `json:"lost_pct"`
	Waited  *Waited       `json:"-"` // nil where nobody waited

	swept metric.Values // what sweeps describe
}

// Of is a number of the run by its name, missing where there is none of that name.
func (r *Result) Of(name string) results.Float { return r.Values.Of(name) }

// Swept is what sweeps describe of the run: SweepStatistics.
func (r *Result) Swept() metric.Values { return r.swept }

// account takes the whole run's counts and what they count as lost.
func (r *Result) account(totals olaf.Counts) error {
	r.Totals = totals
	if sent := totals.Offered(); sent > 0 {
		r.LostPct = results.Float(100 * float64(totals.Lost()) / float64(sent))
	}
	return totals.Balance()
}

// OnTheWayPct returns the share of the updates sent that was on its way when the run ended; missing where nothing was sent.
func (r *Result) OnTheWayPct() results.Float {
	sent := r.Totals.Offered()
	if sent == 0 {
		return results.Missing()
	}
	return results.Float(100 * float64(r.Totals.Inside()) / float64(sent))
}

// MarshalJSON writes numbers by name among the other members, here and below.
func (r Result) MarshalJSON() ([]byte, error) { type plain Result; return metric.Inline(plain(r)) }

func (r GroupResult) MarshalJSON() ([]byte, error) {
	type plain GroupResult
	return metric.Inline(plain(r))
}

func (r ClusterResult) MarshalJSON() ([]byte, error) {
	type plain ClusterResult
	return metric.Inline(plain(r))
}

func (r PortResult) MarshalJSON() ([]byte, error) {
	type plain PortResult
	return metric.Inline(plain(r))
}
