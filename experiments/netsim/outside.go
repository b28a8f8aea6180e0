package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// externalMeter measures a network that is simulated elsewhere, as in a trace or with closed-loop hosts, over the same
// window and with the same statistics. Clusters are numbered over all entries of the topology, workers over all
// clusters. Calls must be in the order of time.
type externalMeter struct {
	sim   *sim
	owner []int32 // by worker, its cluster
}

// newExternalMeter returns a meter for the topology. Errors match ErrTopology.
func newExternalMeter(t *Topology) (*externalMeter, error) {
	n, err := buildNetwork(t)
	if err != nil {
		return nil, err
	}
	n.stations = nil // the contents of tables are unknown
	s := &sim{network: n, t: t, end: int64(t.Warmup + t.Duration), meter: newMeter(t, n)}
	s.addWorkers()
	o := &externalMeter{sim: s, owner: make([]int32, n.workerCount)}
	for w, place := range s.places {
		o.owner[w] = int32(s.workers[place].cluster)
	}
	return o, nil
}

// nextGeneration returns the time of a worker's next update in runs of the topology; false after the last one. Each call
// advances by one.
func (o *externalMeter) nextGeneration(worker int) (olaf.Time, bool) {
	w := &o.sim.workers[o.sim.places[worker]]
	src := &o.sim.sources[w.source]
	w.gen = src.generationTime(w)
	w.seq++
	return olaf.Time(w.gen), w.gen < src.end
}

// recordSend records an update that a worker sends, generated at at.
func (o *externalMeter) recordSend(worker int, at olaf.Time) {
	o.sim.meter.countSend(&o.sim.workers[o.sim.places[worker]], int64(at))
}

// recordWithhold records an update that a worker withholds.
func (o *externalMeter) recordWithhold(worker int, at olaf.Time) {
	o.sim.meter.countWithhold(o.owner[worker], int64(at))
}

// recordDrop records a frame of a cluster that a queue dropped, with the updates lost in it.
func (o *externalMeter) recordDrop(cluster, updates int, at olaf.Time) {
	u := olaf.Update{Count: uint16(updates)}
	o.sim.meter.countDrop(int32(cluster), &u, int64(at))
}

// recordMerges records updates of a cluster that were added to a waiting one.
func (o *externalMeter) recordMerges(cluster, updates int, at olaf.Time) {
	for range updates {
		o.sim.meter.countMerge(int32(cluster), engine.Aggregated, int64(at))
	}
}

// recordFrame records the delivery of a frame of a cluster, its newest update generated at gen. The caller then calls worker
// for each update in it.
func (o *externalMeter) recordFrame(cluster int, at, gen olaf.Time, updates int) {
	o.sim.meter.recordFrame(int32(cluster), at, gen, uint16(updates))
}

// recordWorker records one update in the latest frame.
func (o *externalMeter) recordWorker(recordWorker int, at, gen olaf.Time) {
	o.sim.meter.deliverWorker(int32(recordWorker), at, gen)
}

// setNameless records that a frame did not name its contributors.
func (o *externalMeter) setNameless() { o.sim.meter.nameless = true }

// makeResult returns the measurements, without ports.
func (o *externalMeter) makeResult() *Result { return o.sim.measureRun() }
