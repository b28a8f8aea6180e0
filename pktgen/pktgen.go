// Package pktgen converts a workload to input for the packet generator: which worker sends when, from which
// address, and the words for the generator's registers and memories.
//
// A workload is a validated value (Burst), its Schedule a seeded deterministic stream of descriptors in 250 MHz
// cycles, and a Generator the register block that plays it. The package opens no device: it writes through the
// register operations that it declares.
package pktgen

import (
	"github.com/olafctl/olaf"
)

var (
	// ErrWorkload is matched by the errors for invalid workloads.
	ErrWorkload = olaf.NewError(olaf.Usage, "bad workload")
	// ErrLimit reports that the job exceeds the generator's build limits; the message includes the limit.
	ErrLimit = olaf.NewError(olaf.Device, "the job does not fit the generator")
	// ErrState reports that the generator refused a command or write in its current state.
	ErrState = olaf.NewError(olaf.Device, "generator refused")
	// ErrImage reports that the generator's memory differs from the written data.
	ErrImage = olaf.NewError(olaf.Device, "the generator's memory differs from what was loaded")
)

// ClockHz is the clock of the data path: descriptor times count its cycles.
const ClockHz = int64(olaf.Second / olaf.Cycle)

// Placement spreads workers over clusters: contiguous runs of worker ids whose lengths differ by at most one.
type Placement struct {
	Workers  int `json:"workers"`  // 1 to 65,536
	Clusters int `json:"clusters"` // 1 to Workers
}

// Cluster returns the cluster of worker w.
func (p Placement) Cluster(w int) olaf.ClusterID {
	return olaf.ClusterID(w * p.Clusters / p.Workers)
}

// Members returns the range first ≤ w < end of cluster c's workers.
func (p Placement) Members(c int) (first, end int) {
	return (c*p.Workers + p.Clusters - 1) / p.Clusters, ((c+1)*p.Workers + p.Clusters - 1) / p.Clusters
}
