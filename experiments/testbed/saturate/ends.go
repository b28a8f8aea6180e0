package saturate

import (
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// EndNames returns the names of a testbed's ends that can be captured, which are the capture's interfaces in order: every
// worker's, and the server's.
func EndNames(p *lab.Plan) (names []string) {
	for _, w := range p.Workers() {
		names = append(names, p.Nodes[w].Name)
	}
	return append(names, p.Nodes[p.Server()].Name)
}

// Recorder receives the frames captured at the ends, by time, and the number of frames that found no room.
type Recorder interface {
	Frame(*capture.Packet) error
	Lost(frames int64) error
}
