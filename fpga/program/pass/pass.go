// Package pass implements the program of a switch that only forwards packets, from the children to the uplink and from
// the uplink to the children. A switch without a program does the same.
package pass

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// forwarded is the class of every packet.
const forwarded program.Class = 0

// Switch forwards all packets. It implements program.Program.
type Switch struct{ counts [1]uint64 }

// Describe returns the description of the pass-through program.
func Describe() program.Description {
	return program.Description{
		Name:     "pass",
		Code:     0,
		Profiles: []string{"pass"},
		Ledger: &olaf.Ledger{
			Counters: []olaf.Counter{{Name: "forwarded", Title: "Forwarded", Unit: "packets",
				Doc: "passed on untouched"}},
			Output: []string{"forwarded"},
		},
		Classes: 1,
		New:     func(program.Config) (program.Program, error) { return new(Switch), nil },
	}
}

// Receive forwards a packet and counts it.
func (s *Switch) Receive(_ olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	program.ForwardPacket(from, p, lanes, out)
	s.counts[forwarded]++
	return forwarded
}

// Configure and Remove do nothing, because the program has no state per job.
func (s *Switch) Configure(program.Job) error { return nil }
func (s *Switch) Remove(olaf.ClusterID)       {}

// Slots returns 0, because the program has no table.
func (s *Switch) Slots() int            { return 0 }
func (s *Switch) Slot(int) program.Slot { return program.Slot{} }
func (s *Switch) CountOccupied() int    { return 0 }

// Memory returns 0, because the program has no table.
func (s *Switch) Memory() olaf.Size { return 0 }

// Counts returns the values of the counters in the description's ledger.
func (s *Switch) Counts() []uint64 { return s.counts[:] }

// Reset sets the counts to 0.
func (s *Switch) Reset() { s.counts = [1]uint64{} }
