package aggregator

import "github.com/olafctl/olaf"

// Unit models the hardware that runs a published program. Frames pass its bus one after another.
type Unit struct {
	BusBytes int           // bytes per beat
	Beat     olaf.Duration // period of the bus clock
	Pipeline int           // beats from the end of a frame to the start of a sum
	Room     int           // frames that may wait for the bus; further ones are lost
}

// Rate returns the capacity of the bus in bits per second.
func (u *Unit) Rate() olaf.Rate {
	return olaf.Rate(int64(u.BusBytes) * 8 * int64(olaf.Second) / int64(u.Beat))
}

// TransferTime returns the time that a frame of the given size occupies the bus.
func (u *Unit) TransferTime(size olaf.Size) olaf.Duration {
	beats := (int64(size) + int64(u.BusBytes) - 1) / int64(u.BusBytes)
	return olaf.Duration(beats) * u.Beat
}

// Inlet tracks when the bus of a Unit is occupied and which frames wait for it.
type Inlet struct {
	unit  Unit
	until []olaf.Time // ring of the times at which earlier frames have left the bus
	next  int         // index of the oldest
	free  olaf.Time
}

// NewInlet returns an Inlet for u whose bus is idle.
func NewInlet(u Unit) *Inlet { return &Inlet{unit: u, until: make([]olaf.Time, u.Room+1)} }

// Pass returns the time at which a frame that arrives at now has passed the unit. It returns false if the frame is lost
// because too many frames wait. Frames must be passed in order of time.
func (i *Inlet) Pass(now olaf.Time, size olaf.Size) (olaf.Time, bool) {
	if i.until[i.next] > now {
		return 0, false
	}
	i.free = max(i.free, now).Add(i.unit.TransferTime(size))
	i.until[i.next] = i.free
	i.next = (i.next + 1) % len(i.until)
	return i.free.Add(olaf.Duration(i.unit.Pipeline) * i.unit.Beat), true
}
