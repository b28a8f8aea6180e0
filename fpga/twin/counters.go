package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regfile"
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

// fromStats are the counters of the engine that have registers.
var fromStats = registered(engine.Rows())

// counted is one counter of the engine and its register.
type counted struct {
	address uint32
	of      func(*engine.Stats) uint64
}

func registered(rows []engine.Row) (out []counted) {
	for i := range rows {
		if ref, err := regmap.Lookup(rows[i].Register); err == nil {
			out = append(out, counted{ref.Address(), rows[i].Of})
		}
	}
	return out
}

// fromEngine is what the present engine and serialiser have counted.
func (t *Twin) fromEngine() (q regmap.QueueCounters) {
	s := t.queue.Discipline().Stats()
	for _, c := range fromStats {
		*q.At(c.address) = c.of(&s)
	}
	q.BusyCycles = uint64(t.queue.Busy() / olaf.Cycle)
	q.StallCycles = t.queue.StallCycles()
	q.OccupancyIntegral = t.insideCycles()
	return q
}

// total is every counter now.
func (t *Twin) total() regmap.QueueCounters {
	c := t.counters.own
	c.Add(t.fromEngine())
	c.LostBeforeEngine += uint64(t.unit.inside())
	c.SnapshotCycle = uint64(t.now)
	c.CoveredCycles = uint64(t.now - t.counters.clearedAt)
	c.QueuedFrames, c.QueuedUpdates = t.queue.Discipline().QueuedCount()
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
	t.snapshotFront()
}

// clearCounters starts all counters anew; what is inside is carried over.
func (t *Twin) clearCounters() {
	t.counters.reset(t.now)
	c := &t.counters.own
	c.Sub(t.fromEngine())
	c.CarriedFrames, c.CarriedUpdates = t.queue.Discipline().QueuedCount()
	t.counters.peak = t.queue.Discipline().Occupancy()
	t.clearFront()
}

// selectCluster latches one cluster's counters into the registers.
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
