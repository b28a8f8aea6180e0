package netsim

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Outside measures what another simulator did with a network, over the window and by the statistics of runs of it. Clusters
// are counted over all entries of the topology, workers over all clusters. Calls come in the order of time.
type Outside struct {
	sim   *sim
	owner []int32 // by worker, its cluster
}

// NewOutside begins to measure. Errors of the topology match ErrTopology.
func NewOutside(t *Topology) (*Outside, error) {
	n, err := build(t)
	if err != nil {
		return nil, err
	}
	s := &sim{network: n, t: t, end: int64(t.Warmup + t.Duration), meter: newMeter(t, n)}
	s.addWorkers()
	o := &Outside{sim: s, owner: make([]int32, n.workerCount)}
	for w, place := range s.places {
		o.owner[w] = int32(s.workers[place].cluster)
	}
	return o, nil
}

// Generation is when a worker's next update is generated in runs of the topology; false when there is no further one. Each
// call goes on by one.
func (o *Outside) Generation(worker int) (olaf.Time, bool) {
	w := &o.sim.workers[o.sim.places[worker]]
	src := &o.sim.sources[w.source]
	w.gen = src.generation(w)
	w.seq++
	return olaf.Time(w.gen), w.gen < src.end
}

// Sent is an update that a worker sends at at, when it was generated.
func (o *Outside) Sent(worker int, at olaf.Time) {
	o.sim.meter.sent(&o.sim.workers[o.sim.places[worker]], int64(at))
}

// Withheld is an update that a worker does not send.
func (o *Outside) Withheld(worker int, at olaf.Time) {
	o.sim.meter.withheld(o.owner[worker], int64(at))
}

// Dropped is a frame of a cluster that a queue dropped, with updates inside of it that are lost.
func (o *Outside) Dropped(cluster, updates int, at olaf.Time) {
	u := olaf.Update{Count: uint16(updates)}
	o.sim.meter.dropped(int32(cluster), &u, int64(at))
}

// Merged is so many updates of a cluster that were added to one that waited.
func (o *Outside) Merged(cluster, updates int, at olaf.Time) {
	for range updates {
		o.sim.meter.merged(int32(cluster), engine.Aggregated, int64(at))
	}
}

// Frame is a delivery of a frame of a cluster with updates inside, the newest generated at gen. Worker says for each of them
// whose it is; nothing is known of single workers where nobody does.
func (o *Outside) Frame(cluster int, at, gen olaf.Time, updates int) {
	o.sim.meter.frame(int32(cluster), at, gen, uint16(updates))
}

// Worker is an update inside the latest frame.
func (o *Outside) Worker(worker int, at, gen olaf.Time) {
	o.sim.meter.deliverWorker(int32(worker), at, gen)
}

// Nameless says that frames do not tell whose updates are inside.
func (o *Outside) Nameless() { o.sim.meter.nameless = true }

// Result is what was measured; ports are missing from it.
func (o *Outside) Result() *Result { return o.sim.measure() }

// Way is the switches of a network as a tree below its only server.
type Way struct {
	Switches []WaySwitch
	Homes    []int // by cluster, the switch that its workers hang on
}

// WaySwitch is one of them.
type WaySwitch struct {
	*Switch
	Parent int // its place, below its own; -1 is the server
	Up     *Link
}

// Way finds it. The error matches ErrTopology where there is none: several servers, workers of a cluster on several switches,
// and what no other simulator of these networks knows.
func (t *Topology) Way() (*Way, error) {
	n, err := build(t)
	if err != nil {
		return nil, err
	}
	if err := t.plain(); err != nil {
		return nil, err
	}
	w := &Way{}
	place := map[int32]int{}
	var add func(at int32) int
	add = func(at int32) int {
		if int(at) >= n.switches {
			return -1
		}
		if i, ok := place[at]; ok {
			return i
		}
		port := &n.ports[n.next[at]]
		parent := add(port.to)
		place[at] = len(w.Switches)
		w.Switches = append(w.Switches, WaySwitch{&t.Switches[at], parent, port.spec})
		return place[at]
	}
	for i := range n.clusters {
		w.Homes = append(w.Homes, add(n.trees[n.clusters[i].tree].attached[0]))
	}
	return w, nil
}

// plain refuses what only this simulator knows.
func (t *Topology) plain() error {
	refuse := func(p Pos, field, what string) error {
		return &Error{t.File, p.Of(field), what + ": not where workers wait for answers"}
	}
	switch {
	case len(t.Servers) > 1:
		return refuse(t.Servers[1].Pos, "name", "clusters have several servers")
	case t.Sends != "":
		return refuse(t.Pos, "sends", "updates are sent at instants of a file")
	case t.Timing == NS3:
		return refuse(t.Pos, "timing", "instants are those of ns-3")
	case t.Control.Enabled:
		return refuse(t.Control.Pos, "enabled", "transmission control withholds updates")
	case len(t.Background) > 0:
		return refuse(t.Background[0].Pos, "at", "there is traffic beside the training's")
	case len(t.Schedule) > 0:
		return refuse(t.Schedule[0].Pos, "at", "links change")
	}
	for i := range t.Clusters {
		k, first := &t.Clusters[i], &t.Clusters[0]
		switch {
		case len(k.At) > 1:
			return refuse(k.Pos, "at", fmt.Sprintf("workers of a cluster hang on %d switches", len(k.At)))
		case k.Stop > 0:
			return refuse(k.Pos, "stop", "a cluster stops")
		case k.Workers != first.Workers || k.Access.Rate != first.Access.Rate || k.Access.Delay != first.Access.Delay || k.Access.Overhead != first.Access.Overhead:
			return refuse(k.Pos, "workers", "clusters differ in their workers or the links of these")
		}
	}
	ideal := func(sw Switch) bool { return sw.Profile == "" || engine.Profile(sw.Profile) == engine.Ideal }
	if i := slices.IndexFunc(t.Switches, func(sw Switch) bool { return !ideal(sw) }); i >= 0 {
		return refuse(t.Switches[i].Pos, "profile", "engines take cycles")
	}
	return nil
}
