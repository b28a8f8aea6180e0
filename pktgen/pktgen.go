// Package pktgen converts a workload into input for the packet generator. The input defines which worker sends when and
// from which address, and consists of words for the generator's registers and memories. A workload is a validated value
// of type Burst. Its Schedule is a deterministic, seeded stream of descriptors with times in 250 MHz cycles. A
// Generator represents the register block that plays the stream. The package opens no device but writes through the
// register operations that it declares.
package pktgen

import (
	"github.com/olafctl/olaf"
)

var (
	// ErrWorkload is matched by errors about invalid workloads.
	ErrWorkload = olaf.NewError(olaf.Usage, "bad workload")
	// ErrLimit is the error for a job that exceeds the generator's build-time limits. The message includes the limit.
	ErrLimit = olaf.NewError(olaf.Device, "the job does not fit the generator")
	// ErrState is the error for a command or write that the generator refused in its current state.
	ErrState = olaf.NewError(olaf.Device, "generator refused")
	// ErrImage is returned if the generator's memory differs from the data that was written.
	ErrImage = olaf.NewError(olaf.Device, "the generator's memory differs from what was loaded")
)

// clockHz is the clock frequency of the data path. Times in descriptors are numbers of its cycles.
const clockHz = int64(olaf.Second / olaf.Cycle)

// Placement distributes workers to clusters. Each cluster has a contiguous range of worker IDs. The lengths of the
// ranges differ by at most one.
type Placement struct {
	Workers  int `json:"workers"`  // 1 to 65,536
	Clusters int `json:"clusters"` // 1 to Workers
}

// Cluster returns the cluster of worker w.
func (p Placement) Cluster(w int) olaf.ClusterID {
	return olaf.ClusterID(w * p.Clusters / p.Workers)
}

// Members returns the range of workers in cluster c, with first ≤ w < end.
func (p Placement) Members(c int) (first, end int) {
	return (c*p.Workers + p.Clusters - 1) / p.Clusters, ((c+1)*p.Workers + p.Clusters - 1) / p.Clusters
}
