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

// Network is the specification of a cell that simulates a network.
type Network struct {
	Topology string `json:"topology"` // the topology file's text
	Seed     uint64 `json:"seed"`     // seed of the first run
}

// NetworkMetrics returns the metrics of all simulator runs. They include the metrics of every run, of sweeps, and of
// closed-loop runs.
func NetworkMetrics() []*metric.Metric { return unionMetrics(inNetworks(), waited) }

// inNetworks returns the metrics that runs in all networks have, including the loss over the whole run.
func inNetworks() []*metric.Metric {
	return unionMetrics(unionMetrics(netsim.RunStatistics(), netsim.SweepStatistics()),
		[]*metric.Metric{system.NetworkDeclaration().Metric(lostPct)})
}

const lostPct = "lost_pct"

// MetricsOf returns the metrics of runs in t.
func MetricsOf(t *netsim.Topology) []*metric.Metric {
	switch {
	case t.Waiting != nil:
		return NetworkMetrics()
	case t.Program != "":
		return unionMetrics(inNetworks(), netsim.TableStatistics())
	}
	return inNetworks()
}

// unionMetrics appends to all those metrics in more whose names are not in all.
func unionMetrics(all, more []*metric.Metric) []*metric.Metric {
	all = slices.Clone(all)
	for _, m := range more {
		if !slices.ContainsFunc(all, func(have *metric.Metric) bool { return have.Name == m.Name }) {
			all = append(all, m)
		}
	}
	return all
}

// Simulate carries out the runs from to from+n of a Network.
func (c Carrier) Simulate(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	cell, err := readSpec[Network](spec)
	if err != nil {
		return nil, err
	}
	t, err := netsim.ParseTopology(c.Systems, "topology", []byte(cell.Topology))
	if err != nil {
		return nil, err
	}
	lot := newLot(MetricsOf(t))
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

// ValuesOf returns a run's values for the metrics with the given names.
func ValuesOf(r *netsim.Result, names []string) (values []results.Float) {
	swept := r.SweepValues()
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
