package closedloop

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Switch is a switch with its program. It implements program.Program itself and records the occupancy of the program's
// table over time.
type Switch struct {
	program.Program // nil if it only forwards
	Table           Occupancy
}

// Receive implements program.Program.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	class := s.Program.Receive(now, from, p, lanes, out)
	s.Table.record(int64(now), s.Program.CountOccupied())
	return class
}

// RecordTable records the occupancy of the table up to now.
func (s *Switch) RecordTable(now int64) { s.Table.record(now, s.Program.CountOccupied()) }

// OccupancyAt returns the occupancy of the table up to now without recording it. now must not be before the last
// recorded time.
func (s *Switch) OccupancyAt(now int64) Occupancy {
	o := s.Table
	o.record(now, s.Program.CountOccupied())
	return o
}

// Occupancy is the occupancy of a switch's table over time, measured from a given instant on.
type Occupancy struct {
	From  int64 // ps; earlier occupancy counts neither in Peak nor in Area
	Slots int
	Peak  int
	Area  float64 // slots × ps

	at int64
}

func (o *Occupancy) record(now int64, held int) {
	if now > o.From {
		o.Area += float64(float64(o.Slots) * float64(now-max(o.at, o.From)))
		o.Peak = max(o.Peak, o.Slots) // Slots may date from before From
	}
	if now >= o.From {
		o.Peak = max(o.Peak, held)
	}
	o.at, o.Slots = now, held
}
