package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// outside measures what something else did with a network, a trace or hosts that wait for answers, over the window and by the
// statistics of runs of it. Clusters are counted over all entries of the topology, workers over all clusters. Calls come in the
// order of time.
type outside struct {
	sim   *sim
	owner []int32 // by worker, its cluster
}

// newOutside begins to measure. Errors of the topology match ErrTopology.
func newOutside(t *Topology) (*outside, error) {
	n, err := build(t)
	if err != nil {
		return nil, err
	}
	n.stations = nil // nobody says what tables held
	s := &sim{network: n, t: t, end: int64(t.Warmup + t.Duration), meter: newMeter(t, n)}
	s.addWorkers()
	o := &outside{sim: s, owner: make([]int32, n.workerCount)}
	for w, place := range s.places {
		o.owner[w] = int32(s.workers[place].cluster)
	}
	return o, nil
}

// generation is when a worker's next update is generated in runs of the topology; false when there is no further one. Each
// call goes on by one.
func (o *outside) generation(worker int) (olaf.Time, bool) {
	w := &o.sim.workers[o.sim.places[worker]]
	src := &o.sim.sources[w.source]
	w.gen = src.generation(w)
	w.seq++
	return olaf.Time(w.gen), w.gen < src.end
}

// sent is an update that a worker sends, generated at at.
func (o *outside) sent(worker int, at olaf.Time) {
	o.sim.meter.sent(&o.sim.workers[o.sim.places[worker]], int64(at))
}

// withheld is an update that a worker does not send.
func (o *outside) withheld(worker int, at olaf.Time) {
	o.sim.meter.withheld(o.owner[worker], int64(at))
}

// dropped is a frame of a cluster that a queue dropped, with updates inside of it that are lost.
func (o *outside) dropped(cluster, updates int, at olaf.Time) {
	u := olaf.Update{Count: uint16(updates)}
	o.sim.meter.dropped(int32(cluster), &u, int64(at))
}

// merged is so many updates of a cluster that were added to one that waited.
func (o *outside) merged(cluster, updates int, at olaf.Time) {
	for range updates {
		o.sim.meter.merged(int32(cluster), engine.Aggregated, int64(at))
	}
}

// frame is a delivery of a frame of a cluster with updates inside, the newest generated at gen. worker says for each of them
// whose it is.
func (o *outside) frame(cluster int, at, gen olaf.Time, updates int) {
	o.sim.meter.frame(int32(cluster), at, gen, uint16(updates))
}

// worker is an update inside the latest frame.
func (o *outside) worker(worker int, at, gen olaf.Time) {
	o.sim.meter.deliverWorker(int32(worker), at, gen)
}

// nameless says that a frame did not tell whose updates were inside.
func (o *outside) nameless() { o.sim.meter.nameless = true }

// result is what was measured; ports are missing from it.
func (o *outside) result() *Result { return o.sim.measure() }
