package rl

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl/ppo"
	"github.com/olafctl/olaf/fpga/engine"
)

// fractionBits is the fixed point of gradient lanes, Q16.16 (docs/semantics.md, Update on the wire).
const fractionBits = 16

// arrival is what reaches a parameter server: the mean of the updates inside.
type arrival struct {
	at       olaf.Time
	cluster  olaf.ClusterID
	gradient *ppo.Weights // overwritten by the next arrival
	reward   float64
	count    int
	inside   []olaf.Contributor
}

// network carries updates from workers to servers.
type network interface {
	// send hands an update over at now. What leaves up to then arrives first.
	send(now olaf.Time, u *olaf.Update, reward float64, g *ppo.Weights)
	// advance delivers what leaves at or before now.
	advance(now olaf.Time)
	// drain delivers the rest.
	drain()
	// stats is what became of the updates.
	stats() engine.Stats
}

// direct is the ideal network.
type direct struct {
	deliver func(*arrival)
	counts  engine.Stats
	inside  [1]olaf.Contributor
}

func (d *direct) send(now olaf.Time, u *olaf.Update, reward float64, g *ppo.Weights) {
	d.counts.Class[engine.Appended]++
	d.counts.Released++
	d.inside[0] = olaf.Contributor{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker}
	d.deliver(&arrival{at: now, cluster: u.Cluster, gradient: g, reward: reward, count: 1, inside: d.inside[:]})
}

func (d *direct) advance(olaf.Time)   {}
func (d *direct) drain()              {}
func (d *direct) stats() engine.Stats { return d.counts }

// queued is a bottleneck with a queue: gradients travel as Q16.16 lanes and merge on the way.
type queued struct {
	port     *engine.Port
	deliver  func(*arrival)
	lanes    []int32
	gradient ppo.Weights
}

func newNetwork(c *Config, deliver func(*arrival)) (network, error) {
	if c.Network.Kind == Ideal {
		return &direct{deliver: deliver}, nil
	}
	lanes := int(c.Network.frame()-olaf.HeaderBytes) / olaf.LaneBytes
	n := &queued{deliver: deliver, lanes: make([]int32, lanes)}
	out, err := c.Network.Profile.Output(c.Network.Kind, c.Network.OutRate)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	n.port, err = engine.NewPort(c.Network.Kind,
		engine.Config{Slots: c.Network.Slots, Clusters: c.Clusters, LaneMemory: lanes, Provenance: true}, out, n)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return n, nil
}

func (n *queued) send(now olaf.Time, u *olaf.Update, _ float64, g *ppo.Weights) {
	for i, v := range g {
		n.lanes[i] = toFixed(v)
	}
	u.Lanes = uint16(len(n.lanes))
	n.port.Offer(now, u, n.lanes)
}

// toFixed rounds to Q16.16 and saturates; a gradient that is no number counts as none.
func toFixed(v float32) int32 {
	f := math.RoundToEven(float64(v) * (1 << fractionBits))
	if f != f {
		return 0
	}
	return int32(min(max(f, math.MinInt32), math.MaxInt32))
}

// Deliver makes n the sink of its port.
func (n *queued) Deliver(d *engine.Departure) {
	u := &d.Frame.Update
	scale := 1 / (float64(u.Count) * (1 << fractionBits))
	for i := range n.gradient {
		n.gradient[i] = float32(float64(d.Frame.Lanes[i]) * scale)
	}
	n.deliver(&arrival{at: d.At, cluster: u.Cluster, gradient: &n.gradient, count: int(u.Count),
		reward: float64(u.Reward) / 256 / float64(u.Count), inside: d.Frame.Contributors})
}

func (n *queued) advance(now olaf.Time) { n.port.Advance(now) }
func (n *queued) drain()                { n.port.Drain() }
func (n *queued) stats() engine.Stats   { return n.port.Discipline().Stats() }
