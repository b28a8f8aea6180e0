package fpga

import "github.com/olafctl/olaf"

// Pacing reports how well a process kept the departure times of frames at an output.
type Pacing struct {
	Frames     int64          `json:"frames"`
	LatenessNS olaf.Quantiles `json:"lateness_ns"`
	BusyNS     int64          `json:"busy_ns"` // sum of service times
	// StallNS is the sum of the lateness of all frames that were late by at least a quarter of their service time.
	StallNS int64 `json:"stall_ns"`
	Stalls  int64 `json:"stalls"`
	// StallAreaNS2 is half the sum of the squares of the latenesses summed in StallNS: the area that a stalled
	// output adds to every age.
	StallAreaNS2 float64 `json:"stall_area_ns2"`
	// DueNS is the mean time at which frames were due, on the generator's run clock. The server's mean stamp minus
	// DueNS is the delay of output and path.
	DueNS float64 `json:"due_ns"`
	// Withheld is the reason why ages must not be reported; empty if they may.
	Withheld string `json:"withheld,omitempty"`
}

// Arrival is an update that arrived at the queue, with the identity that the tables assign to its sender.
type Arrival struct {
	At     olaf.Time // time on the generator's run clock
	Update olaf.Update
}

// ArrivalLog is implemented by devices that log arrivals at their queue.
type ArrivalLog interface {
	// Arrivals returns the arrivals since the queue was enabled, in the order in which the queue decided about them.
	// The slice is valid until the queue is enabled again.
	Arrivals() ([]Arrival, error)
}

// FindArrivalLog returns dev's log of arrivals at the queue. ok is false if dev does not have a log. For a device
// behind an agent, this is known only at run time.
func FindArrivalLog(dev Device) (log ArrivalLog, ok bool) {
	log, ok = dev.(ArrivalLog)
	if d, asked := dev.(interface{ LogsArrivals() bool }); asked {
		ok = ok && d.LogsArrivals()
	}
	return log, ok
}
