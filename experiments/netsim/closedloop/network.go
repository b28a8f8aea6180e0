package closedloop

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
)

// wire is one direction of a link between two nodes.
type wire struct {
	Wire
	to   int32        // node at the other end
	port program.Port // number of the port there
}

// station is a switch, or a server in a tree, together with the wires behind its ports.
type station struct {
	Switch
	down    []int32 // wires, by port
	members [][]program.Port
	servers []int32      // at the root: wires by job
	up      int32        // wire; -1 at the root
	port    program.Port // at the parent, in a tree of switches
	parent  bool
	free    int64 // when the accelerator is free
}

// shape defines how the nodes of a network are numbered. The workers come first, job by job, followed by the jobs'
// servers, the root, and the racks. Each rack contains the same workers from every job.
type shape struct {
	jobs, workers, ends, racks, perRack int

	places []int // by job, the index of its switch in the tree of switches; nil for racks
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

// rootNode returns the node number of the root switch.
func (s *shape) rootNode() int { return s.ends }

// jobAndWorker returns the job of a host and its worker number in that job. For a server, the worker number is the
// number of workers.
func (s *shape) jobAndWorker(host int) (job, worker int) {
	if all := s.jobs * s.workers; host >= all {
		return host - all, s.workers
	}
	return host / s.workers, host % s.workers
}

// serverHost returns the number of the host that is a job's server.
func (s *shape) serverHost(job int) int32 { return int32(s.jobs*s.workers + job) }

// switchOf returns the index of the switch to which a host is connected.
func (s *shape) switchOf(host int) int {
	job, worker := s.jobAndWorker(host)
	switch {
	case s.racks == 0 || worker == s.workers:
		return 0
	case s.places != nil:
		return s.places[job]
	}
	return 1 + worker/s.perRack
}

// addLink creates a wire in each direction between nodes a and b, and returns the indexes of both wires.
func (s *sim) addLink(a, b int32, portAtA, portAtB program.Port, l *Link) (ab, ba int32) {
	one := func(to int32, port program.Port) int32 {
		i := len(s.wires)
		w := wire{NewWire(engine.PicosecondClock(l.Rate, l.Overhead), l.Delay), to, port}
		w.Least, w.Mark = int64(l.Frame), l.Mark
		w.SetLoss(l.Loss, l.Every, s.seed, i)
		s.wires = append(s.wires, w)
		return int32(i)
	}
	return one(b, portAtB), one(a, portAtA)
}

// accessLink returns the link of a worker or of a job's server.
func (n *Network) accessLink(worker int) *Link {
	switch {
	case worker < len(n.Access):
		return &n.Access[worker]
	case worker == n.Workers && n.Hops != nil:
		return &within
	}
	return &n.Link
}

// buildNodes creates the nodes and the wires between them.
func (s *sim) buildNodes(n *Network) {
	if n.Tree != nil {
		s.addServers(n)
		return
	}
	s.switches = make([]station, 1+s.racks)
	s.access, s.homes = make([]int32, s.ends), make([]int32, s.ends)
	for i := range s.switches {
		s.switches[i].up = -1
	}
	if n.Hops != nil {
		s.addHops(n)
	} else {
		s.addRacks(n)
	}
	for h := range s.ends {
		s.attachHost(n, h)
	}
	switch root := &s.switches[0]; {
	case n.Hops != nil:
		s.setRootMembers(n)
	case s.racks > 0:
		root.members = make([][]program.Port, s.jobs)
		for job := range root.members {
			for r := range s.racks {
				root.members[job] = append(root.members[job], program.Port(r))
			}
		}
	}
}

// attachHost connects a host to its switch, either as a worker of its job or as the job's server.
func (s *sim) attachHost(n *Network, host int) {
	at := s.switchOf(host)
	sw := &s.switches[at]
	job, worker := s.jobAndWorker(host)
	port := program.Port(len(sw.down))
	if worker == s.workers {
		port = program.Uplink
	}
	up, down := s.addLink(int32(host), int32(s.rootNode()+at), 0, port, n.accessLink(worker))
	s.access[host], s.homes[host] = up, down
	s.wires[up].Mark = 0 // hosts do not mark
	s.wires[down].Through = n.Through
	if n.Hops != nil {
		s.wires[down].Line = NewLine(n.Hops.Switches[at].Slots)
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

// addRacks connects the racks to the root.
func (s *sim) addRacks(n *Network) {
	root := &s.switches[0]
	for r := range s.racks {
		rack := &s.switches[1+r]
		down, up := s.addLink(int32(s.rootNode()), int32(s.rootNode()+1+r), program.Port(r), program.Uplink, &n.Trunk)
		root.down = append(root.down, down)
		rack.up, rack.parent = up, true
	}
}

// installPrograms creates the switches' programs and configures each switch's children as members of the jobs.
func (s *sim) installPrograms(parts *system.Parts) error {
	if parts.Program == nil {
		return nil
	}
	s.ledger, s.renewal = parts.Program.Ledger, parts.Renewal
	build := parts.Build
	if parts.FitsVector {
		build.Slots = s.job.Packets()
	}
	for i := range s.switches {
		if !s.runsProgram(i, parts) {
			continue // the switch only forwards
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
			if err := s.admitJob(parts, p, i, j); err != nil {
				return err
			}
		}
		s.switches[i].Program = p
	}
	return nil
}

// runsProgram reports whether a switch runs the program.
func (s *sim) runsProgram(at int, parts *system.Parts) bool {
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

// admitJob configures job j in the program of a switch, or of a server in a tree.
func (s *sim) admitJob(parts *system.Parts, p program.Program, at, j int) error {
	if s.grove != nil {
		return p.Configure(s.jobOf(at - 1))
	}
	if s.places != nil {
		return s.admitHop(parts, p, at, j)
	}
	job := s.jobAt(parts, at, j)
	if parts.Fan > len(job.Members) && at == 0 && s.sync {
		return fmt.Errorf("%w: H is %d, but the root has %d children, each of which contributes once a round; "+
			"leave H out", ErrConfig, parts.Fan, len(job.Members))
	}
	return p.Configure(job)
}

// checkFan rejects sums with fewer vectors than a switch has children, if workers are synchronous. Run accepts such
// sums, because stored runs contain them.
func (s *sim) checkFan(parts *system.Parts) error {
	for j := range s.jobs {
		at := 0
		if s.places != nil {
			at = s.places[j]
		}
		if children := len(s.switches[at].members[j]); s.sync && parts.Fan > 0 && parts.Fan < children {
			return fmt.Errorf("%w: H is %d, but a switch has %d children: sums would complete without all "+
				"workers, which wait for all; leave H out, or use mode async", ErrConfig, parts.Fan, children)
		}
	}
	return nil
}

// jobAt returns job j in the form in which a switch's program is configured with it.
func (s *sim) jobAt(parts *system.Parts, at, j int) program.Job {
	job := program.Job{ID: FirstJob + olaf.ClusterID(j), Parent: s.switches[at].parent, Members: s.membersOf(at, j)}
	if parts.Share != nil {
		job.Base, job.Slots = parts.Share(j)
	}
	if at == 0 {
		job.Fan, job.Level = parts.Fan, min(s.racks, 1)
	}
	return job
}

// membersOf returns the children of a switch that contribute to a job. These are all its children except the server.
func (s *sim) membersOf(at, job int) []program.Member {
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

// wireToward returns the wire from a switch towards a host.
func (s *sim) wireToward(at int, host int32) int32 {
	sw := &s.switches[at]
	home := s.switchOf(int(host))
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
