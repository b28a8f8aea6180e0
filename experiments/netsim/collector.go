package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// Measure is what a results.Collector must know to measure the deliveries of a run of t. The output is all links into
// servers together, at the rates they begin with.
func (t *Topology) Measure() results.Config {
	m := results.Config{Declared: system.Networked(), Window: t.Window(), OwnFrames: t.Waiting != nil}
	for i := range t.Clusters {
		k := &t.Clusters[i]
		m.Jobs = append(m.Jobs, results.Job{Cluster: olaf.ClusterID(k.ID), Clusters: k.count(), Workers: k.Workers})
	}
	for _, l := range t.outputs() {
		m.OutRate += l.Rate
		m.OverheadBytes = max(m.OverheadBytes, l.Overhead)
	}
	return m
}

// outputs are the links that end at a server.
func (t *Topology) outputs() (links []*Link) {
	for i := range t.Links {
		l := &t.Links[i]
		for s := range t.Servers {
			if l.From == t.Servers[s].Name || l.To == t.Servers[s].Name {
				links = append(links, l)
				break
			}
		}
	}
	return links
}

// Traffic is about how many updates the workers of t send in a run at most, and how many frames the links into servers
// carry of these at most.
func (t *Topology) Traffic() (sent, delivered float64) {
	span := (t.Warmup + t.Duration).Seconds()
	sent = float64(len(t.sends))
	if t.sends == nil {
		for i := range t.Clusters {
			k := &t.Clusters[i]
			sent += float64(k.count()*k.Workers) * span / k.Period.Seconds()
		}
	}
	for _, l := range t.outputs() {
		delivered += float64(float64(l.Rate) / float64((t.Update + l.Overhead).Bits()) * span)
	}
	return sent, min(sent, delivered)
}
