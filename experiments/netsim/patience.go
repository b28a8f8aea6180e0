package netsim

import (
	"fmt"
	"runtime"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
)

const (
	// packetsPerSecond is what one core does, of workers that wait in racks, rounded down.
	packetsPerSecond = 7e5
	// muchMemory is how many bytes jobs may take before somebody has to say that it is wanted.
	muchMemory = 8 << 30
	// less is what makes a job smaller.
	less = "use fewer workers, updates or runs"
)

// Efforts add up what runs of jobs take that are played one after the other, each for so many seeds, of which some are played at a
// time.
type Efforts struct{ total closedloop.Effort }

// Add counts runs of a job of which each takes so much.
func (e *Efforts) Add(one closedloop.Effort, runs int) {
	e.total.Packets += float64(one.Packets * float64(runs))
	e.total.Memory = max(e.total.Memory, one.Memory*float64(min(runs, runtime.GOMAXPROCS(0))))
}

// Patience refuses jobs that would take more than ten minutes on one core, or more than 8 GiB of memory. The error matches ErrLong
// and says what they take.
func (e *Efforts) Patience() error {
	if e.total.Memory > muchMemory {
		return fmt.Errorf("%w: about %.2g GB of memory; %s, or add --yes if you mean it", ErrLong, e.total.Memory/1e9, less)
	}
	return Patient(e.total.Packets/packetsPerSecond, fmt.Sprintf("%.2g packets of gradients", e.total.Packets), less)
}
