package closedloop

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
)

// wire is one direction of a link between two nodes.
type wire struct {
	node.Wire
	to   int32        // node at the other end
	port program.Port // that it is there
}

// station is a switch, or a server of a tree, with the wires out of its ports.
type station struct {
	node.Switch
	down    []int32 // wires, by port
	members [][]program.Port
	servers []int32      // at the root, wires by job
	up      int32        // -1 at the root
	port    program.Port // of the switch above, in a tree of switches
	parent  bool
	free    int64 // of the accelerator
}

// shape is how a network's nodes are numbered: the workers of the first job, of the second, …, the servers of all, the root,
// then racks. A rack holds the same workers of every job.
type shape struct {
	jobs, workers, ends, racks, perRack int

	places []int // by job, the place of its switch in a tree of switches; nil of racks
}

func shapeOf(n *Network, server bool) shape {
	s := shape{jobs: n.Jobs, workers: n.Workers, ends: n.Jobs * n.Workers}
	if server {
		s.ends += n.Jobs
	}
	if n.Hops != nil {
		s.racks, s.places = len(n.Hops.Switches)-1, n.Hops.Homes
	}
	if n.PerRack > 0 && n.PerRack < n.Workers {
		s.perRack = n.PerRack
		s.racks = (n.Workers + n.PerRack - 1) / n.PerRack
	}
	return s
}

// root is the node of the root switch.
func (s *shape) root() int { return s.ends }

// whose is the job of a host and its worker there; of a server the number of workers.
func (s *shape) whose(host int) (job, worker int) {
	if all := s.jobs * s.workers; host >= all {
		return host - all, s.workers
	}
	return host / s.workers, host % s.workers
}

// server is the host that serves a job.
func (s *shape) server(job int) int32 { return int32(s.jobs*s.workers + job) }

// above is the switch that a host hangs on, by its place among switches.
func (s *shape) above(host int) int {
	job, worker := s.whose(host)
	switch {
	case s.racks == 0 || worker == s.workers:
		return 0
	case s.places != nil:
		return s.places[job]
	}
	return 1 + worker/s.perRack
}

// addLink makes both directions of a link between two nodes, and gives the wires' places.
func (s *sim) addLink(a, b int32, portAtA, portAtB program.Port, l *Link) (ab, ba int32) {
	one := func(to int32, port program.Port) int32 {
		i := len(s.wires)
		w := wire{node.NewWire(engine.PicosecondClock(l.Rate, l.Overhead), l.Delay), to, port}
		w.Least, w.Mark = int64(l.Frame), l.Mark
		w.Lose(l.Loss, l.Every, s.seed, i)
		s.wires = append(s.wires, w)
		return int32(i)
	}
	return one(b, portAtB), one(a, portAtA)
}

// access is a worker's link, or that of a job's server.
func (n *Network) access(worker int) *Link {
	switch {
	case worker < len(n.Access):
		return &n.Access[worker]
	case worker == n.Workers && n.Hops != nil:
		return &within
	}
	return &n.Link
}

// build makes nodes and wires.
func (s *sim) build(n *Network) {
	if n.Tree != nil {
		s.plant(n)
		return
	}
	s.switches = make([]station, 1+s.racks)
	s.access, s.homes = make([]int32, s.ends), make([]int32, s.ends)
	for i := range s.switches {
		s.switches[i].up = -1
	}
	if n.Hops != nil {
		s.raise(n)
	} else {
		s.addRacks(n)
	}
	for h := range s.ends {
		s.attach(n, h)
	}
	switch root := &s.switches[0]; {
	case n.Hops != nil:
		s.settle(n)
	case s.racks > 0:
		root.members = make([][]program.Port, s.jobs)
		for job := range root.members {
			for r := range s.racks {
				root.members[job] = append(root.members[job], program.Port(r))
			}
		}
	}
}

// attach hangs a host on its switch: a worker as a member of its job, or a job's server.
func (s *sim) attach(n *Network, host int) {
	at := s.above(host)
	sw := &s.switches[at]
	job, worker := s.whose(host)
	port := program.Port(len(sw.down))
	if worker == s.workers {
		port = program.Uplink
	}
	up, down := s.addLink(int32(host), int32(s.root()+at), 0, port, n.access(worker))
	s.access[host], s.homes[host] = up, down
	s.wires[up].Mark = 0 // hosts mark nothing
	s.wires[down].Through = n.Through
	if n.Hops != nil {
		s.wires[down].Line = node.NewLine(n.Hops.Switches[at].Slots)
	}
	if worker == s.workers {
		sw.servers = append(sw.servers, down)
		return
	}
	for len(sw.members) <= job {
		sw.members = append(sw.members, nil)
	}
	sw.down = append(sw.down, down)
	sw.members[job] = append(sw.members[job], port)
}

// addRacks hangs the racks on the root.
func (s *sim) addRacks(n *Network) {
	root := &s.switches[0]
	for r := range s.racks {
		rack := &s.switches[1+r]
		down, up := s.addLink(int32(s.root()), int32(s.root()+1+r), program.Port(r), program.Uplink, &n.Trunk)
		root.down = append(root.down, down)
		rack.up, rack.parent = up, true
	}
}

// install gives every switch its program, with the children as members.
func (s *sim) install(parts *system.Parts) error {
	if parts.Program == nil {
		return nil
	}
	s.ledger, s.renewal = parts.Program.Ledger, parts.Renewal
	build := parts.Build
	if parts.Whole {
		build.Slots = s.job.Packets()
	}
	for i := range s.switches {
		if !s.runs(i, parts) {
			continue // it only forwards
		}
		made := parts.Program.New
		if i == 0 && parts.Root != nil {
			made = parts.Root
		}
		p, err := made(build)
		if err != nil {
			return err
		}
		for j := range s.jobs {
			if err := s.admit(parts, p, i, j); err != nil {
				return err
			}
		}
		s.switches[i].Program = p
	}
	return nil
}

// runs says whether a switch runs the program.
func (s *sim) runs(at int, parts *system.Parts) bool {
	switch {
	case s.grove != nil:
		return at != 0
	case s.places != nil && at == 0:
		return parts.Server == nil
	case s.places != nil:
		return slices.Contains(s.places, at)
	}
	return true
}

// admit tells the program of a switch, or of a server of a tree, about a job.
func (s *sim) admit(parts *system.Parts, p program.Program, at, j int) error {
	if s.grove != nil {
		return p.Configure(s.jobOf(at - 1))
	}
	if s.places != nil {
		return s.admitHop(parts, p, at, j)
	}
	job := s.jobAt(parts, at, j)
	if parts.Fan > len(job.Members) && at == 0 && s.sync {
		return fmt.Errorf("%w: H is %d, but the root has %d children, each of which contributes once a round; leave H out", ErrConfig, parts.Fan, len(job.Members))
	}
	return p.Configure(job)
}

// closesEarly refuses sums of fewer vectors than a switch has children, of workers that wait for the sum of all. Run plays them all the same, as
// runs are kept that did.
func (s *sim) closesEarly(parts *system.Parts) error {
	for j := range s.jobs {
		at := 0
		if s.places != nil {
			at = s.places[j]
		}
		if children := len(s.switches[at].members[j]); s.sync && parts.Fan > 0 && parts.Fan < children {
			return fmt.Errorf("%w: H is %d, but a switch has %d children: sums would complete without all workers, which wait for all; leave H out, or use mode async",
				ErrConfig, parts.Fan, children)
		}
	}
	return nil
}

// jobAt is a job as a switch knows it.
func (s *sim) jobAt(parts *system.Parts, at, j int) program.Job {
	job := program.Job{ID: FirstJob + olaf.ClusterID(j), Parent: s.switches[at].parent, Members: s.members(at, j)}
	if parts.Share != nil {
		job.Base, job.Slots = parts.Share(j)
	}
	if at == 0 {
		job.Fan, job.Level = parts.Fan, min(s.racks, 1)
	}
	return job
}

// members are the children of a switch that contribute to a job: all but the server.
func (s *sim) members(at, job int) []program.Member {
	var m []program.Member
	first := 0
	if at > 0 {
		first = (at - 1) * s.perRack
	}
	for i, port := range s.switches[at].members[job] {
		m = append(m, program.Member{Worker: olaf.WorkerID(first + i), Port: port})
	}
	return m
}

// toward is the wire out of a switch on the way to a host.
func (s *sim) toward(at int, host int32) int32 {
	sw := &s.switches[at]
	home := s.above(int(host))
	switch {
	case home == at:
		return s.homes[host]
	case s.routes != nil:
		return s.routes[at][home]
	case at == 0:
		return sw.down[home-1]
	default:
		return sw.up
	}
}
