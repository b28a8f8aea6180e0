package fpga

import "github.com/olafctl/olaf"

// Pacing is how well an output held its times that a process serves.
type Pacing struct {
	Frames     int64          `json:"frames"`
	LatenessNS olaf.Quantiles `json:"lateness_ns"`
	BusyNS     int64          `json:"busy_ns"`  // sum of service times
	StallNS    int64          `json:"stall_ns"` // sum of the lateness of frames that were late by a quarter of their service time
	Stalls     int64          `json:"stalls"`
	// StallAreaNS2 is half the sum of the squares of what is summed in StallNS: what every age gains in area while the output stands still.
	StallAreaNS2 float64 `json:"stall_area_ns2"`
	// DueNS is the mean instant at which frames were due, on the generator's run clock. By as much as the server stamps them later on the average,
	// output and way were late.
	DueNS float64 `json:"due_ns"`
	// Withheld is why ages must not be told; empty where they may.
	Withheld string `json:"withheld,omitempty"`
}

// Arrival is one update as it reached a queue, with the identity that the tables gave it.
type Arrival struct {
	At     olaf.Time // on the generator's run clock
	Update olaf.Update
}

// ArrivalLog is a device that knows what reached its queue, and when.
type ArrivalLog interface {
	// Arrivals are those since the queue was enabled, in the order in which it decided. They are valid until it is enabled again.
	Arrivals() ([]Arrival, error)
}

// LogOf is what a device tells of its queue's arrivals; ok is false of one that does not, as one behind an agent may turn out to.
func LogOf(dev Device) (log ArrivalLog, ok bool) {
	log, ok = dev.(ArrivalLog)
	if d, asked := dev.(interface{ LogsArrivals() bool }); asked {
		ok = ok && d.LogsArrivals()
	}
	return log, ok
}
