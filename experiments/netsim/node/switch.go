package node

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Switch is a switch with what it does with packets beside queueing them. It is a program.Program where it has one, and keeps its
// table over time.
type Switch struct {
	program.Program // nil only forwards
	Table           Occupancy
}

// Receive implements program.Program.
func (s *Switch) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	class := s.Program.Receive(now, from, p, lanes, out)
	s.Table.note(int64(now), s.Program.Occupied())
	return class
}

// Note keeps what the table holds up to an instant.
func (s *Switch) Note(now int64) { s.Table.note(now, s.Program.Occupied()) }

// At is the table over time up to an instant at or after the latest, without keeping it.
func (s *Switch) At(now int64) Occupancy {
	o := s.Table
	o.note(now, s.Program.Occupied())
	return o
}

// Occupancy is the table of a switch over time, from an instant on.
type Occupancy struct {
	From int64 // ps; what was held before is in neither Peak nor Area
	Held int
	Peak int
	Area float64 // slots × ps

	at int64
}

func (o *Occupancy) note(now int64, held int) {
	if now > o.From {
		o.Area += float64(float64(o.Held) * float64(now-max(o.at, o.From)))
		o.Peak = max(o.Peak, o.Held) // which may have come before From
	}
	if now >= o.From {
		o.Peak = max(o.Peak, held)
	}
	o.at, o.Held = now, held
}
