package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// counters contains the counts since the last clear. The current engine's counts are added only when counters are read.
// own also includes the counts of replaced engines, minus the values at the last clear.
type counters struct {
	own       regmap.QueueCounters
	generator regmap.GeneratorCounters
	clearedAt int64
	peak      int
	clusters  []clusterCounters // up to the highest cluster id seen
}

type clusterCounters struct {
	class         [engine.Classes]uint64
	delivered     uint64
	updates       uint64
	lastDeparture int64
}

func (c *counters) reset(now int64) {
	clear(c.clusters)
	*c = counters{clearedAt: now, clusters: c.clusters}
}

// growTo allocates counters for clusters up to the given one. It is called when a flow is first looked up, not for
// every update.
func (c *counters) growTo(cluster olaf.ClusterID) {
	if n := int(cluster) + 1; n > len(c.clusters) {
		c.clusters = append(c.clusters, make([]clusterCounters, n-len(c.clusters))...)
	}
}

// fromStats lists the engine's counters that have a register.
var fromStats = selectRegistered(engine.CounterRows())

// counted is a counter of the engine, with the address of its register.
type counted struct {
	address uint32
	of      func(*engine.Stats) uint64
}

func selectRegistered(rows []engine.Row) (out []counted) {
	for i := range rows {
		if ref, err := regmap.FindRegister(rows[i].Register); err == nil {
			out = append(out, counted{ref.Address(), rows[i].Of})
		}
	}
	return out
}

// engineCounters returns the counts of the current engine and its serializer.
func (t *Twin) engineCounters() (q regmap.QueueCounters) {
	s := t.queue.Discipline().Stats()
	for _, c := range fromStats {
		*q.At(c.address) = c.of(&s)
	}
	q.BusyCycles = uint64(t.queue.Busy() / olaf.Cycle)
	q.StallCycles = t.queue.StallCycles()
	q.OccupancyIntegral = t.insideCycles()
	return q
}

// totalCounters returns the current values of all counters.
func (t *Twin) totalCounters() regmap.QueueCounters {
	c := t.counters.own
	c.Add(t.engineCounters())
	c.LostBeforeEngine += uint64(t.unit.countWaiting())
	c.SnapshotCycle = uint64(t.now)
	c.CoveredCycles = uint64(t.now - t.counters.clearedAt)
	c.QueuedFrames, c.QueuedUpdates = t.queue.Discipline().QueuedCount()
	return c
}

// latchCounters latches all counter banks into the registers.
func (t *Twin) latchCounters() {
	q := t.totalCounters()
	for at := regmap.QueueSnapshotCycle; q.At(at) != nil; at += 8 {
		t.set64(at, *q.At(at))
	}
	g := t.counters.generator
	for at := regmap.GeneratorSentPackets; g.At(at) != nil; at += 8 {
		t.set64(at, *g.At(at))
	}
	t.snapshotFront()
}

// clearCounters clears all counters. Frames that are still queued are counted as carried over.
func (t *Twin) clearCounters() {
	t.counters.reset(t.now)
	c := &t.counters.own
	c.Sub(t.engineCounters())
	c.CarriedFrames, c.CarriedUpdates = t.queue.Discipline().QueuedCount()
	t.counters.peak = t.queue.Discipline().Occupancy()
	t.clearFront()
}

// selectCluster copies the counters of one cluster into the registers.
func (t *Twin) selectCluster(index uint32) {
	var c clusterCounters
	if int(index) < len(t.counters.clusters) {
		c = t.counters.clusters[index]
	}
	t.file.ShowCluster(&regfile.Cluster{
		Class: c.class, DeliveredFrames: c.delivered, DeliveredUpdates: c.updates,
		LastDeparture: uint64(c.lastDeparture),
	})
}
