package closedloop

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf/experiments/system"
)

// MaxWorkers is the number of workers of a job that a frame can name, MaxJobs the number of jobs, from FirstJob on.
const (
	MaxWorkers = 1 << 16
	MaxJobs    = 1<<16 - int(FirstJob)
)

// CheckRounds converts a number of updates for a Job. The error matches ErrConfig if packets cannot number them.
func CheckRounds(updates int) (uint32, error) {
	if updates < 1 || updates > math.MaxUint32 {
		return 0, fmt.Errorf("%w: %d updates; use 1 to %d", ErrConfig, updates, uint32(math.MaxUint32))
	}
	return uint32(updates), nil
}

// Effort is the approximate cost of a run, rounded up.
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

// EffortOf estimates the cost of Run with these arguments, without building anything. The error matches ErrConfig.
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
		if slots = parts.Build.Slots; parts.Whole {
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
