package aggregator

import "github.com/olafctl/olaf"

// Unit is the hardware that a published program runs on: frames pass it one after the other, on its bus.
type Unit struct {
	BusBytes int           // a beat
	Beat     olaf.Duration // of the bus clock
	Pipeline int           // beats from the last of a frame to the first of a sum
	Room     int           // frames that may wait for the bus; more are lost
}

// Rate is what the bus carries.
func (u *Unit) Rate() olaf.Rate {
	return olaf.Rate(int64(u.BusBytes) * 8 * int64(olaf.Second) / int64(u.Beat))
}

// Takes is how long a frame is on the bus.
func (u *Unit) Takes(size olaf.Size) olaf.Duration {
	beats := (int64(size) + int64(u.BusBytes) - 1) / int64(u.BusBytes)
	return olaf.Duration(beats) * u.Beat
}

// Inlet is a unit at work.
type Inlet struct {
	unit  Unit
	until []olaf.Time // when the frames before had left the bus, a ring of those that may be there
	next  int         // place of the oldest
	free  olaf.Time
}

// NewInlet is an idle unit.
func NewInlet(u Unit) *Inlet { return &Inlet{unit: u, until: make([]olaf.Time, u.Room+1)} }

// Pass says when a frame that arrives has been through; false where there is no room. Frames come in order of time.
func (i *Inlet) Pass(now olaf.Time, size olaf.Size) (olaf.Time, bool) {
	if i.until[i.next] > now {
		return 0, false
	}
	i.free = max(i.free, now).Add(i.unit.Takes(size))
	i.until[i.next] = i.free
	i.next = (i.next + 1) % len(i.until)
	return i.free.Add(olaf.Duration(i.unit.Pipeline) * i.unit.Beat), true
}
