package switchml

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// profile is the name of the only profile. It follows the released program.
const profile = "p4app"

// newLedger returns a ledger with the program's classes and the counters that all programs have.
func newLedger() *olaf.Ledger {
	return program.NewLedger([]olaf.Counter{
		forwarded: {Name: "forwarded", Title: "Forwarded", Doc: "of no aggregation protocol, passed on untouched"},
		consumed:  {Name: "consumed", Title: "Consumed", Doc: "added to a set that waits for more"},
		completed: {Name: "completed", Title: "Completed", Doc: "the last of a set, whose sum then left"},
		relayed:   {Name: "relayed", Title: "Relayed", Doc: "results from the parent, passed down"},
		answered: {Name: "duplicate_answered", Title: "Answered, duplicate",
			Doc: "inside a set that is complete; its result went to the sender again"},
		duplicate: {Name: "duplicate_dropped", Title: "Dropped, duplicate", Doc: "inside a set that is not complete"},
		mismatched: {Name: "mismatch", Title: "Dropped, size mismatch",
			Doc: "of another length than what their set holds"},
		outOfRange: {Name: "out_of_range", Title: "Dropped, out of range", Doc: "of a slot that the job does not have"},
		stranger:   {Name: "stranger", Title: "Dropped, stranger", Doc: "of a job or a port that is no member"},
	}, "completed", "forwarded")
}

// Describe returns the description of the SwitchML program.
func Describe() program.Description {
	return program.Description{
		Name:       "switchml",
		Code:       2,
		Profiles:   limits.Profiles,
		Arithmetic: program.Wrapping,
		Completes:  "one contribution of every worker of the job",
		Ledger:     newLedger(),
		Classes:    int(classes),
		Tables:     listTables(), Stranger: stranger,
		New: func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}

// listTables returns the tables that a controller writes to configure jobs.
func listTables() []program.Table {
	return []program.Table{
		{
			Name: "sml.jobs", Doc: "The slots of the pool that are a job's.",
			Key:    program.JobKey(),
			Action: "set_pool", Does: "The job has these slots; a size of 0 is all that follow.",
			Params: program.PartParams(),
			Miss:   "no_pool", Without: "The job has no slots: its packets are dropped and counted.",
		},
		program.MembersTable("sml"),
	}
}
