package netsim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
)

// network is a topology in which every name is resolved to an index. The switches are the first nodes, followed by the
// servers.
type network struct {
	names    []string
	switches int
	ports    []port
	// next[server*len(names)+node] is the port that leads to the server; -1 if there is no path.
	next        []int32
	portOf      map[[2]int32]int32 // (from, to) → port
	clusters    []cluster
	groups      []string
	workerCount int
	listeners   int
	trees       []tree
	stations    []station // per switch; nil if they only forward
}

// port is an output port of a switch, which sends on a link.
type port struct {
	from, to int32
	output   *engine.Port
	slots    uint32
	spec     *Link
	delay    int64 // ps

	portState
}

// cluster is one training job in the simulator. It fits in half a cache line.
type cluster struct {
	id          olaf.ClusterID
	server      int32
	group       int32
	tree        int32
	source      int32
	firstWorker int32 // dense index of its worker 0
	workers     int32
	listen      int32 // first listener; there is one per leaf of the tree, or one per worker
}

// tree is the path that ACKs take from a server down to the switches of the workers in one entry of the topology's
// clusters.
type tree struct {
	spec     *Clusters
	attached []int32 // switches, as in spec.At

	hops   []hop
	roots  []int32
	leaves int32
	leafOf []int32 // per entry of Clusters.At, its leaf
}

// hop is one switch on the way of ACKs to the workers.
type hop struct {
	uplink   int32 // port whose link carries the ACK and whose status the ACK collects
	children []int32
	leaf     int32 // -1: no workers here
}

// Resolve checks t and finds its routes. It returns the first error that prevents a run.
func (t *Topology) Resolve() error {
	if t.Waiting == nil {
		_, err := buildNetwork(t)
		return err
	}
	j, err := NewJobs(t)
	if err == nil {
		_, err = closedloop.PlanJobs(j.Network, j.Job, j.parts, j.Mode.Sync) // tries to build the hosts and switches
	}
	if err != nil && !errors.Is(err, ErrTopology) {
		return t.locateError(t.Waiting.Pos, "system", err)
	}
	return err
}

func buildNetwork(t *Topology) (*network, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	n := &network{switches: len(t.Switches), portOf: map[[2]int32]int32{}}
	index := map[string]int32{}
	for i := range t.Switches {
		index[t.Switches[i].Name] = int32(len(n.names))
		n.names = append(n.names, t.Switches[i].Name)
	}
	for i := range t.Servers {
		index[t.Servers[i].Name] = int32(len(n.names))
		n.names = append(n.names, t.Servers[i].Name)
	}
	n.addPorts(t, index)
	n.addRoutes(t, index)
	if err := n.addClusters(t, index); err != nil {
		return nil, err
	}
	for i := range t.Background {
		b := &t.Background[i]
		if _, err := n.findPath(t, b.Pos, index[b.At], index[b.To]-int32(n.switches)); err != nil {
			return nil, err
		}
	}
	return n, errors.Join(n.addOutputs(t), n.addPrograms(t))
}

func (n *network) addPorts(t *Topology, index map[string]int32) {
	add := func(from, to int32, l *Link) {
		if int(from) >= n.switches {
			return
		}
		n.portOf[[2]int32{from, to}] = int32(len(n.ports))
		n.ports = append(n.ports, port{
			from: from, to: to, spec: l, delay: int64(l.Delay),
		})
	}
	for i := range t.Links {
		l := &t.Links[i]
		add(index[l.From], index[l.To], l)
		add(index[l.To], index[l.From], l)
	}
}

// addRoutes finds the path with the fewest hops to every server, and then applies the explicit routes. Among equally
// short paths, it prefers links that come earlier in the file.
func (n *network) addRoutes(t *Topology, index map[string]int32) {
	into := make([][]int32, len(n.names)) // ports that lead to a node
	for i := range n.ports {
		into[n.ports[i].to] = append(into[n.ports[i].to], int32(i))
	}
	n.next = slices.Repeat([]int32{-1}, len(t.Servers)*len(n.names))
	for s := range t.Servers {
		next := n.next[s*len(n.names):][:len(n.names)]
		root := int32(n.switches + s)
		queue := []int32{root}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, p := range into[at] {
				if from := n.ports[p].from; next[from] < 0 {
					next[from] = p
					queue = append(queue, from)
				}
			}
		}
	}
	for i := range t.Routes {
		r := &t.Routes[i]
		server := int(index[r.To]) - n.switches
		n.next[server*len(n.names)+int(index[r.At])] = n.portOf[[2]int32{index[r.At], index[r.Via]}]
	}
}

// findPath returns the ports along the path from a switch to a server.
func (n *network) findPath(t *Topology, p Pos, from, server int32) ([]int32, error) {
	var ports []int32
	at := from
	for int(at) != n.switches+int(server) {
		next := n.next[int(server)*len(n.names)+int(at)]
		target := n.names[n.switches+int(server)]
		if next < 0 {
			return nil, &Error{t.File, p.LineOf("at"),
				fmt.Sprintf("there is no path from %s to %s; add a link", n.names[at], target)}
		}
		ports = append(ports, next)
		if len(ports) > n.switches {
			return nil, &Error{t.File, n.routeLine(t, ports),
				fmt.Sprintf("the routes to %s go in a circle: %s; change one via", target, n.formatLoop(ports))}
		}
		if at = n.ports[next].to; int(at) >= n.switches && int(at) != n.switches+int(server) {
			return nil, &Error{t.File, n.routeLine(t, ports),
				fmt.Sprintf("the route to %s leads through the server %s, which does not forward", target, n.names[at])}
		}
	}
	return ports, nil
}

// formatLoop formats the loop in a path. The path has more ports than there are switches and therefore ends in a loop.
func (n *network) formatLoop(ports []int32) string {
	last := n.ports[ports[len(ports)-1]].from
	names := []string{n.names[last]}
	for i := len(ports) - 2; i >= 0; i-- {
		names = append([]string{n.names[n.ports[ports[i]].from]}, names...)
		if n.ports[ports[i]].from == last {
			break
		}
	}
	return strings.Join(names, " → ")
}

// routeLine returns the file's line with the last explicit route on a path.
func (n *network) routeLine(t *Topology, ports []int32) int {
	for i := range t.Routes {
		r := &t.Routes[i]
		p := n.ports[ports[len(ports)-1]]
		if r.At == n.names[p.from] {
			return r.Line
		}
	}
	if len(t.Routes) > 0 {
		return t.Routes[len(t.Routes)-1].Line
	}
	return 0
}

func (n *network) addClusters(t *Topology, index map[string]int32) error {
	groups := map[string]int32{}
	for i := range t.Clusters {
		spec := &t.Clusters[i]
		server := int32(0)
		if spec.Server != "" {
			server = index[spec.Server] - int32(n.switches)
		}
		attached := olaf.Map(spec.At, func(name string) int32 { return index[name] })
		tr, err := n.treeOf(t, spec, attached, server)
		if err != nil {
			return err
		}
		n.trees = append(n.trees, tr)
		name := cmp.Or(spec.Group, fmt.Sprintf("S%d", i+1))
		group, ok := groups[name]
		if !ok {
			group = int32(len(n.groups))
			groups[name] = group
			n.groups = append(n.groups, name)
		}
		for j := range spec.clusterCount() {
			n.clusters = append(n.clusters, cluster{
				id: olaf.ClusterID(spec.ID + j), server: server, group: group, tree: int32(len(n.trees) - 1),
				firstWorker: int32(n.workerCount), workers: int32(spec.Workers), listen: int32(n.listeners),
			})
			n.workerCount += spec.Workers
			n.listeners += spec.listenerCount(&tr)
		}
	}
	return nil
}

// listenerCount returns the number of separate ACK states of a cluster: one per switch, or one per worker if the
// workers' links lose ACKs.
func (k *Clusters) listenerCount(tr *tree) int {
	if k.Access.Loss > 0 {
		return k.Workers
	}
	return int(tr.leaves)
}

// treeOf combines the reverse paths from a server to several switches.
func (n *network) treeOf(t *Topology, spec *Clusters, attached []int32, server int32) (tree, error) {
	tr := tree{spec: spec, attached: attached}
	hopAt := map[int32]int32{}
	for _, sw := range attached {
		ports, err := n.findPath(t, spec.Pos, sw, server)
		if err != nil {
			return tr, err
		}
		parent := int32(-1)
		for i := len(ports) - 1; i >= 0; i-- {
			node := n.ports[ports[i]].from
			h, ok := hopAt[node]
			if !ok {
				h = int32(len(tr.hops))
				hopAt[node] = h
				tr.hops = append(tr.hops, hop{uplink: ports[i], leaf: -1})
				if parent < 0 {
					tr.roots = append(tr.roots, h)
				} else {
					tr.hops[parent].children = append(tr.hops[parent].children, h)
				}
			}
			parent = h
		}
		last := &tr.hops[parent]
		if last.leaf < 0 {
			last.leaf = tr.leaves
			tr.leaves++
		}
		tr.leafOf = append(tr.leafOf, last.leaf)
	}
	return tr, nil
}

// addOutputs creates the output of every port. Its size depends on the highest id of the clusters that pass the port.
func (n *network) addOutputs(t *Topology) error {
	highest := make([]int, len(n.ports))
	for i := range n.clusters {
		c := &n.clusters[i]
		for h := range n.trees[c.tree].hops {
			p := n.trees[c.tree].hops[h].uplink
			highest[p] = max(highest[p], int(c.id)+1)
		}
	}
	provenance := t.Merges()
	threshold, err := engine.FixedReward(t.RewardThreshold)
	if err != nil {
		return &Error{t.File, t.LineOf("reward_threshold"), err.Error()}
	}
	for i := range n.ports {
		p := &n.ports[i]
		sw := &t.Switches[p.from]
		queue := t.queueOf(sw)
		out, err := engine.Profile(cmp.Or(sw.Profile, string(engine.Ideal))).Costs(queue)
		if err != nil {
			return &Error{t.File, sw.LineOf("profile"), err.Error()}
		}
		out.BypassSlots = cmp.Or(sw.Bypass, defaultBypass)
		p.output, err = engine.NewPort(queue, engine.Config{
			Slots: sw.Slots, Clusters: max(highest[i], 1), FreeSlotOnStart: !sw.HoldTx, Provenance: provenance,
			RewardFilter: t.RewardFilter, RewardThreshold: threshold,
		}, out, nil)
		if err != nil {
			return &Error{t.File, sw.LineOf("slots"), err.Error()}
		}
		p.output.SetClock(t.linkClock(p.spec.Rate, p.spec.Overhead))
		turns := engine.StepClock(0) // ACKs take no transmission time
		if p.spec.AckRate > 0 {
			turns = t.linkClock(p.spec.AckRate, p.spec.Overhead)
		}
		p.down = closedloop.NewWire(turns, p.spec.Delay)
		p.down.Line = closedloop.NewLine(p.spec.AckSlots)
		p.up.SetLoss(p.spec.Loss, 0, t.Seed, 2*i)
		p.down.SetLoss(p.spec.Loss, 0, t.Seed, 2*i+1)
		p.slots = uint32(sw.Slots)
		p.activity = engine.NewActivity(t.activityWindow(), max(highest[i], 1))
	}
	return nil
}

const defaultBypass = 64

// activityWindow returns the length, in ps, of the window in which ports count active clusters.
func (t *Topology) activityWindow() int64 { return int64(cmp.Or(t.Control.Window, olaf.Second)) }

// queueOf returns the queue discipline of a switch's ports.
func (t *Topology) queueOf(sw *Switch) string { return cmp.Or(sw.Queue, t.Queue) }

// linkClock returns a clock for the transmission times of frames on a link with the given rate and overhead.
func (t *Topology) linkClock(rate olaf.Rate, overhead olaf.Size) engine.Clock {
	if t.Timing == NS3 {
		return engine.NS3Clock(rate, overhead)
	}
	return engine.PicosecondClock(rate, overhead)
}

// Merges reports whether any queue or switch can combine updates from several workers.
func (t *Topology) Merges() bool {
	merges := func(queue string) bool {
		k, _ := engine.FindDiscipline(queue)
		return k.Merges
	}
	return t.Program != "" || merges(t.Queue) ||
		slices.ContainsFunc(t.Switches, func(sw Switch) bool { return merges(sw.Queue) })
}

// ackStatus returns the queue status that the port writes into an ACK.
func (p *port) ackStatus(at int64, count Count) tc.Status {
	d := p.output.Discipline()
	active := uint32(d.ActiveClusters())
	if count != CountInside {
		active = p.activity.Count(at)
	}
	return tc.Status{Active: active, Slots: p.slots, Occupancy: uint32(d.Occupancy())}
}
