package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// CollectorConfig returns the configuration of a results.Collector for the deliveries of a run of t. Its output rate is the sum
// of all links into servers, at their initial rates.
func (t *Topology) CollectorConfig() results.Config {
	m := results.Config{Declared: system.NetworkDeclaration(), Window: t.Window(), OwnFrames: t.Waiting != nil}
	for i := range t.Clusters {
		k := &t.Clusters[i]
		m.Jobs = append(m.Jobs, results.Job{Cluster: olaf.ClusterID(k.ID), Clusters: k.clusterCount(),
			Workers: k.Workers})
	}
	for _, l := range t.serverLinks() {
		m.OutRate += l.Rate
		m.OverheadBytes = max(m.OverheadBytes, l.Overhead)
	}
	return m
}

// serverLinks returns the links that end at a server.
func (t *Topology) serverLinks() (links []*Link) {
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

// EstimateTraffic estimates upper limits: the number of updates sent per run, and the number of frames that the links into
// servers can deliver.
func (t *Topology) EstimateTraffic() (sent, delivered float64) {
	span := (t.Warmup + t.Duration).Seconds()
	sent = float64(len(t.sends))
	if t.sends == nil {
		for i := range t.Clusters {
			k := &t.Clusters[i]
			sent += float64(k.clusterCount()*k.Workers) * span / k.Period.Seconds()
		}
	}
	for _, l := range t.serverLinks() {
		delivered += float64(float64(l.Rate) / float64((t.Update + l.Overhead).Bits()) * span)
	}
	return sent, min(sent, delivered)
}
