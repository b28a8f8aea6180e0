// Package pktgen goes from a workload to what the packet generator needs: which worker sends when, under which address,
// and the words that say so in the generator's registers and memories.
//
// A workload is a validated value (Burst), its Schedule a seeded deterministic stream of descriptors in 250 MHz cycles,
// and a Generator is the block of registers that plays it. The package opens no device: it writes through the two or
// three register operations that it declares.
package pktgen

import (
	"github.com/olafctl/olaf"
)

var (
	// ErrWorkload is the kind of every refused workload.
	ErrWorkload = olaf.NewError(olaf.Usage, "bad workload")
	// ErrLimit says that a job exceeds what the generator was built for; the message names the limit.
	ErrLimit = olaf.NewError(olaf.Device, "the job does not fit the generator")
	// ErrState says that the generator declined a command or write because of its state.
	ErrState = olaf.NewError(olaf.Device, "generator refused")
	// ErrImage says that what the generator holds is not what was written.
	ErrImage = olaf.NewError(olaf.Device, "the generator's memory differs from what was loaded")
)

// ClockHz is the clock of the data path: descriptor times count its cycles.
const ClockHz = int64(olaf.Second / olaf.Cycle)

// Placement spreads workers over clusters: contiguous runs of worker ids whose lengths differ by at most one.
type Placement struct {
	Workers  int `json:"workers"`  // 1 to 65,536
	Clusters int `json:"clusters"` // 1 to Workers
}

// Cluster is where worker w belongs.
func (p Placement) Cluster(w int) olaf.ClusterID {
	return olaf.ClusterID(w * p.Clusters / p.Workers)
}

// Members is the range first ≤ w < end of cluster c's workers.
func (p Placement) Members(c int) (first, end int) {
	return (c*p.Workers + p.Clusters - 1) / p.Clusters, ((c+1)*p.Workers + p.Clusters - 1) / p.Clusters
}
