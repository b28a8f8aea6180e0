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

// Occupancy is the table of a switch over time.
type Occupancy struct {
	Held int
	Peak int
	Area float64 // slots × ps

	at int64
}

func (o *Occupancy) note(now int64, held int) {
	o.Area += float64(o.Held) * float64(now-o.at)
	o.at, o.Held, o.Peak = now, held, max(o.Peak, held)
}
