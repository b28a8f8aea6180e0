package fpga

import (
	"github.com/olafctl/olaf/fpga/program"
)

// Looper is a Device to which closed-loop hosts can connect. The hosts run in device time and are connected to its
// ports. Their packets bypass the queue.
type Looper interface {
	Device
	// OpenLoop starts a closed loop through the program selected by register aggregator.program. The program is built
	// with the given configuration and begins with an empty table. Until the queue is configured again, the caller
	// feeds packets to the returned program in order of arrival. Arrival times count from now, and device time advances
	// with them, in whole cycles. A job that is missing from the program's tables, or that differs from them, is
	// rejected. The error matches ErrRefused or is the program's.
	OpenLoop(build program.Config) (program.Program, error)
}

// AddsUpdates reports whether the device's switch programs can also sum the generator's updates before its queue. It
// returns true for devices that do not implement a method AddsUpdates.
func AddsUpdates(dev Device) bool {
	d, says := dev.(interface{ AddsUpdates() bool })
	return !says || d.AddsUpdates()
}
