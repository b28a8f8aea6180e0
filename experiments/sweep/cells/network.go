package cells

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// Network is a simulated network.
type Network struct {
	Topology string `json:"topology"` // as its file would hold it
	Seed     uint64 `json:"seed"`     // of the first run
}

// NetworkMetrics are what a run of the simulator is measured by, what only sweeps show, and what one whose workers wait for answers
// is besides.
func NetworkMetrics() []*metric.Metric { return union(inNetworks(), waited) }

// inNetworks lists what runs of every network are measured by, with the loss over the whole run, which kept runs have too.
func inNetworks() []*metric.Metric {
	return union(union(netsim.RunStatistics(), netsim.SweepStatistics()), []*metric.Metric{system.Networked().Metric(lostPct)})
}

const lostPct = "lost_pct"

// MetricsOf lists what runs of t are measured by.
func MetricsOf(t *netsim.Topology) []*metric.Metric {
	switch {
	case t.Waiting != nil:
		return NetworkMetrics()
	case t.Program != "":
		return union(inNetworks(), netsim.TableStatistics())
	}
	return inNetworks()
}

// union has every name once.
func union(all, more []*metric.Metric) []*metric.Metric {
	all = slices.Clone(all)
	for _, m := range more {
		if !slices.ContainsFunc(all, func(have *metric.Metric) bool { return have.Name == m.Name }) {
			all = append(all, m)
		}
	}
	return all
}

// Simulate carries out runs from to from+n of a Network.
func (c Carrier) Simulate(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	cell, err := read[Network](spec)
	if err != nil {
		return nil, err
	}
	t, err := netsim.Parse(c.Systems, "topology", []byte(cell.Topology))
	if err != nil {
		return nil, err
	}
	lot := of(MetricsOf(t))
	for i := range n {
		t.Seed = cell.Seed + uint64(from+i)
		run := sweep.Run{Seed: t.Seed}
		r, err := netsim.Run(ctx, t, netsim.Options{})
		switch {
		case errors.Is(err, netsim.ErrAccounting):
			run.Invalid = err.Error()
		case err != nil:
			return nil, err
		default:
			run.Values = ValuesOf(r, lot.Metrics)
		}
		lot.Runs = append(lot.Runs, run)
	}
	return lot, nil
}

// ValuesOf returns what a run has of metrics, by their names.
func ValuesOf(r *netsim.Result, names []string) (values []results.Float) {
	swept := r.Swept()
	for _, name := range names {
		switch {
		case name == lostPct:
			values = append(values, r.LostPct)
		case r.Values.Has(name):
			values = append(values, r.Of(name))
		case swept.Has(name):
			values = append(values, swept.Of(name))
		default:
			values = append(values, r.Waited.Of(name))
		}
	}
	return values
}
