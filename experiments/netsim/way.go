package netsim

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf/fpga/engine"
)

// way is a network's switches as a tree below its only server.
type way struct {
	switches []waySwitch
	homes    []int // by cluster, the switch of its workers
}

// waySwitch is a switch in the tree.
type waySwitch struct {
	*Switch
	parent int // index of the parent, less than its own; -1 for the server
	up     *Link
}

// buildWay builds the tree. The error matches ErrTopology if the network is not a tree, such as with several servers, with a
// cluster's workers on several switches, or with features that need open-loop workers.
func (t *Topology) buildWay() (*way, error) {
	n, err := buildNetwork(t)
	if err != nil {
		return nil, err
	}
	if err := t.checkPlain(); err != nil {
		return nil, err
	}
	w := &way{}
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
		place[at] = len(w.switches)
		w.switches = append(w.switches, waySwitch{&t.Switches[at], parent, port.spec})
		return place[at]
	}
	for i := range n.clusters {
		w.homes = append(w.homes, add(n.trees[n.clusters[i].tree].attached[0]))
	}
	return w, nil
}

// checkPlain rejects features that closed-loop workers do not support.
func (t *Topology) checkPlain() error {
	refuse := func(p Pos, field, what string) error {
		return &Error{t.File, p.LineOf(field), what + ": not where workers wait for answers"}
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
		case k.Workers != first.Workers || k.Access.Rate != first.Access.Rate || k.Access.Delay != first.Access.Delay ||
			k.Access.Overhead != first.Access.Overhead || k.Access.Loss != first.Access.Loss:
			return refuse(k.Pos, "workers", "clusters differ in their workers or the links of these")
		}
	}
	if i := slices.IndexFunc(t.Switches, func(sw Switch) bool { return sw.HoldTx && sw.Slots == 1 }); i >= 0 {
		return refuse(t.Switches[i].Pos, "slots", "ports store only the frame on the wire")
	}
	if i := slices.IndexFunc(t.Switches, func(sw Switch) bool { return t.queueOf(&sw) != t.Queue }); i >= 0 {
		return refuse(t.Switches[i].Pos, "queue", "a switch has a queue of its own")
	}
	ideal := func(sw Switch) bool { return sw.Profile == "" || engine.Profile(sw.Profile) == engine.Ideal }
	if i := slices.IndexFunc(t.Switches, func(sw Switch) bool { return !ideal(sw) }); i >= 0 {
		return refuse(t.Switches[i].Pos, "profile", "engines take cycles")
	}
	return nil
}
