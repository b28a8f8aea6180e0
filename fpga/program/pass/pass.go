// Package pass is the program of a switch that only forwards: what comes from below goes up, what comes from above goes
// down. A switch without a program does the same.
package pass

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Forwarded is what becomes of every packet.
const Forwarded program.Class = 0

// Switch forwards. It implements program.Program.
type Switch struct{ counts [1]uint64 }

// Describe is the program to those who handle programs by their descriptions.
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

// Receive passes a packet on.
func (s *Switch) Receive(_ olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	program.Forward(from, p, lanes, out)
	s.counts[Forwarded]++
	return Forwarded
}

// Configure takes every job, and Remove ends none: nothing is kept of jobs.
func (s *Switch) Configure(program.Job) error { return nil }
func (s *Switch) Remove(olaf.ClusterID)       {}

// Slots is 0: there is no table.
func (s *Switch) Slots() int            { return 0 }
func (s *Switch) Slot(int) program.Slot { return program.Slot{} }
func (s *Switch) Occupied() int         { return 0 }

// Memory is none.
func (s *Switch) Memory() olaf.Size { return 0 }

// Counts are the values of the ledger that Describe declares.
func (s *Switch) Counts() []uint64 { return s.counts[:] }

// Reset empties the counts.
func (s *Switch) Reset() { s.counts = [1]uint64{} }
