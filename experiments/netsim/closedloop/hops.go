package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results/metric"
)

// Hops is a tree of switches in the place of racks. The workers of a job hang on one of them, which runs the program; those
// above it pass its sums on. The root is where all paths end, the parameter server's place: it answers the sums of a program
// that has no server, by a program of its own, and hands those of another to the job's server.
type Hops struct {
	Switches []Hop // the root first
	Homes    []int // by job, the place of the switch that its workers hang on
}

// Hop is a switch of the tree.
type Hop struct {
	Parent int  // its place, below its own; of the root nothing
	Up     Link // to the parent; of the root nothing
	Slots  int  // frames that each of its ports holds beside the one on the wire; 0 is without a limit
}

// Observer hears what a network is measured by.
type Observer interface {
	// Computed is a gradient that is ready, Sent the beginning of its message.
	Computed(now olaf.Time, worker int)
	Sent(now olaf.Time, worker int)
	// Whole is a packet of a sum that is whole at the root or at its server, once for each time that it leaves there.
	Whole(now olaf.Time, p *program.Packet)
	// Dropped is a packet that found a port full, Lost one that a link lost.
	Dropped(now olaf.Time, p *program.Packet)
	Lost(now olaf.Time, p *program.Packet)
}

func (h *Hops) check(n *Network) error {
	switch {
	case h == nil:
		return nil
	case n.Tree != nil || n.PerRack > 0:
		return fmt.Errorf("%w: a tree of switches beside racks or a tree of servers", ErrConfig)
	case len(h.Switches) < 2 || len(h.Homes) != n.Jobs:
		return fmt.Errorf("%w: a tree of %d switches, with places for %d of %d jobs", ErrConfig, len(h.Switches), len(h.Homes), n.Jobs)
	}
	for i := range h.Switches {
		if s := &h.Switches[i]; i > 0 && (s.Parent < 0 || s.Parent >= i || s.Up.Rate <= 0) || s.Slots < 0 {
			return fmt.Errorf("%w: switch %d below switch %d, with %d slots, on a link of %s", ErrConfig, i, s.Parent, s.Slots, s.Up.Rate)
		}
	}
	for job, home := range h.Homes {
		if home < 1 || home >= len(h.Switches) {
			return fmt.Errorf("%w: job %d on switch %d of %d; the root is the server's", ErrConfig, job, home, len(h.Switches))
		}
	}
	return nil
}

// within is the link of a server to the root that it is in.
var within = Link{Rate: 1_000_000 * olaf.Gbps}

// raise makes the switches of the tree, the wires between them, and the ways over these.
func (s *sim) raise(n *Network) {
	all := n.Hops.Switches
	s.routes = make([][]int32, len(all))
	for i := range all {
		s.routes[i] = make([]int32, len(all))
		if i == 0 {
			continue
		}
		above := &s.switches[all[i].Parent]
		port := program.Port(len(above.down))
		down, up := s.addLink(int32(s.root()+all[i].Parent), int32(s.root()+i), port, program.Uplink, &all[i].Up)
		above.down = append(above.down, down)
		s.switches[i].up, s.switches[i].parent, s.switches[i].port = up, true, port
		s.wires[up].Line, s.wires[down].Line = node.NewLine(all[i].Slots), node.NewLine(all[all[i].Parent].Slots)
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

// settle notes at the root by which ports it reaches the jobs.
func (s *sim) settle(n *Network) {
	root := &s.switches[0]
	root.members = make([][]program.Port, s.jobs)
	for job, home := range n.Hops.Homes {
		for n.Hops.Switches[home].Parent != 0 {
			home = n.Hops.Switches[home].Parent
		}
		root.members[job] = []program.Port{s.switches[home].port}
	}
}

// admitHop tells the program of a switch of the tree about a job: where its workers hang, and at the root.
func (s *sim) admitHop(parts *system.Parts, p program.Program, at, j int) error {
	if at != 0 && at != s.places[j] {
		return nil
	}
	job := program.Job{ID: FirstJob + olaf.ClusterID(j), Parent: at != 0, Members: s.members(at, j)}
	if parts.Share != nil {
		job.Base, job.Slots = parts.Share(j)
	}
	if at != 0 {
		job.Fan = parts.Fan
	}
	if job.Fan > len(job.Members) && s.sync {
		return fmt.Errorf("%w: H is %d, but a switch has %d workers of a job, each of which contributes once a round; leave H out", ErrConfig, job.Fan, len(job.Members))
	}
	return p.Configure(job)
}

// passes says that a switch of the tree has nothing to do with a packet of a job but to pass it on.
func (s *sim) passes(at int, job int) bool {
	return at != s.places[job] && (at != 0 || len(s.switches[0].servers) > 0)
}

// onward is the wire by which a switch passes a packet of a job on that came in by a port: from above towards the job's
// workers, from below towards its server.
func (s *sim) onward(at int, from program.Port, job int) int32 {
	switch {
	case from == program.Uplink:
		return s.routes[at][s.places[job]]
	case at == 0:
		return s.switches[0].servers[job]
	}
	return s.switches[at].up
}

// refuse ends packet i at a port that is full.
func (s *sim) refuse(i int32) {
	if s.job.Observer != nil {
		s.job.Observer.Dropped(olaf.Time(s.now), &s.packets[i].Packet)
	}
	s.drop(i)
}

// portsOf tells of the ports towards the root; the root has none.
func (s *sim) portsOf(r *Result) {
	r.Ports = make([]Port, len(s.switches))
	for i := 1; i < len(s.switches); i++ {
		r.Ports[i] = s.wires[s.switches[i].up].tell(s.now, 0)
	}
}

// tell is the port in front of a wire at an instant, but for so much of the time that it was busy.
func (w *wire) tell(at, but int64) Port {
	p := Port{In: w.Frames, Left: w.Frames, Busy: metric.Missing()}
	if w.Line != nil {
		p.In, p.Dropped, p.Most = w.Frames+w.Line.Dropped, w.Line.Dropped, w.Line.Most
	}
	if at > 0 {
		p.Busy = metric.Float(w.Busy-but) / metric.Float(at)
	}
	return p
}
