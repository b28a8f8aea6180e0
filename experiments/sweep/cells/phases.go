package cells

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results"
)

// NetworkSweep varies one parameter of all workers. The parameter is phase (the width of the span over which the
// workers are spread), jitter or period.
type NetworkSweep struct {
	Parameter string
	Values    []olaf.Duration
}

// PhaseBins is the number of bins per period in a phase map.
const PhaseBins = 50

// ParseNetworkSweep parses a sweep in the grammar that all sweeps share, such as phase=0..100ms/20. The error matches
// ErrTopology.
func ParseNetworkSweep(s string) (NetworkSweep, error) {
	bad := func(err error) (NetworkSweep, error) { return NetworkSweep{}, &netsim.Error{What: err.Error()} }
	name, values, err := grid.SplitAxis(s)
	if err != nil {
		return bad(err)
	}
	if !slices.Contains(netsim.SweepableNames(), name) {
		return bad(fmt.Errorf("sweep %q: %q is not one of %s", s, name, strings.Join(netsim.SweepableNames(), ", ")))
	}
	a, err := grid.ParseAxis(name, grid.Duration, values)
	if err != nil {
		return bad(err)
	}
	sweep := NetworkSweep{Parameter: name}
	for _, text := range a.Values {
		v, err := olaf.ParseDuration(text)
		if err != nil {
			return bad(err)
		}
		sweep.Values = append(sweep.Values, v)
	}
	return sweep, nil
}

// NetworkPoint contains the results for one value of a sweep, over all its seeds.
type NetworkPoint struct {
	Value   olaf.Duration `json:"-"`
	ValueNS float64       `json:"value_ns"`
	Stats   results.Stats `json:"*"`
	// Delivered contains, for each bin of the period, the share of updates delivered, alone or merged, from workers
	// whose phase is in the bin; missing if there are none.
	Delivered []results.Float `json:"delivered_by_phase"`
}

// UnmarshalJSON reads a point. Its statistics are inlined in the JSON object.
func (p *NetworkPoint) UnmarshalJSON(raw []byte) error {
	type plain NetworkPoint
	return errors.Join(json.Unmarshal(raw, (*plain)(p)), json.Unmarshal(raw, &p.Stats))
}

// Check returns an error if t cannot have one of the sweep's values. It runs nothing.
func (s *NetworkSweep) Check(t *netsim.Topology) error {
	for _, v := range s.Values {
		if err := t.With(s.Parameter, v).Resolve(); err != nil {
			return fmt.Errorf("%s = %v: %w", s.Parameter, v, err)
		}
	}
	return nil
}

// RunNetworkSweep simulates t with every value of the sweep and every seed.
func RunNetworkSweep(ctx context.Context, t *netsim.Topology, s NetworkSweep, seeds []uint64, done func()) ([]NetworkPoint, error) {
	if err := s.Check(t); err != nil {
		return nil, err
	}
	var points []NetworkPoint
	for _, v := range s.Values {
		runs, err := netsim.RunSeeds(ctx, t.With(s.Parameter, v), seeds, netsim.Options{Workers: true}, done)
		if err != nil {
			return points, err
		}
		points = append(points, sweepPoint(v, runs))
	}
	return points, nil
}

func sweepPoint(v olaf.Duration, runs []*netsim.Result) NetworkPoint {
	p := NetworkPoint{Value: v, ValueNS: v.NS()}
	for _, row := range netsim.SweepStatistics() {
		values := olaf.Map(runs, func(r *netsim.Result) results.Float { return r.SweepValues().Of(row.Name) })
		p.Stats = append(p.Stats, results.Stat{Metric: row, Statistic: results.Describe(values, "no run had it")})
	}
	var sent, received [PhaseBins]uint64
	for _, r := range runs {
		for i := range r.Workers {
			w := &r.Workers[i]
			bin := min(int(w.Share*PhaseBins), PhaseBins-1)
			sent[bin] += uint64(w.Sent)
			received[bin] += uint64(w.Received)
		}
	}
	for b := range sent {
		share := results.Missing()
		if sent[b] > 0 {
			share = results.Float(float64(received[b]) / float64(sent[b]))
		}
		p.Delivered = append(p.Delivered, share)
	}
	return p
}
