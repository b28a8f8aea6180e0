package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Frame is one that arrived somewhere; what it refers to is valid during the call. Nodes are numbered as Nodes names them.
type Frame struct {
	At     olaf.Time // its last bit
	From   int       // node that made it
	To     int       // node that it arrived at
	For    int       // host that it is addressed to; To of what is the switches' matter
	Past   bool      // addressed to a host, past the aggregators
	Packet *program.Packet
	Lanes  []uint32 // nil where no values are carried
}

// Nodes are the names of a network's nodes: workers by job, the jobs' servers where there are some, the root, racks, and
// the servers of a tree.
func (n *Network) Nodes(server bool) []string {
	several := *n
	several.Jobs = max(1, n.Jobs)
	s := shapeOf(&several, server)
	names := make([]string, 0, s.ends+1+s.racks)
	for h := range s.ends {
		job, worker := s.whose(h)
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

// tap tells of a frame that has come to the end of a wire.
func (s *sim) tap(w *wire, p *packet) {
	f := Frame{At: olaf.Time(s.now), From: int(p.from), To: int(w.to), For: int(w.to), Packet: &p.Packet, Lanes: p.lanes}
	switch {
	case s.grove != nil && p.target != everybody:
		f.For = int(p.target)
	case p.to != endpoint.Network:
		f.For, f.Past = int(s.numberOf(p)), true
	}
	s.job.Tap(&f)
}
