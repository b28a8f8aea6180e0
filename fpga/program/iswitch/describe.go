package iswitch

import (
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// newLedger returns a ledger with the program's classes and the counters that all programs have.
func newLedger() *olaf.Ledger {
	return program.NewLedger([]olaf.Counter{
		forwarded:  {Name: "forwarded", Title: "Forwarded", Doc: "of no aggregation protocol, passed on untouched"},
		consumed:   {Name: "consumed", Title: "Consumed", Doc: "added to a segment that waits for more"},
		completed:  {Name: "completed", Title: "Completed", Doc: "added to a segment whose sum then left"},
		Relayed:    {Name: "relayed", Title: "Relayed", Doc: "results from the parent, passed down"},
		controlled: {Name: "control", Title: "Control", Doc: "control packets of known jobs"},
		duplicate: {Name: "duplicate_dropped", Title: "Dropped, duplicate", Column: "DUPLICATE",
			Doc: "inside already, or of a round that is over (isw-x)"},
		mismatched: {Name: "mismatch", Title: "Dropped, size mismatch", Column: "MISMATCH",
			Doc: "of another length than what their segment holds"},
		outOfRange: {Name: "out_of_range", Title: "Dropped, out of range", Column: "RANGE",
			Doc: "of a segment beyond the job's part of the table"},
		stranger: {Name: "stranger", Title: "Dropped, stranger", Column: "STRANGER",
			Doc: "of a job or a worker that is not a member"},
	}, "completed", "forwarded")
}

// Describe returns the description of the iSwitch program.
func Describe() program.Description {
	return program.Description{
		Name:       "iswitch",
		Code:       1,
		Open:       true,
		Profiles:   limits.Profiles,
		Arithmetic: program.Float32,
		Completes:  "as many contributions as the job has members; SetH, or a bench by --h, says otherwise",
		Ledger:     newLedger(),
		Classes:    int(classes),
		Actions: map[string]uint8{
			"join": Join, "leave": Leave, "reset": Reset, "seth": SetH, "fbcast": ForceBroadcast, "help": Help,
			"halt": Halt, "ack": Acknowledge,
		},
		Tables: []program.Table{program.MembersTable("isw").WithParent()}, Stranger: stranger, ToS: DataToS, Above: smallestAddress,
		New: func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}

// smallestAddress returns the index of the switch with the smallest address. With this rule, all switches on a level
// choose the same parent (paper, §3.4).
func smallestAddress(switches []netip.Addr) int {
	taken := 0
	for i, a := range switches {
		if a.Less(switches[taken]) {
			taken = i
		}
	}
	return taken
}
