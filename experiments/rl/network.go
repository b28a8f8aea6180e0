package rl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// fractionBits is the number of fraction bits in a gradient lane, which is in Q16.16 (docs/reference/semantics.md,
// Update on the wire).
const fractionBits = 16

// arrival is a frame that arrives at a parameter server. It contains the mean of the updates in the frame or, if an
// update takes several packets, of their packets for one place.
type arrival struct {
	at       olaf.Time
	cluster  olaf.ClusterID
	place    int       // place of the packet in an update
	gradient []float32 // overwritten by the next arrival
	reward   float64
	count    int
	inside   []olaf.Contributor
	status   tc.Status // of the queue, for answers
}

// network carries updates from workers to parameter servers.
type network interface {
	// send sends an update at now. Frames that left earlier arrive first.
	send(now olaf.Time, u *olaf.Update, reward float64, g *Weights)
	// advance delivers frames that leave at or before now.
	advance(now olaf.Time)
	// drain delivers the remaining frames.
	drain()
	// stats returns counters of the updates.
	stats() engine.Stats
}

// direct is the ideal network, which delivers every update immediately.
type direct struct {
	deliver func(*arrival)
	counts  engine.Stats
	inside  [1]olaf.Contributor
}

func (d *direct) send(now olaf.Time, u *olaf.Update, reward float64, g *Weights) {
	d.counts.Class[engine.Appended]++
	d.counts.Released++
	d.inside[0] = olaf.Contributor{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker}
	d.deliver(&arrival{at: now, cluster: u.Cluster, gradient: g[:], reward: reward, count: 1, inside: d.inside[:]})
}

func (d *direct) advance(olaf.Time)   {}
func (d *direct) drain()              {}
func (d *direct) stats() engine.Stats { return d.counts }

// queued is a bottleneck with a queue. Gradients are sent as Q16.16 lanes and may be merged in the queue. If an update
// takes several packets, the queue receives packet i of a cluster under the number cluster × packets + i, so that only
// packets for the same place are merged.
type queued struct {
	port     *engine.Port
	deliver  func(*arrival)
	lanes    []int32 // of an update, and the other lanes of its frame
	packet   int     // lanes per packet
	gradient Weights
	slots    int     // in updates
	seen     []int64 // when a cluster's newest update arrived, ns; -1 for never
	windowNS int64   // how long a cluster counts as active after that
}

func newNetwork(c *Config, deliver func(*arrival)) (network, error) {
	if c.Network.Kind == Ideal {
		return &direct{deliver: deliver}, nil
	}
	lanes := int(c.Network.frame()-olaf.HeaderBytes) / olaf.LaneBytes
	n := &queued{deliver: deliver, lanes: make([]int32, lanes), packet: cmp.Or(c.Network.Lanes, lanes),
		slots: c.Network.Slots, seen: slices.Repeat([]int64{-1}, c.Clusters),
		windowNS: int64(c.meanPeriodNS(c.Network.update()) * c.Spread)}
	packets := c.Network.packets()
	out, err := c.Network.Profile.Output(c.Network.Kind, c.Network.OutRate)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	threshold, err := engine.FixedReward(c.Network.RewardThreshold)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	n.port, err = engine.NewPort(c.Network.Kind,
		engine.Config{Slots: c.Network.Slots * packets, Clusters: c.Clusters * packets, LaneMemory: n.packet, Provenance: true,
			RewardFilter: c.Network.RewardFilter, RewardThreshold: threshold}, out, n)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return n, nil
}

func (n *queued) send(now olaf.Time, u *olaf.Update, _ float64, g *Weights) {
	for i, v := range g {
		n.lanes[i] = FixedPoint(v)
	}
	packets := n.packets()
	n.seen[u.Cluster] = int64(now / olaf.Time(olaf.Nanosecond))
	first := u.Cluster * olaf.ClusterID(packets)
	for i := range packets {
		place := endpoint.Place(i, u.Seq, packets)
		packet := n.lanes[place*n.packet : min((place+1)*n.packet, len(n.lanes))]
		u.Cluster, u.Lanes = first+olaf.ClusterID(place), uint16(len(packet))
		n.port.Offer(now, u, packet)
	}
}

// packets returns the number of packets per update.
func (n *queued) packets() int { return (len(n.lanes) + n.packet - 1) / n.packet }

// FixedPoint converts a value of a gradient to Q16.16, the format in frames, with rounding and saturation. NaN becomes
// 0, but training ends before it sends a NaN.
func FixedPoint(v float32) int32 {
	f := math.RoundToEven(float64(v) * (1 << fractionBits))
	if f != f {
		return 0
	}
	return int32(min(max(f, math.MinInt32), math.MaxInt32))
}

// Deliver receives a frame from the queue's port.
func (n *queued) Deliver(d *engine.Departure) {
	u := &d.Frame.Update
	packets := olaf.ClusterID(n.packets())
	gradient := n.gradient[:min(len(d.Frame.Lanes), len(n.gradient))]
	scale := 1 / (float64(u.Count) * (1 << fractionBits))
	for i := range gradient {
		gradient[i] = float32(float64(d.Frame.Lanes[i]) * scale)
	}
	n.deliver(&arrival{at: d.At, cluster: u.Cluster / packets, place: int(u.Cluster % packets), gradient: gradient, count: int(u.Count),
		reward: float64(u.Reward) / 256 / float64(u.Count), inside: d.Frame.Contributors, status: n.queueStatus(d.At)})
}

// queueStatus returns the status in an ACK that leaves at now, counted in updates.
func (n *queued) queueStatus(now olaf.Time) tc.Status {
	active, ns := 0, int64(now/olaf.Time(olaf.Nanosecond))
	for _, at := range n.seen {
		if at >= 0 && ns-at <= n.windowNS {
			active++
		}
	}
	return tc.Status{Active: uint32(active), Slots: uint32(n.slots),
		Occupancy: uint32(n.port.Discipline().Occupancy() / n.packets())}
}

func (n *queued) advance(now olaf.Time) { n.port.Advance(now) }
func (n *queued) drain()                { n.port.Drain() }
func (n *queued) stats() engine.Stats   { return n.port.Discipline().Stats() }
