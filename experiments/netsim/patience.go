package netsim

import (
	"fmt"
	"runtime"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
)

const (
	// packetsPerSecond is the rate of one core with closed-loop workers in racks, rounded down.
	packetsPerSecond = 7e5
	// muchMemory is the number of bytes above which jobs need confirmation.
	muchMemory = 8 << 30
	// less suggests how to make a job smaller.
	less = "use fewer workers, updates or runs"
)

// Efforts adds up the cost of jobs that run in turn, each for several seeds in parallel.
type Efforts struct{ total closedloop.Effort }

// Add adds a number of runs of a job with the given cost each.
func (e *Efforts) Add(one closedloop.Effort, runs int) {
	e.total.Packets += float64(one.Packets * float64(runs))
	e.total.Memory = max(e.total.Memory, one.Memory*float64(min(runs, runtime.GOMAXPROCS(0))))
}

// CheckPatience rejects jobs that would take more than ten minutes on one core, or more than 8 GiB of memory. The error
// matches ErrLong and gives the cost.
func (e *Efforts) CheckPatience() error {
	if e.total.Memory > muchMemory {
		return fmt.Errorf("%w: about %.2g GB of memory; %s, or add --yes if you mean it", ErrLong, e.total.Memory/1e9, less)
	}
	return CheckDuration(e.total.Packets/packetsPerSecond, fmt.Sprintf("%.2g packets of gradients", e.total.Packets), less)
}
