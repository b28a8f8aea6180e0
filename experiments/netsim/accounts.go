package netsim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
)

// totals is what became of every update of the whole run, warm-up included, with the network taken as one queue: what
// merged or was lost at any hop counts, what went on to the next one does not. Updates that are on their way at the end
// are queued; frames that a failed link lost are flushed.
func (s *sim) totals() olaf.Counts {
	t, f := &s.meter.total, s.fate()
	c := olaf.NewCounts(system.Queued().Ledger)
	for name, n := range map[string]uint64{
		"sent": t[countSent], "tc_withheld": t[countWithheld], "in": t[countSent], "delivered": t[countDelivered], "received": t[countDelivered], "queued": uint64(s.inside()),
		"count_delivered": f.Delivered, "count_queued": f.Queued + f.Flying, "count_flushed": f.LostOnLinks,
		// What a dropped frame held beside itself is lost with it.
		"count_discarded": f.Replaced + t[countDroppedUpdates] - t[countDropped],
	} {
		c.Add(name, int64(n))
	}
	appended := int64(t[countSent])
	for i := range s.ports {
		p := &s.ports[i]
		st := p.output.Discipline().Stats()
		for class := range engine.Classes {
			if n := int64(st.Class[class]); class != engine.Appended {
				c.Add(class.String(), n)
				appended -= n
			}
		}
		c.Add("flushed", int64(p.updateFramesLost))
		c.Add("count_saturations", int64(st.CountSaturations))
		c.Add("reward_saturations", int64(st.RewardSaturations))
	}
	c.Add(engine.Appended.String(), appended)
	return c
}

// inside counts the frames that are in slots or on links.
func (s *sim) inside() int64 {
	n := int64(s.meter.airborne)
	for i := range s.ports {
		p := &s.ports[i]
		n += int64(p.output.Discipline().Waiting())
		for k := range p.link.len() {
			if p.link.at(k).update.Count > 0 {
				n++
			}
		}
	}
	for i := range s.sources {
		n += int64(s.sources[i].sent.len())
	}
	n += int64(s.held.len())
	return n
}

// Measure is what a results.Collector must know to measure the deliveries of a run of t. The output is all links into
// servers together, at the rates they begin with.
func (t *Topology) Measure() results.Config {
	m := results.Config{Declared: system.Queued(), Window: t.Window()}
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
		delivered += float64(l.Rate) / float64((t.Update + l.Overhead).Bits()) * span
	}
	return sent, min(sent, delivered)
}

// SendsDigest identifies the arrivals that SetSends gave, which Document only names; empty without.
func (t *Topology) SendsDigest() string {
	if t.sends == nil {
		return ""
	}
	h := sha256.New()
	for _, s := range t.sends {
		fmt.Fprintf(h, "%d,%d\n", s.At.NS(), s.Worker)
	}
	return hex.EncodeToString(h.Sum(nil))
}
