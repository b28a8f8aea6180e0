package atp

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// newLedger returns a ledger with the program's classes and the counters that all programs have.
func newLedger() *olaf.Ledger {
	return program.NewLedger([]olaf.Counter{
		forwarded: {Name: "forwarded", Title: "Forwarded",
			Doc: "passed on as they are: other traffic, repeats that found nothing, acknowledgements that freed nothing"},
		consumed: {Name: "consumed", Title: "Consumed", Doc: "added to an aggregator that waits for more"},
		completed: {Name: "completed", Title: "Completed",
			Doc: "the last of an aggregator, whose sum went to the server"},
		Collided: {Name: "collided", Title: "Collided",
			Doc: "of an aggregator that is another's: on to the server with the mark"},
		duplicate: {Name: "duplicate_dropped", Title: "Dropped, duplicate", Doc: "inside an aggregator that waits"},
		answered: {Name: "duplicate_answered", Title: "Answered, duplicate",
			Doc: "inside one that is complete: its sum went to the server again"},
		flushed: {Name: "flushed_by_resend", Title: "Flushed by a repeat",
			Doc: "marked as sent again: what was inside went to the server and the aggregator is free"},
		bypassed: {Name: "bypassed_overflow", Title: "Bypassed, overflow", Doc: "floats, which no aggregator adds"},
		freed:    {Name: "released", Title: "Released", Doc: "acknowledgements that freed their aggregator"},
		mismatched: {Name: "mismatch", Title: "Dropped, size mismatch",
			Doc: "of another length than what their aggregator holds"},
		outOfRange: {Name: "out_of_range", Title: "Dropped, out of range", Doc: "of an aggregator that is not there"},
		stranger:   {Name: "stranger", Title: "Dropped, stranger", Doc: "from a port that is no member's"},
	}, "completed", "forwarded", "collided", "flushed_by_resend", "bypassed_overflow")
}

// Describe returns the description of the ATP program.
func Describe() program.Description {
	return program.Description{
		Name:       "atp",
		Code:       3,
		Profiles:   limits.Profiles,
		Arithmetic: program.Sticky,
		Completes: "as many contributions as packets name for their level; where they name none the job's " +
			"fan-in, which is as many as it has members",
		Ledger:  newLedger(),
		Classes: int(classes),
		Tables:  listTables(), Stranger: stranger,
		New: func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}

// listTables returns the tables that a controller writes to configure jobs.
func listTables() []program.Table {
	return []program.Table{
		{
			Name: "atp.jobs", Doc: "The jobs that the switch knows, and their part of the aggregators where these are not shared.",
			Key:    program.JobKey(),
			Action: "set_job", Does: "The switch aggregates for the job; a size of 0 shares all aggregators.",
			Params: append(program.PartParams(), program.Field{Name: "level", Bits: 8, Means: program.TreeLevel},
				program.Field{Name: "parent", Bits: 1, Means: program.HasParent}),
			Miss: "forward", Without: "The switch aggregates nothing for the job.", Shared: true,
		},
		program.MembersTable("atp"),
	}
}
