package saturate

import (
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// EndNames returns the names of the ends of a testbed that can be captured. The interfaces of the capture are in the
// same order: one for every worker, and then the server's.
func EndNames(p *lab.Plan) (names []string) {
	for _, w := range p.Workers() {
		names = append(names, p.Nodes[w].Name)
	}
	return append(names, p.Nodes[p.Server()].Name)
}

// Recorder receives the frames that are captured at the ends, in time order, and the number of frames that were lost.
type Recorder interface {
	Frame(*capture.Packet) error
	Lost(frames int64) error
}
