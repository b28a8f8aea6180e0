package job

import (
	"fmt"
	"runtime"

	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/closed"
)

const (
	// packetsPerSecond is what one core does, of workers that wait in racks, rounded down.
	packetsPerSecond = 7e5
	// muchMemory is how many bytes jobs may take before somebody has to say that it is wanted.
	muchMemory = 8 << 30
	// less is what makes a job smaller.
	less = "use fewer workers, updates or runs"
)

// Patience refuses jobs that would take more than ten minutes on one core for so many seeds each, or more than 8 GiB of memory
// for the seeds that are played at a time. The error matches netsim.ErrLong and says what they take, or closed.ErrConfig where
// there can be no such job. Nothing is built.
func Patience(specs []*Spec, runs int) error {
	var all closed.Effort
	for _, s := range specs {
		parts, err := s.parts()
		if err != nil {
			return err
		}
		one, err := closed.EffortOf(s.Network, s.Job, parts)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name(), err)
		}
		all.Packets += one.Packets * float64(runs)
		all.Memory = max(all.Memory, one.Memory*float64(min(runs, runtime.GOMAXPROCS(0))))
	}
	if all.Memory > muchMemory {
		return fmt.Errorf("%w: about %.2g GB of memory; %s, or add --yes if you mean it", netsim.ErrLong, all.Memory/1e9, less)
	}
	return netsim.Patient(all.Packets/packetsPerSecond, fmt.Sprintf("%.2g packets of gradients", all.Packets), less)
}
