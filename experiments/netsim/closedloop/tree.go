package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Tree runs the program on servers instead of switches. Each server has one link to the switch, over which it
// communicates with its children and its parent. The root's sums go to all workers at once, as one frame that the
// switch copies. Replies to repeated requests from a worker pass down the tree.
type Tree struct {
	Servers []TreeServer // root first
	Workers []int        // by worker, its parent's index in Servers
	Kill    *Kill
	Load    *Load
}

// TreeServer is one server in a tree.
type TreeServer struct {
	Parent int // index of the parent, less than its own; unused for the root
	Link   Link
}

// Kill makes a server fail during a job. After a while the management notices the failure, moves the server's children
// to its parent, and makes the workers resend their vectors.
type Kill struct {
	Server  int // any but the root
	At      olaf.Duration
	Noticed olaf.Duration // after At
}

// Load takes away part of a server's link bandwidth during a job. The management compares the remaining rates of the
// servers at intervals. It removes the server from the tree, as if it had failed, as soon as its children would get
// more bandwidth at its parent (XAgg §V, discussion).
type Load struct {
	Server int // any but the root
	At     olaf.Duration
	Rate   olaf.Rate     // remaining rate
	Every  olaf.Duration // between comparisons; 0 for no management
}

// movesChildren reports whether the children of the loaded server would get a larger share of its parent's link than
// they now get of the server's link.
func (t *Tree) movesChildren() bool {
	own, parent := t.Load.Server, t.Servers[t.Load.Server].Parent
	children := len(t.childrenOf(own))
	after := len(t.childrenOf(parent)) - 1 + children
	return float64(t.Servers[parent].Link.Rate)/float64(after) > float64(t.Load.Rate)/float64(children)
}

// root is the index of the root server, which has no parent.
const root = 0

func (t *Tree) checkTree(n *Network) error {
	switch {
	case t == nil:
		return nil
	case n.Jobs > 1:
		return fmt.Errorf("%w: a tree of servers has one job, not %d", ErrConfig, n.Jobs)
	case n.PerRack > 0:
		return fmt.Errorf("%w: a tree of servers hangs on one switch, without racks", ErrConfig)
	case len(t.Servers) < 1 || len(t.Workers) != n.Workers:
		return fmt.Errorf("%w: a tree of %d servers, with places for %d of %d workers", ErrConfig, len(t.Servers),
			len(t.Workers), n.Workers)
	case t.Kill != nil && (t.Kill.Server <= root || t.Kill.Server >= len(t.Servers) || t.Kill.At < 0 ||
		t.Kill.Noticed < 0):
		return fmt.Errorf("%w: server %d of %d cannot be killed at %s; the root cannot be", ErrConfig, t.Kill.Server,
			len(t.Servers), t.Kill.At)
	}
	if l := t.Load; l != nil && (t.Kill != nil || l.Server <= root || l.Server >= len(t.Servers) || l.At < 0 || l.Rate <= 0 ||
		l.Every < 0) {
		return fmt.Errorf("%w: server %d of %d with %s left at %s; it is not the root, a rate is left, and no server is killed",
			ErrConfig, l.Server, len(t.Servers), l.Rate, l.At)
	}
	for i := range t.Servers {
		if s := &t.Servers[i]; i != root && (s.Parent < 0 || s.Parent >= i) || s.Link.Rate <= 0 {
			return fmt.Errorf("%w: server %d below server %d, on a link of %s", ErrConfig, i, s.Parent, s.Link.Rate)
		}
	}
	for w, p := range t.Workers {
		if p < 0 || p >= len(t.Servers) {
			return fmt.Errorf("%w: worker %d below server %d of %d", ErrConfig, w, p, len(t.Servers))
		}
	}
	for i := range t.Servers {
		if len(t.childrenOf(i)) == 0 {
			return fmt.Errorf("%w: server %d has no children", ErrConfig, i)
		}
	}
	return nil
}

// kid is a child of a server in the tree. It is a worker or another server.
type kid struct {
	worker bool
	place  int
}

// childrenOf returns the children of a server in the order of their ports. Servers come before workers.
func (t *Tree) childrenOf(server int) (all []kid) {
	for i := range t.Servers {
		if i != root && t.Servers[i].Parent == server {
			all = append(all, kid{place: i})
		}
	}
	for w, p := range t.Workers {
		if p == server {
			all = append(all, kid{worker: true, place: w})
		}
	}
	return all
}

// withoutServer returns the tree after a server has failed. The server's children have moved to its parent.
func (t *Tree) withoutServer(server int) *Tree {
	next := &Tree{Servers: append([]TreeServer(nil), t.Servers...), Workers: append([]int(nil), t.Workers...)}
	parent := t.Servers[server].Parent
	for i := range next.Servers {
		if next.Servers[i].Parent == server {
			next.Servers[i].Parent = parent
		}
	}
	for w := range next.Workers {
		if next.Workers[w] == server {
			next.Workers[w] = parent
		}
	}
	next.Servers[server].Parent = server // child of no server
	return next
}

// grove is the state of the server tree in a running simulation.
type grove struct {
	tree    *Tree
	fabric  []int32   // by node, the wire from the switch
	kids    [][]int32 // nodes, by server and port
	dead    int       // index of a failed server, or -1
	changes uint64
}

// serverNode returns the node number of a server.
func (s *sim) serverNode(place int) int32 { return int32(s.rootNode() + 1 + place) }

// addServers creates the servers and their wires. The switch is the root node, as in networks without a tree.
func (s *sim) addServers(n *Network) {
	s.grove = &grove{tree: n.Tree, dead: -1}
	s.switches = make([]station, 1+len(n.Tree.Servers))
	s.access, s.homes = make([]int32, s.ends), make([]int32, s.ends)
	hub := int32(s.rootNode())
	join := func(at int32, l *Link) (up, down int32) {
		up, down = s.addLink(at, hub, 0, 0, l)
		s.wires[up].Mark, s.wires[down].Through = 0, n.Through // hosts do not mark
		s.grove.fabric = append(s.grove.fabric, down)
		return up, down
	}
	for h := range s.ends {
		l := n.accessLink(h)
		if h >= s.workers { // the protocol's server is at the tree's root
			l = &n.Tree.Servers[root].Link
		}
		s.access[h], s.homes[h] = join(int32(h), l)
	}
	s.grove.fabric = append(s.grove.fabric, -1) // the switch itself
	s.switches[0].up = -1
	for i := range n.Tree.Servers {
		s.switches[1+i].up, _ = join(s.serverNode(i), &n.Tree.Servers[i].Link)
	}
	s.setTree(n.Tree)
}

// setTree sets the children of every server according to t.
func (s *sim) setTree(t *Tree) {
	s.grove.tree = t
	s.grove.kids = make([][]int32, len(t.Servers))
	for i := range t.Servers {
		s.switches[1+i].parent = i != root
		for _, k := range t.childrenOf(i) {
			at := int32(k.place)
			if !k.worker {
				at = s.serverNode(k.place)
			}
			s.grove.kids[i] = append(s.grove.kids[i], at)
		}
	}
}

// jobOf returns the job in the form in which a server of the tree is configured with it.
func (s *sim) jobOf(place int) program.Job {
	l := &s.grove.tree.Servers[place].Link
	job := program.Job{ID: FirstJob, Parent: place != root, In: l.Rate, Out: l.Rate,
		Members: make([]program.Member, len(s.grove.kids[place]))}
	for port := range job.Members {
		job.Members[port] = program.Member{Worker: olaf.WorkerID(port), Port: program.Port(port)}
	}
	return job
}

// setTarget sets the node to which a host's packet is sent.
func (s *sim) setTarget(h *host, p *packet) {
	if p.to == endpoint.Network {
		p.target = s.serverNode(s.grove.tree.Workers[h.number])
		return
	}
	p.target = s.numberOf(p)
}

// deliverToServer runs a server's program on packet i, which has arrived there.
func (s *sim) deliverToServer(place int, i int32) {
	p := &s.packets[i]
	if place == s.grove.dead || s.switches[1+place].Program == nil {
		s.dropPacket(i)
		return
	}
	from := program.Uplink
	if place == root || p.from != s.serverNode(s.grove.tree.Servers[place].Parent) {
		from = s.portOf(place, p.from)
	}
	s.processPacket(1+place, from, i)
}

// allWorkers is the target of frames that the switch copies to all workers.
const allWorkers int32 = -1

// forwardPacket makes the switch forward packet i towards its target.
func (s *sim) forwardPacket(i int32) {
	if s.packets[i].target != allWorkers {
		s.transmitPacket(i, s.grove.fabric[s.packets[i].target], s.now)
		return
	}
	for w := range s.workers {
		k := s.newPacket()
		p, q := &s.packets[i], &s.packets[k]
		lanes := copyLanes(q.lanes, p.lanes)
		*q = *p
		q.lanes = lanes
		s.meter.inFlight++
		s.transmitPacket(k, s.grove.fabric[w], s.now)
	}
	s.dropPacket(i)
}

// strangerPort is the port number for packets that do not come from a child.
const strangerPort program.Port = 1 << 14

func (s *sim) portOf(place int, from int32) program.Port {
	for port, at := range s.grove.kids[place] {
		if at == from {
			return program.Port(port)
		}
	}
	return strangerPort
}

// emitInTree sends the output of a server's program on the server's link, one frame per receiver.
func (o *emitter) emitInTree(to program.Dest, p *program.Packet, lanes []uint32) {
	s, place := o.sim, o.at-1
	one := func(target int32) {
		i := o.newPacket(p, lanes)
		s.packets[i].target = target
		s.transmitPacket(i, s.switches[o.at].up, o.time)
	}
	switch {
	case to == program.Down && place == root && p.Kind == program.Result:
		one(allWorkers)
		return
	case to == program.Up && place == root:
		return
	}
	switch to {
	case program.Up:
		one(s.serverNode(s.grove.tree.Servers[place].Parent))
	case program.Down, program.Others:
		for port, at := range s.grove.kids[place] {
			if to == program.Down || program.Port(port) != o.from {
				one(at)
			}
		}
	default:
		one(s.grove.kids[place][to])
	}
}

// planFaults schedules the failure of a server, or the load on a server and the management's next comparison after it.
func (s *sim) planFaults() error {
	if s.grove == nil || s.grove.tree.Kill == nil && s.grove.tree.Load == nil {
		return nil
	}
	if s.renewal == nil {
		return fmt.Errorf("%w: these workers cannot detect that a server is gone", ErrConfig)
	}
	if k := s.grove.tree.Kill; k != nil {
		s.pushEvent(int64(k.At), kindKill)
		s.pushEvent(int64(k.At+k.Noticed), kindNotice)
		return nil
	}
	l := s.grove.tree.Load
	s.pushEvent(int64(l.At), kindLoad)
	if l.Every > 0 && s.grove.tree.movesChildren() {
		s.pushEvent((int64(l.At)/int64(l.Every)+1)*int64(l.Every), kindMove)
	}
	return nil
}

// loadServer reduces the rate of the loaded server's link in both directions.
func (s *sim) loadServer() {
	l := s.grove.tree.Load
	link := &s.grove.tree.Servers[l.Server].Link
	for _, w := range []int32{s.switches[1+l.Server].up, s.grove.fabric[s.serverNode(l.Server)]} {
		s.wires[w].SetClock(engine.PicosecondClock(l.Rate, link.Overhead))
	}
}

// moveChildren removes the loaded server from the tree and moves its children to its parent.
func (s *sim) moveChildren() error {
	s.grove.dead = s.net.Tree.Load.Server
	return s.changeTree()
}

// killServer makes a server fail. The tree changes later, when the management notices.
func (s *sim) killServer() { s.grove.dead = s.net.Tree.Kill.Server }

func (s *sim) changeTree() error {
	s.setTree(s.grove.tree.withoutServer(s.grove.dead))
	s.grove.changes++
	for i := range s.grove.tree.Servers {
		if sw := &s.switches[1+i]; i != s.grove.dead && sw.Program != nil {
			if err := sw.Program.Configure(s.jobOf(i)); err != nil {
				return err
			}
		}
	}
	renewal := *s.renewal
	renewal.Value = s.grove.changes
	for _, h := range s.hosts {
		h.end.Receive(olaf.Time(s.now), &renewal, nil)
		h.armTimer()
	}
	return nil
}
