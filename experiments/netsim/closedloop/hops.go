package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results/metric"
)

// Hops is a tree of switches that replaces racks. All workers of a job are connected to the same switch, which runs the
// program; the switches above it forward its sums. All paths end at the root, which takes the place of the parameter
// server and also runs the program. The root answers sums itself if the system has no server; otherwise it forwards
// them to the job's server.
type Hops struct {
	Switches []Hop // root first
	Homes    []int // by job, the index of the workers' switch
}

// Hop is one switch in the tree.
type Hop struct {
	Parent int  // index of the parent, less than its own; unused for the root
	Up     Link // to the parent; unused for the root
	Slots  int  // frames that each port can hold besides the one on the wire; 0 for no limit
}

// Observer is notified of the measured events in a network.
type Observer interface {
	// OnCompute reports that a gradient is ready, OnSend that its message begins.
	OnCompute(now olaf.Time, worker int)
	OnSend(now olaf.Time, worker int)
	// OnSumPacket reports a packet of a complete sum at the root or its server, each time it is sent from there.
	OnSumPacket(now olaf.Time, p *program.Packet)
	// OnDrop reports a packet that found a port full, OnLoss one lost on a link.
	OnDrop(now olaf.Time, p *program.Packet)
	OnLoss(now olaf.Time, p *program.Packet)
}

// Unobserved is an Observer that ignores every event. Observers of a few events embed it.
type Unobserved struct{}

func (Unobserved) OnCompute(olaf.Time, int)               {}
func (Unobserved) OnSend(olaf.Time, int)                  {}
func (Unobserved) OnSumPacket(olaf.Time, *program.Packet) {}
func (Unobserved) OnDrop(olaf.Time, *program.Packet)      {}
func (Unobserved) OnLoss(olaf.Time, *program.Packet)      {}

func (h *Hops) checkHops(n *Network) error {
	switch {
	case h == nil:
		return nil
	case n.Tree != nil || n.PerRack > 0:
		return fmt.Errorf("%w: a tree of switches beside racks or a tree of servers", ErrConfig)
	case len(h.Switches) < 2 || len(h.Homes) != n.Jobs:
		return fmt.Errorf("%w: a tree of %d switches, with places for %d of %d jobs", ErrConfig, len(h.Switches),
			len(h.Homes), n.Jobs)
	}
	for i := range h.Switches {
		if s := &h.Switches[i]; i > 0 && (s.Parent < 0 || s.Parent >= i || s.Up.Rate <= 0) || s.Slots < 0 {
			return fmt.Errorf("%w: switch %d below switch %d, with %d slots, on a link of %s", ErrConfig, i, s.Parent,
				s.Slots, s.Up.Rate)
		}
	}
	for job, home := range h.Homes {
		if home < 1 || home >= len(h.Switches) {
			return fmt.Errorf("%w: job %d on switch %d of %d; the root is the server's", ErrConfig, job, home,
				len(h.Switches))
		}
	}
	return nil
}

// within is the link between a server and the root. It is practically instantaneous, because the server is inside the
// root.
var within = Link{Rate: 1_000_000 * olaf.Gbps}

// addHops creates the switches of the tree, with their wires and routes.
func (s *sim) addHops(n *Network) {
	all := n.Hops.Switches
	s.routes = make([][]int32, len(all))
	for i := range all {
		s.routes[i] = make([]int32, len(all))
		if i == 0 {
			continue
		}
		above := &s.switches[all[i].Parent]
		port := program.Port(len(above.down))
		down, up := s.addLink(int32(s.rootNode()+all[i].Parent), int32(s.rootNode()+i), port, program.Uplink,
			&all[i].Up)
		above.down = append(above.down, down)
		s.switches[i].up, s.switches[i].parent, s.switches[i].port = up, true, port
		s.wires[up].Line, s.wires[down].Line = NewLine(all[i].Slots), NewLine(all[all[i].Parent].Slots)
	}
	for to := range all {
		for at := range all {
			s.routes[at][to] = s.switches[at].up
		}
		for below := to; below != 0; below = all[below].Parent {
			at := all[below].Parent
			s.routes[at][to] = s.switches[at].down[s.switches[below].port]
		}
	}
}

// setRootMembers records, for each job, the port of the root that leads to its workers.
func (s *sim) setRootMembers(n *Network) {
	root := &s.switches[0]
	root.members = make([][]program.Port, s.jobs)
	for job, home := range n.Hops.Homes {
		for n.Hops.Switches[home].Parent != 0 {
			home = n.Hops.Switches[home].Parent
		}
		root.members[job] = []program.Port{s.switches[home].port}
	}
}

// admitHop configures job j in the program of one switch in the tree, which is the switch of its workers or the root.
func (s *sim) admitHop(parts *system.Parts, p program.Program, at, j int) error {
	if at != 0 && at != s.places[j] {
		return nil
	}
	job := program.Job{ID: FirstJob + olaf.ClusterID(j), Parent: at != 0, Members: s.membersOf(at, j)}
	if parts.Share != nil {
		job.Base, job.Slots = parts.Share(j)
	}
	if at != 0 {
		job.Fan = parts.Fan
	}
	if job.Fan > len(job.Members) && s.sync {
		return fmt.Errorf("%w: H is %d, but a switch has %d workers of a job, each of which contributes once a "+
			"round; leave H out", ErrConfig, job.Fan, len(job.Members))
	}
	return p.Configure(job)
}

// onlyForwards reports whether a switch in the tree forwards a job's packets without processing them.
func (s *sim) onlyForwards(at int, job int) bool {
	return at != s.places[job] && (at != 0 || len(s.switches[0].servers) > 0)
}

// nextWire returns the wire on which a switch forwards a job's packet. Packets that arrive from above are forwarded
// towards the job's workers, and packets from below towards its server.
func (s *sim) nextWire(at int, from program.Port, job int) int32 {
	switch {
	case from == program.Uplink:
		return s.routes[at][s.places[job]]
	case at == 0:
		return s.switches[0].servers[job]
	}
	return s.switches[at].up
}

// dropAtPort drops packet i because the port is full.
func (s *sim) dropAtPort(i int32) {
	s.job.Observer.OnDrop(olaf.Time(s.now), &s.packets[i].Packet)
	s.dropPacket(i)
}

// computePorts fills in the results of the switches' ports towards the root. The root has no such port.
func (s *sim) computePorts(r *Result) {
	r.Ports = make([]Port, len(s.switches))
	for i := 1; i < len(s.switches); i++ {
		r.Ports[i] = s.wires[s.switches[i].up].portAt(s.now, 0)
	}
}

// portAt returns the state of the port in front of a wire at an instant. It subtracts the time but, in ps, from the
// port's busy time.
func (w *wire) portAt(at, but int64) Port {
	p := Port{In: w.Frames, Left: w.Frames, Busy: metric.Missing()}
	if w.Line != nil {
		p.In, p.Dropped, p.Most = w.Frames+w.Line.Dropped, w.Line.Dropped, w.Line.Most
	}
	if at > 0 {
		p.Busy = metric.Float(w.Busy-but) / metric.Float(at)
	}
	return p
}
