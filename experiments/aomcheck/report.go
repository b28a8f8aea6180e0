package aomcheck

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
)

// Scope describes in one sentence which sample paths an answer about p covers. p must have its defaults.
func (p *Problem) Scope() string {
	parts := []string{olaf.Plural(len(p.Clusters), "cluster"), p.lengths(), p.phases()}
	jitter := olaf.Duration(0)
	for _, c := range p.Clusters {
		jitter = max(jitter, c.Jitter)
	}
	if jitter > 0 {
		parts = append(parts, fmt.Sprintf("every jitter up to %v", jitter))
	}
	if p.Separation > 0 {
		parts = append(parts, fmt.Sprintf("arrivals of different clusters at least %v apart", p.Separation))
	}
	if p.Throttles() || p.Control.Sends == SendsGiven {
		parts = append(parts, fmt.Sprintf("%s send decisions", p.Control.Sends))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", model %s", p.Model)
}

func (p *Problem) lengths() string {
	least := p.Horizon
	for _, c := range p.Clusters {
		least = min(least, c.Updates)
	}
	if least < p.Horizon {
		return fmt.Sprintf("first %d to %d updates each", least, p.Horizon)
	}
	return fmt.Sprintf("first %d updates each", p.Horizon)
}

func (p *Problem) phases() string {
	every, fixed := 0, 0
	for _, c := range p.Clusters {
		switch {
		case c.EveryPhase:
			every++
		case c.PhaseLow == c.PhaseHigh:
			fixed++
		}
	}
	switch len(p.Clusters) {
	case every:
		return "every phase"
	case fixed:
		return "this arrival progression"
	}
	return "phases within their ranges"
}

// ClusterTrace describes one cluster in a run. Its times are rounded down to a picosecond.
type ClusterTrace struct {
	Cluster    string          `json:"cluster"`
	Arrivals   []UpdateTrace   `json:"updates"`
	Deliveries []DeliveryTrace `json:"deliveries"`
}

// UpdateTrace describes one update by its arrival and its fate.
type UpdateTrace struct {
	At   olaf.Duration `json:"at"`
	Fate string        `json:"fate"`
}

// DeliveryTrace describes one departed frame. Peak is nil for a cluster's first frame.
type DeliveryTrace struct {
	At        olaf.Duration  `json:"at"`
	Generated olaf.Duration  `json:"generated"`
	Update    int            `json:"update"`
	Peak      *olaf.Duration `json:"peak"`
}

// Trace converts a run to one trace per cluster.
func (p *Problem) Trace(r *Run) []ClusterTrace {
	var out []ClusterTrace
	for u, c := range p.Clusters {
		trace := ClusterTrace{Cluster: c.Name, Deliveries: []DeliveryTrace{}}
		for k, at := range r.Path.Arrivals[u] {
			trace.Arrivals = append(trace.Arrivals, UpdateTrace{p.span(r, at), r.Fates[u][k].String()})
		}
		for i, d := range r.Deliveries[u] {
			item := DeliveryTrace{At: p.span(r, d.At), Generated: p.span(r, d.Generated), Update: d.Update}
			if i > 0 {
				peak := p.span(r, d.Peak)
				item.Peak = &peak
			}
			trace.Deliveries = append(trace.Deliveries, item)
		}
		out = append(out, trace)
	}
	return out
}
