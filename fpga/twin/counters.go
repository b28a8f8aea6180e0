package twin

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// counters run since the last clear. Those that the engine keeps itself are added from it when somebody asks; own also
// holds what engines that are gone had counted, less what was cleared.
type counters struct {
	own       regmap.QueueCounters
	generator regmap.GeneratorCounters
	clearedAt int64
	peak      int
	clusters  []clusterCounters // as far as clusters were seen
}

type clusterCounters struct {
	class         [engine.Classes]uint64
	delivered     uint64
	updates       uint64
	lastDeparture int64
}

func (c *clusterCounters) in() uint64 {
	var n uint64
	for _, v := range c.class {
		n += v
	}
	return n
}

func (c *counters) reset(now int64) {
	clear(c.clusters)
	*c = counters{clearedAt: now, clusters: c.clusters}
}

// growTo makes room for a cluster; it happens when a flow is first looked up, never per update.
func (c *counters) growTo(cluster olaf.ClusterID) {
	if n := int(cluster) + 1; n > len(c.clusters) {
		c.clusters = append(c.clusters, make([]clusterCounters, n-len(c.clusters))...)
	}
}

// fromEngine is what the present engine and serialiser have counted.
func (t *Twin) fromEngine() regmap.QueueCounters {
	s := t.queue.Engine().Stats()
	return regmap.QueueCounters{
		In:                s.Offered,
		Appended:          s.Class[engine.Appended],
		Aggregated:        s.Class[engine.Aggregated],
		Replaced:          s.Class[engine.Replaced],
		ReplacedReward:    s.Class[engine.ReplacedReward],
		DroppedFull:       s.Class[engine.DroppedFull],
		DroppedReward:     s.Class[engine.DroppedReward],
		DroppedMismatch:   s.Class[engine.DroppedMismatch],
		DeliveredFrames:   s.Released,
		DeliveredUpdates:  s.SumReleased,
		FlushedFrames:     s.Flushed,
		FlushedUpdates:    s.SumFlushed,
		DiscardedUpdates:  s.SumDiscarded,
		LaneSaturations:   s.LaneSaturations,
		RewardSaturations: s.RewardSaturations,
		CountSaturations:  s.CountSaturations,
		LockedCollisions:  s.LockedCollisions,
		BusyCycles:        uint64(t.queue.Busy() / olaf.Cycle),
		StallCycles:       t.queue.StallCycles(),
		OccupancyIntegral: t.insideCycles(),
	}
}

// total is every counter now.
func (t *Twin) total() regmap.QueueCounters {
	c := t.counters.own
	c.Add(t.fromEngine())
	c.SnapshotCycle = uint64(t.now)
	c.CoveredCycles = uint64(t.now - t.counters.clearedAt)
	c.QueuedFrames, c.QueuedUpdates = t.queue.Engine().QueuedCount()
	return c
}

// fold keeps what the present engine counted before it is replaced. It must be empty.
func (c *counters) fold(t *Twin) { c.own.Add(t.fromEngine()) }

// snapshot latches all banks into the registers.
func (t *Twin) snapshot() {
	q := t.total()
	for at := regmap.QueueSnapshotCycle; q.At(at) != nil; at += 8 {
		t.set64(at, *q.At(at))
	}
	g := t.counters.generator
	for at := regmap.GeneratorSentPackets; g.At(at) != nil; at += 8 {
		t.set64(at, *g.At(at))
	}
}

// clearCounters starts all counters anew; what is inside is carried over.
func (t *Twin) clearCounters() {
	t.counters.reset(t.now)
	c := &t.counters.own
	c.Sub(t.fromEngine())
	c.CarriedFrames, c.CarriedUpdates = t.queue.Engine().QueuedCount()
	t.counters.peak = t.queue.Engine().Occupancy()
}

// selectCluster latches one cluster's counters into the registers.
func (t *Twin) selectCluster(index uint32) {
	var c clusterCounters
	if int(index) < len(t.counters.clusters) {
		c = t.counters.clusters[index]
	}
	values := append([]uint64{c.in()}, c.class[:]...)
	values = append(values, c.delivered, c.updates, uint64(c.lastDeparture))
	for i, v := range values {
		t.set64(regmap.QueueClusterIn+uint32(8*i), v)
	}
}

// Check says which accounting identity of docs/semantics.md does not hold since the counters were cleared.
func (t *Twin) Check() error {
	c, sent := t.total(), t.counters.generator.SentPackets
	var clusters uint64
	for i := range t.counters.clusters {
		clusters += t.counters.clusters[i].in()
	}
	accepted := c.Appended + c.Aggregated + c.Replaced + c.ReplacedReward
	identities := []struct {
		name        string
		left, right uint64
		void        bool
	}{
		{"sent = in + bypassed + malformed + lost_before_engine", sent, c.In + c.Bypassed + c.Malformed + c.LostBeforeEngine, false},
		{"in = sum of the classes", c.In, accepted + c.DroppedFull + c.DroppedReward + c.DroppedMismatch, false},
		{"in = sum over the clusters", c.In, clusters, false},
		{"appended + carried = delivered + queued + flushed frames", c.Appended + c.CarriedFrames, c.DeliveredFrames + c.QueuedFrames + c.FlushedFrames, false},
		{"accepted + carried = delivered + queued + flushed + discarded updates", accepted + c.CarriedUpdates,
			c.DeliveredUpdates + c.QueuedUpdates + c.FlushedUpdates + c.DiscardedUpdates, c.CountSaturations > 0},
	}
	for _, i := range identities {
		if i.left != i.right && !i.void {
			return fmt.Errorf("twin: the accounting is wrong: %s, but %d ≠ %d", i.name, i.left, i.right)
		}
	}
	return nil
}
