package p4inc

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// newLedger returns a ledger with the program's classes and the counters that all programs have.
func newLedger() *olaf.Ledger {
	return program.NewLedger([]olaf.Counter{
		Forwarded: {Name: "forwarded", Title: "Forwarded",
			Doc: "of no job that the switch aggregates for, passed on untouched"},
		Consumed:  {Name: "consumed", Title: "Consumed", Doc: "added to an aggregator that waits for more"},
		Completed: {Name: "completed", Title: "Completed", Doc: "the last of a fragment, whose sum then left"},
		Asynchron: {Name: "asynchronous", Title: "Dropped, asynchronous",
			Doc: "of a later fragment than their aggregator holds; the sender got a mark of congestion"},
		Duplicate: {Name: "duplicate_dropped", Title: "Dropped, duplicate", Doc: "inside an aggregator that waits"},
		Answered: {Name: "duplicate_answered", Title: "Answered, duplicate",
			Doc: "of the fragment that was completed last; its sum went to the sender again"},
		Stale: {Name: "stale", Title: "Dropped, stale",
			Doc: "of a fragment before the one that was completed last"},
		Mismatched: {Name: "mismatch", Title: "Dropped, size mismatch",
			Doc: "of another length than what their aggregator holds"},
		OutOfRange: {Name: "out_of_range", Title: "Dropped, out of range",
			Doc: "of an aggregator outside the job's segment"},
		Stranger: {Name: "stranger", Title: "Dropped, stranger", Doc: "from a port that is no member's"},
	}, "completed", "forwarded")
}

// Describe returns the description of the P4INC program.
func Describe() program.Description {
	return program.Description{
		Name:       "p4inc",
		Code:       4,
		Profiles:   limits.Profiles,
		Arithmetic: program.Wrapping,
		Completes:  "one contribution of each of the workers that p4inc.jobs gives the job",
		Ledger:     newLedger(),
		Classes:    int(classes),
		Actions:    map[string]uint8{"collided": Collided},
		Tables:     listTables(), Stranger: Stranger,
		New: func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}

// listTables returns the tables that a controller writes to configure jobs.
func listTables() []program.Table {
	return []program.Table{
		{
			Name: "p4inc.jobs", Doc: "The jobs that the switch aggregates for. Their workers are the members of " +
				"the multicast groups of their clusters.",
			Key:    program.JobKey(),
			Action: "set_job", Does: "A sum of the job is complete with so many workers.",
			Params: []program.Field{{Name: "workers", Bits: 16, Means: program.FanIn}},
			Miss:   "forward", Without: "The switch aggregates nothing for the job.",
		},
		{
			Name: "p4inc.segments", Doc: "The aggregators that are a job's.",
			Key:    program.JobKey(),
			Action: "set_segment", Does: "The job has these aggregators; a size of 0 is all that follow.",
			Params: program.PartParams(),
			Miss:   "no_segment", Without: "The job has no aggregators.",
		},
	}
}
