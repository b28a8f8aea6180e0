package saturate

import (
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// Ends are the names of the ends of a testbed that can be captured: every worker's, and the server's, the interfaces of a capture in
// their order.
func Ends(p *lab.Plan) (names []string) {
	for _, w := range p.Workers() {
		names = append(names, p.Nodes[w].Name)
	}
	return append(names, p.Nodes[p.Server()].Name)
}

// Recorder takes what is captured at the ends, by time, and how many frames found no room before they were taken.
type Recorder interface {
	Frame(*capture.Packet) error
	Lost(frames int64) error
}
