package netsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results"
)

// Sweep varies one parameter of all workers: phase (the width of the span over which they are spread), jitter or
// period.
type Sweep struct {
	Parameter string
	Values    []olaf.Duration
}

// sweepable lists the parameters and their setters. A phase of 0 starts all workers at the same instant.
var sweepable = []struct {
	name string
	set  func(*Clusters, olaf.Duration)
}{
	{"phase", func(k *Clusters, v olaf.Duration) { k.Phase = Span{0, max(v, olaf.Nanosecond)} }},
	{"jitter", func(k *Clusters, v olaf.Duration) { k.Jitter = v }},
	{"period", func(k *Clusters, v olaf.Duration) { k.Period = v }},
}

// PhaseBins is the number of bins per period in a phase map.
const PhaseBins = 50

// SweepableNames returns the parameters of all workers that With can set.
func SweepableNames() []string {
	var names []string
	for _, p := range sweepable {
		names = append(names, p.name)
	}
	return names
}

// ParseSweep parses a sweep in the grammar of all sweeps, such as phase=0..100ms/20. The error matches ErrTopology.
func ParseSweep(s string) (Sweep, error) {
	bad := func(err error) (Sweep, error) { return Sweep{}, &Error{What: err.Error()} }
	name, values, err := grid.SplitAxis(s)
	if err != nil {
		return bad(err)
	}
	if !slices.Contains(SweepableNames(), name) {
		return bad(fmt.Errorf("sweep %q: %q is not one of %s", s, name, strings.Join(SweepableNames(), ", ")))
	}
	a, err := grid.ParseAxis(name, grid.Duration, values)
	if err != nil {
		return bad(err)
	}
	sweep := Sweep{Parameter: name}
	for _, text := range a.Values {
		v, err := olaf.ParseDuration(text)
		if err != nil {
			return bad(err)
		}
		sweep.Values = append(sweep.Values, v)
	}
	return sweep, nil
}

// SweepPoint contains the results for one value of a sweep over all its seeds.
type SweepPoint struct {
	Value   olaf.Duration `json:"-"`
	ValueNS float64       `json:"value_ns"`
	Stats   results.Stats `json:"*"`
	// Delivered contains, for each bin of the period, the share of updates delivered, alone or merged, from workers
	// whose phase is in the bin; missing if there are none.
	Delivered []results.Float `json:"delivered_by_phase"`
}

// UnmarshalJSON reads a point and its inlined statistics.
func (p *SweepPoint) UnmarshalJSON(raw []byte) error {
	type plain SweepPoint
	return errors.Join(json.Unmarshal(raw, (*plain)(p)), json.Unmarshal(raw, &p.Stats))
}

// With returns a copy of the topology with a parameter of all workers set to a value. It changes nothing if the
// parameter is unknown.
func (t *Topology) With(parameter string, v olaf.Duration) *Topology {
	one := *t
	one.Clusters = append([]Clusters(nil), t.Clusters...)
	for _, p := range sweepable {
		if p.name != parameter {
			continue
		}
		for i := range one.Clusters {
			p.set(&one.Clusters[i], v)
		}
	}
	return &one
}

// Check returns an error if t cannot have one of the sweep's values, before anything runs.
func (s *Sweep) Check(t *Topology) error {
	for _, v := range s.Values {
		if err := t.With(s.Parameter, v).Resolve(); err != nil {
			return fmt.Errorf("%s = %v: %w", s.Parameter, v, err)
		}
	}
	return nil
}

// RunSweep simulates every value with every seed.
func RunSweep(ctx context.Context, t *Topology, s Sweep, seeds []uint64, done func()) ([]SweepPoint, error) {
	if err := s.Check(t); err != nil {
		return nil, err
	}
	var points []SweepPoint
	for _, v := range s.Values {
		runs, err := RunSeeds(ctx, t.With(s.Parameter, v), seeds, Options{Workers: true}, done)
		if err != nil {
			return points, err
		}
		points = append(points, sweepPoint(v, runs))
	}
	return points, nil
}

func sweepPoint(v olaf.Duration, runs []*Result) SweepPoint {
	p := SweepPoint{Value: v, ValueNS: v.NS()}
	for _, row := range sweepStatistics {
		var values []results.Float
		for _, r := range runs {
			values = append(values, r.swept.Of(row.Name))
		}
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
