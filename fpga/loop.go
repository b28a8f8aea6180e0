package fpga

import (
	"github.com/olafctl/olaf/fpga/program"
)

// Looper is a Device beside which hosts may wait for what its program sends back: they live in the device's own time, at ports
// that are wired to them, and what they send passes no queue.
type Looper interface {
	Device
	// OpenLoop begins a loop through the program that register aggregator.program names, built as its hosts need it, in an empty
	// table. Until the queue is configured again, packets are given to what it returns in the order of their arrivals, whose
	// times count from now; device time passes with them, in whole cycles. A job that the program's tables have not, or have
	// otherwise, is refused. The error matches ErrRefused, or is the program's.
	OpenLoop(build program.Config) (program.Program, error)
}

// AddsUpdates says whether the programs of a device stand in front of its queue too, and add up what the generator sends. Where it
// says nothing they do.
func AddsUpdates(dev Device) bool {
	d, says := dev.(interface{ AddsUpdates() bool })
	return !says || d.AddsUpdates()
}
