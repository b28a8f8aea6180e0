package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Frame is a frame at the time of its arrival. Its references are valid during the call only. Nodes are numbered in the
// order of NodeNames.
type Frame struct {
	At     olaf.Time // arrival of the last bit
	From   int       // node that created the frame
	To     int       // node where it arrived
	For    int       // host that it is addressed to; To for packets to switches
	Past   bool      // addressed to a host, bypassing the aggregators
	Packet *program.Packet
	Lanes  []uint32 // nil if values are not simulated
}

// NodeNames returns the names of a network's nodes in this order: the workers of each job, the jobs' servers, the root,
// the racks, and the servers of a tree.
func (n *Network) NodeNames(server bool) []string {
	several := *n
	several.Jobs = max(1, n.Jobs)
	s := shapeOf(&several, server)
	names := make([]string, 0, s.ends+1+s.racks)
	for h := range s.ends {
		job, worker := s.jobAndWorker(h)
		name := fmt.Sprintf("worker-%d", worker)
		if worker == s.workers {
			name = "server"
		}
		if s.jobs > 1 {
			name = fmt.Sprintf("job-%d-%s", job+1, name)
		}
		names = append(names, name)
	}
	names = append(names, "root")
	for r := range s.racks {
		names = append(names, fmt.Sprintf("rack-%d", r))
	}
	if n.Tree != nil {
		for i := range n.Tree.Servers {
			names = append(names, fmt.Sprintf("aggregator-%d", i))
		}
	}
	return names
}

// tapFrame passes a frame that has reached the end of a wire to the tap.
func (s *sim) tapFrame(w *wire, p *packet) {
	f := Frame{At: olaf.Time(s.now), From: int(p.from), To: int(w.to), For: int(w.to), Packet: &p.Packet,
		Lanes: p.lanes}
	switch {
	case s.grove != nil && p.target != allWorkers:
		f.For = int(p.target)
	case p.to != endpoint.Network:
		f.For, f.Past = int(s.numberOf(p)), true
	}
	s.job.Tap(&f)
}
