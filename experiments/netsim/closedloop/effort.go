package closedloop

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
)

// MaxWorkers is the maximum number of workers per job that a frame can identify. MaxJobs is the maximum number of jobs,
// whose numbers begin with FirstJob.
const (
	MaxWorkers = 1 << 16
	MaxJobs    = 1<<16 - int(FirstJob)
)

// CheckRounds converts a number of updates to the number of rounds of a Job. The error matches ErrConfig if the number
// is not positive or if round numbers in packets cannot represent it.
func CheckRounds(updates int) (uint32, error) {
	if updates < 1 || updates > math.MaxUint32 {
		return 0, fmt.Errorf("%w: %d updates; use 1 to %d", ErrConfig, updates, uint32(math.MaxUint32))
	}
	return uint32(updates), nil
}

// Effort is the approximate cost of a run. It is rounded up.
type Effort struct {
	Packets float64 // sent by workers, for all vectors
	Memory  float64 // bytes
}

// Measured memory per item, in bytes: a packet in flight with its events, a slot of a switch's table, and the meter's
// data per round.
const (
	packetMemory = 350
	slotMemory   = 240
	roundMemory  = 32
)

// EffortOf estimates the cost of calling Run with these arguments. It does not build anything. The error matches
// ErrConfig.
func EffortOf(net Network, job Job, parts system.Parts) (Effort, error) {
	if err := net.checkNetwork(); err != nil {
		return Effort{}, err
	}
	if err := job.checkJob(); err != nil {
		return Effort{}, err
	}
	shape := shapeOf(&net, parts.Server != nil)
	job.PerPacket = max(parts.PerPacket, 1)
	packets, workers := job.Packets(), float64(net.Jobs)*float64(net.Workers)
	tables, onTheWay, slots := 1+shape.racks, packets, 0
	if net.Tree != nil {
		tables = len(net.Tree.Servers)
	}
	if parts.Window > 0 {
		onTheWay = min(onTheWay, parts.Window)
	}
	if parts.Program != nil {
		if slots = parts.Build.Slots; parts.FitsVector {
			slots = packets
		}
		if slots > 0 && !parts.Build.Wrap {
			onTheWay = min(onTheWay, slots)
		}
	}
	return Effort{
		Packets: workers * float64(packets) * float64(job.Updates),
		Memory: float64(workers*float64(onTheWay)*packetMemory) + float64(float64(tables)*float64(slots)*slotMemory) +
			float64(float64(net.Jobs)*float64(job.Updates)*roundMemory),
	}, nil
}

// ErrLong reports that a run would take too long and needs the user's confirmation.
var ErrLong = olaf.NewError(olaf.Usage, "this would take long")

const (
	// patience is the longest duration of work that does not need the user's confirmation.
	patience = 10 * time.Minute
	// packetsPerSecond is the number of packets that one core simulates per second, with closed-loop workers in racks.
	// It is rounded down.
	packetsPerSecond = 7e5
	// muchMemory is the largest memory, in bytes, that jobs may need without the user's confirmation.
	muchMemory = 8 << 30
	// less is the advice in errors about jobs that are too large.
	less = "use fewer workers, updates or runs"
)

// Efforts adds up the cost of several jobs. The jobs run one after the other; the seeds of one job run in parallel.
type Efforts struct{ total Effort }

// Add adds the cost of several runs of one job. one is the cost of a single run, and runs is the number of runs.
func (e *Efforts) Add(one Effort, runs int) {
	e.total.Packets += float64(one.Packets * float64(runs))
	e.total.Memory = max(e.total.Memory, one.Memory*float64(min(runs, runtime.GOMAXPROCS(0))))
}

// CheckPatience rejects jobs that would take more than ten minutes on one core or more than 8 GiB of memory. The error
// matches ErrLong and contains the cost.
func (e *Efforts) CheckPatience() error {
	if e.total.Memory > muchMemory {
		return fmt.Errorf("%w: about %.2g GB of memory; %s, or add --yes if you mean it", ErrLong, e.total.Memory/1e9, less)
	}
	return CheckDuration(e.total.Packets/packetsPerSecond, fmt.Sprintf("%.2g packets of gradients", e.total.Packets), less)
}

// CheckDuration rejects work that would take more than ten minutes on one core. what describes the size of the work,
// and instead suggests how to reduce it. The error matches ErrLong.
func CheckDuration(seconds float64, what, instead string) error {
	if seconds < patience.Seconds() {
		return nil
	}
	return fmt.Errorf("%w: about %s, %s on one core; %s, or add --yes if you mean it", ErrLong, what,
		FormatDuration(seconds), instead)
}

// FormatDuration formats a span of wall time in a suitable unit.
func FormatDuration(seconds float64) string {
	for _, u := range []struct {
		name  string
		worth float64
	}{{"years", 365 * 86400}, {"days", 86400}, {"hours", 3600}, {"minutes", 60}} {
		if seconds >= 2*u.worth {
			return fmt.Sprintf("%.0f %s", seconds/u.worth, u.name)
		}
	}
	return fmt.Sprintf("%.0f seconds", seconds)
}
