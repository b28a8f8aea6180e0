package bench

import "fmt"

// Topology says whom results reach.
type Topology string

// The topologies.
const (
	ToServer  Topology = "P" // everything crosses the link to the parameter server, where ages are taken; the zero value too
	ToWorkers Topology = "S" // the switch answers its workers, by one link a worker, and ages are taken there
)

// Topologies are what users may choose.
func Topologies() []string { return []string{string(ToServer), string(ToWorkers)} }

// Set takes a topology by its name. The error matches ErrSpec.
func (t *Topology) Set(name string) error {
	switch Topology(name) {
	case ToServer:
		*t = "" // as a specification without one
	case ToWorkers:
		*t = ToWorkers
	default:
		return fmt.Errorf("%w: no topology is called %q; there are %v", ErrSpec, name, Topologies())
	}
	return nil
}

// String is the topology's name.
func (t Topology) String() string {
	if t == "" {
		return string(ToServer)
	}
	return string(t)
}

// Type is what help calls it.
func (t Topology) Type() string { return "P|S" }
