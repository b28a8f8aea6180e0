package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Tree is servers that run the program instead of the switches: each has one link to the switch, over which children and
// parent reach it. The sums of the root go to all workers at once, one frame that the switch copies; what a worker asks for
// again comes down the tree.
type Tree struct {
	Servers []TreeServer // the root first
	Workers []int        // by worker, its parent's place in Servers
	Kill    *Kill
}

// TreeServer is one of them.
type TreeServer struct {
	Parent int // its place, below its own; of the root nothing
	Link   Link
}

// Kill ends a server while a job runs. The management notices after a while, gives its children to its parent, and tells the
// workers to send their vectors again.
type Kill struct {
	Server  int // any but the root
	At      olaf.Duration
	Noticed olaf.Duration // after At
}

// root is the place of the server that has no parent.
const root = 0

func (t *Tree) check(n *Network) error {
	switch {
	case t == nil:
		return nil
	case n.Jobs > 1:
		return fmt.Errorf("%w: a tree of servers has one job, not %d", ErrConfig, n.Jobs)
	case n.PerRack > 0:
		return fmt.Errorf("%w: a tree of servers hangs on one switch, without racks", ErrConfig)
	case len(t.Servers) < 1 || len(t.Workers) != n.Workers:
		return fmt.Errorf("%w: a tree of %d servers, with places for %d of %d workers", ErrConfig, len(t.Servers), len(t.Workers), n.Workers)
	case t.Kill != nil && (t.Kill.Server <= root || t.Kill.Server >= len(t.Servers) || t.Kill.At < 0 || t.Kill.Noticed < 0):
		return fmt.Errorf("%w: server %d of %d cannot be killed at %s; the root cannot be", ErrConfig, t.Kill.Server, len(t.Servers), t.Kill.At)
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
		if len(t.kids(i)) == 0 {
			return fmt.Errorf("%w: server %d has no children", ErrConfig, i)
		}
	}
	return nil
}

// kid is a child of a server: a worker, or a server by its place.
type kid struct {
	worker bool
	place  int
}

// kids are a server's children in the order of their ports: servers, then workers.
func (t *Tree) kids(server int) (all []kid) {
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

// without is the tree after a server is gone: its children are its parent's.
func (t *Tree) without(server int) *Tree {
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
	next.Servers[server].Parent = server // of nobody
	return next
}

// grove is the tree of a running simulation.
type grove struct {
	tree    *Tree
	fabric  []int32   // wire of the switch to a node
	kids    [][]int32 // nodes, by server and port
	dead    int       // a server's place, or below 0
	changes uint64
}

// serverNode is the node of a server.
func (s *sim) serverNode(place int) int32 { return int32(s.root() + 1 + place) }

// plant makes the servers and their wires. The switch is node root, as without a tree.
func (s *sim) plant(n *Network) {
	s.grove = &grove{tree: n.Tree, dead: -1}
	s.switches = make([]station, 1+len(n.Tree.Servers))
	s.access, s.homes = make([]int32, s.ends), make([]int32, s.ends)
	hub := int32(s.root())
	join := func(at int32, l *Link) (up, down int32) {
		up, down = s.addLink(at, hub, 0, 0, l)
		s.wires[up].Mark, s.wires[down].Through = 0, n.Through // hosts mark nothing
		s.grove.fabric = append(s.grove.fabric, down)
		return up, down
	}
	for h := range s.ends {
		l := n.access(h)
		if h >= s.workers { // a server in the protocol's sense is where the tree's root is
			l = &n.Tree.Servers[root].Link
		}
		s.access[h], s.homes[h] = join(int32(h), l)
	}
	s.grove.fabric = append(s.grove.fabric, -1) // the switch itself
	s.switches[0].up = -1
	for i := range n.Tree.Servers {
		s.switches[1+i].up, _ = join(s.serverNode(i), &n.Tree.Servers[i].Link)
	}
	s.graft(n.Tree)
}

// graft takes over a tree's children.
func (s *sim) graft(t *Tree) {
	s.grove.tree = t
	s.grove.kids = make([][]int32, len(t.Servers))
	for i := range t.Servers {
		s.switches[1+i].parent = i != root
		for _, k := range t.kids(i) {
			at := int32(k.place)
			if !k.worker {
				at = s.serverNode(k.place)
			}
			s.grove.kids[i] = append(s.grove.kids[i], at)
		}
	}
}

// jobOf is the job as a server of the tree knows it.
func (s *sim) jobOf(place int) program.Job {
	l := &s.grove.tree.Servers[place].Link
	job := program.Job{ID: FirstJob, Parent: place != root, In: l.Rate, Out: l.Rate, Members: make([]program.Member, len(s.grove.kids[place]))}
	for port := range job.Members {
		job.Members[port] = program.Member{Worker: olaf.WorkerID(port), Port: program.Port(port)}
	}
	return job
}

// address says where a packet of a host goes.
func (s *sim) address(h *host, p *packet) {
	if p.to == endpoint.Network {
		p.target = s.serverNode(s.grove.tree.Workers[h.number])
		return
	}
	p.target = s.numberOf(p)
}

// deliver runs a server's program over a packet that reached it.
func (s *sim) deliver(place int, i int32) {
	p := &s.packets[i]
	if place == s.grove.dead || s.switches[1+place].Program == nil {
		s.drop(i)
		return
	}
	from := program.Uplink
	if place == root || p.from != s.serverNode(s.grove.tree.Servers[place].Parent) {
		from = s.portOf(place, p.from)
	}
	s.process(1+place, from, i)
}

// everybody is the target of what the switch copies to all workers.
const everybody int32 = -1

// forward passes packet i on at the switch.
func (s *sim) forward(i int32) {
	if s.packets[i].target != everybody {
		s.transmit(i, s.grove.fabric[s.packets[i].target], s.now)
		return
	}
	for w := range s.workers {
		k := s.room()
		p, q := &s.packets[i], &s.packets[k]
		lanes := copied(q.lanes, p.lanes)
		*q = *p
		q.lanes = lanes
		s.meter.inFlight++
		s.transmit(k, s.grove.fabric[w], s.now)
	}
	s.drop(i)
}

// strangerPort is no child's.
const strangerPort program.Port = 1 << 14

func (s *sim) portOf(place int, from int32) program.Port {
	for port, at := range s.grove.kids[place] {
		if at == from {
			return program.Port(port)
		}
	}
	return strangerPort
}

// scatter puts what a server's program emits on its link, one frame a receiver.
func (o *emitter) scatter(to program.Dest, p *program.Packet, lanes []uint32) {
	s, place := o.sim, o.at-1
	one := func(target int32) {
		i := o.room(p, lanes)
		s.packets[i].target = target
		s.transmit(i, s.switches[o.at].up, o.time)
	}
	switch {
	case to == program.Down && place == root && p.Kind == program.Result:
		one(everybody)
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

// planKill schedules the end of a server.
func (s *sim) planKill() error {
	if s.grove == nil || s.grove.tree.Kill == nil {
		return nil
	}
	k := s.grove.tree.Kill
	if s.renewal == nil {
		return fmt.Errorf("%w: these workers cannot detect that a server is gone", ErrConfig)
	}
	s.push(int64(k.At), kindKill)
	s.push(int64(k.At+k.Noticed), kindNotice)
	return nil
}

// kill ends a server; notice changes the tree.
func (s *sim) kill() { s.grove.dead = s.net.Tree.Kill.Server }

func (s *sim) notice() error {
	s.graft(s.grove.tree.without(s.grove.dead))
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
		h.arm()
	}
	return nil
}
