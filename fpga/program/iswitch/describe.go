package iswitch

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Counts of gradient vectors' contributions, behind those of the classes.
const (
	vectorsIn = int(classes) + iota
	vectorsOut
	vectorsHeld
	vectorsCleared
	counters
)

// ledger declares the classes and what holds between contributions: whatever was added has left in a result, waits in a
// segment, or was discarded by a reset.
func ledger() *olaf.Ledger {
	return &olaf.Ledger{
		Counters: []olaf.Counter{
			Forwarded:      {Name: "forwarded", Title: "Forwarded", Unit: "packets", Doc: "of no aggregation protocol, passed on untouched"},
			Consumed:       {Name: "consumed", Title: "Consumed", Unit: "packets", Doc: "added to a segment that waits for more"},
			Completed:      {Name: "completed", Title: "Completed", Unit: "packets", Doc: "added to a segment whose sum then left"},
			Relayed:        {Name: "relayed", Title: "Relayed", Unit: "packets", Doc: "results from the parent, passed down"},
			Controlled:     {Name: "control", Title: "Control", Unit: "packets", Doc: "control packets of known jobs"},
			Duplicate:      {Name: "duplicate_dropped", Title: "Dropped, duplicate", Unit: "packets", Doc: "inside already, or of a round that is over (isw-x)"},
			Mismatched:     {Name: "mismatch", Title: "Dropped, size mismatch", Unit: "packets", Doc: "of another length than what their segment holds"},
			OutOfRange:     {Name: "out_of_range", Title: "Dropped, out of range", Unit: "packets", Doc: "of a segment beyond the job's part of the table"},
			Stranger:       {Name: "stranger", Title: "Dropped, stranger", Unit: "packets", Doc: "of a job or a worker that is not a member"},
			vectorsIn:      {Name: "vectors_in", Title: "Contributions in", Unit: "vectors", Doc: "workers' contributions inside the packets that were added"},
			vectorsOut:     {Name: "vectors_out", Title: "Contributions out", Unit: "vectors", Doc: "contributions inside the sums that left"},
			vectorsHeld:    {Name: "vectors_held", Title: "Contributions held", Unit: "vectors", Doc: "contributions inside the table"},
			vectorsCleared: {Name: "vectors_cleared", Title: "Contributions cleared", Unit: "vectors", Doc: "contributions that resets discarded"},
		},
		Identities: []olaf.Identity{{
			Left: []string{"vectors_in"}, Right: []string{"vectors_out", "vectors_held", "vectors_cleared"},
		}},
		Output: []string{"completed", "forwarded"},
	}
}

// Describe is iSwitch to those who handle programs by their descriptions.
func Describe() program.Description {
	return program.Description{
		Name:       "iswitch",
		Profiles:   []string{Published, Exactly},
		Arithmetic: program.Float32,
		Ledger:     ledger(),
		Classes:    int(classes),
		Actions: map[string]uint8{
			"join": Join, "leave": Leave, "reset": Reset, "seth": SetH, "fbcast": ForceBroadcast, "help": Help, "halt": Halt, "ack": Acknowledge,
		},
		New: func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}
