package switchml

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Profile is the one that there is: the released program.
const Profile = "p4app"

// Counts of contributions, behind those of the classes.
const (
	vectorsIn = int(classes) + iota
	vectorsOut
	vectorsHeld
	vectorsCleared
	counters
)

// ledger declares the classes and what holds between contributions.
func ledger() *olaf.Ledger {
	return &olaf.Ledger{
		Counters: []olaf.Counter{
			Forwarded:      {Name: "forwarded", Title: "Forwarded", Unit: "packets", Doc: "of no aggregation protocol, passed on untouched"},
			Consumed:       {Name: "consumed", Title: "Consumed", Unit: "packets", Doc: "added to a set that waits for more"},
			Completed:      {Name: "completed", Title: "Completed", Unit: "packets", Doc: "the last of a set, whose sum then left"},
			Relayed:        {Name: "relayed", Title: "Relayed", Unit: "packets", Doc: "results from the parent, passed down"},
			Answered:       {Name: "duplicate_answered", Title: "Answered, duplicate", Unit: "packets", Doc: "inside a set that is complete; its result went to the sender again"},
			Duplicate:      {Name: "duplicate_dropped", Title: "Dropped, duplicate", Unit: "packets", Doc: "inside a set that is not complete"},
			Mismatched:     {Name: "mismatch", Title: "Dropped, size mismatch", Unit: "packets", Doc: "of another length than what their set holds"},
			OutOfRange:     {Name: "out_of_range", Title: "Dropped, out of range", Unit: "packets", Doc: "of a slot that the job does not have"},
			Stranger:       {Name: "stranger", Title: "Dropped, stranger", Unit: "packets", Doc: "of a job or a port that is no member"},
			vectorsIn:      {Name: "vectors_in", Title: "Contributions in", Unit: "vectors", Doc: "workers' contributions inside the packets that were added"},
			vectorsOut:     {Name: "vectors_out", Title: "Contributions out", Unit: "vectors", Doc: "contributions inside the sums that left, each once"},
			vectorsHeld:    {Name: "vectors_held", Title: "Contributions held", Unit: "vectors", Doc: "contributions inside sets that wait"},
			vectorsCleared: {Name: "vectors_cleared", Title: "Contributions cleared", Unit: "vectors", Doc: "contributions that were overwritten or removed with their job"},
		},
		Identities: []olaf.Identity{{
			Left: []string{"vectors_in"}, Right: []string{"vectors_out", "vectors_held", "vectors_cleared"},
		}},
		Output: []string{"completed", "forwarded"},
	}
}

// Describe is SwitchML to those who handle programs by their descriptions.
func Describe() program.Description {
	return program.Description{
		Name:       "switchml",
		Profiles:   []string{Profile},
		Arithmetic: program.Wrapping,
		Ledger:     ledger(),
		Classes:    int(classes),
		New:        func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}
