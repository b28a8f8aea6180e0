package closed

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
)

// wire is one direction of a link. Frames leave it in the order in which they were handed over.
type wire struct {
	to    int32        // node at the other end
	port  program.Port // that it is there
	clock engine.Clock
	delay int64
	loss  uint64 // a frame is lost when its draw is below
	salt  uint64
	free  int64 // ps from which the next frame can leave

	frames, lost uint64
	bytes        uint64 // handed over, without what is beside a frame
	busy         int64
}

// node is a switch: its program, and the wires out of its ports.
type node struct {
	program  program.Program
	down     []int32 // wires, by port
	up       int32   // -1 at the root
	parent   bool
	free     int64 // of the accelerator
	occupied occupancy
}

// shape is how a network's nodes are numbered: workers, the server, the root, then racks.
type shape struct {
	workers, ends, racks, perRack int
}

func shapeOf(n *Network, server bool) shape {
	s := shape{workers: n.Workers, ends: n.Workers}
	if server {
		s.ends++
	}
	if n.PerRack > 0 && n.PerRack < n.Workers {
		s.perRack = n.PerRack
		s.racks = (n.Workers + n.PerRack - 1) / n.PerRack
	}
	return s
}

// root is the node of the root switch.
func (s *shape) root() int { return s.ends }

// above is the switch that a host hangs on, by its place among switches.
func (s *shape) above(host int) int {
	if s.racks == 0 || host >= s.workers {
		return 0
	}
	return 1 + host/s.perRack
}

// addLink makes both directions of a link between two nodes, and gives the wires' places.
func (s *sim) addLink(a, b int32, portAtA, portAtB program.Port, l *Link) (ab, ba int32) {
	one := func(to int32, port program.Port) int32 {
		i := int32(len(s.wires))
		s.wires = append(s.wires, wire{
			to: to, port: port, clock: engine.Picoseconds(l.Rate, l.Overhead), delay: int64(l.Delay),
			loss: uint64(l.Loss * (1 << 63)), salt: splitmix.Mix(s.seed ^ uint64(i+1)<<32),
		})
		return i
	}
	return one(b, portAtB), one(a, portAtA)
}

// build makes nodes and wires.
func (s *sim) build(n *Network) {
	s.switches = make([]node, 1+s.racks)
	s.access = make([]int32, s.ends)
	for i := range s.switches {
		s.switches[i].up = -1
	}
	for r := range s.racks {
		rack := &s.switches[1+r]
		root := &s.switches[0]
		down, up := s.addLink(int32(s.root()), int32(s.root()+1+r), program.Port(r), program.Uplink, &n.Trunk)
		root.down = append(root.down, down)
		rack.up, rack.parent = up, true
	}
	for h := range s.ends {
		at := s.above(h)
		sw := &s.switches[at]
		up, down := s.addLink(int32(h), int32(s.root()+at), 0, program.Port(len(sw.down)), &n.Link)
		sw.down = append(sw.down, down)
		s.access[h] = up
	}
}

// install gives every switch its program, with the children as members.
func (s *sim) install(parts *system.Parts) error {
	if parts.Program == nil {
		return nil
	}
	s.ledger = parts.Program.Ledger
	for i := range s.switches {
		p, err := parts.Program.New(parts.Build)
		if err != nil {
			return err
		}
		job := program.Job{ID: jobID, Parent: s.switches[i].parent, Members: s.members(i)}
		if i == 0 {
			job.Fan, job.Level = parts.Fan, min(s.racks, 1)
		}
		if parts.Fan > len(job.Members) && i == 0 && s.sync {
			return fmt.Errorf("%w: H is %d, but the root has %d children, each of which contributes once a round", ErrConfig, parts.Fan, len(job.Members))
		}
		if err := p.Configure(job); err != nil {
			return err
		}
		s.switches[i].program = p
	}
	return nil
}

// members are the children of a switch that contribute: all but the server.
func (s *sim) members(at int) []program.Member {
	var m []program.Member
	add := func(port, worker int) {
		m = append(m, program.Member{Worker: olaf.WorkerID(worker), Port: program.Port(port)})
	}
	if at == 0 && s.racks > 0 {
		for r := range s.racks {
			add(r, r)
		}
		return m
	}
	port := 0
	for h := range s.workers {
		if s.above(h) == at {
			add(port, h)
			port++
		}
	}
	return m
}

// toward is the wire out of a switch on the way to a host.
func (s *sim) toward(at int, host int32) int32 {
	sw := &s.switches[at]
	home := s.above(int(host))
	switch {
	case home == at && at == 0:
		return sw.down[s.racks+int(host)-s.firstAtRoot()]
	case home == at:
		return sw.down[int(host)-(at-1)*s.perRack]
	case at == 0:
		return sw.down[home-1]
	default:
		return sw.up
	}
}

// firstAtRoot is the first host that hangs on the root itself.
func (s *shape) firstAtRoot() int {
	if s.racks > 0 {
		return s.workers
	}
	return 0
}
