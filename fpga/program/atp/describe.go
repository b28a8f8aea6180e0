package atp

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

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
			Forwarded:      {Name: "forwarded", Title: "Forwarded", Unit: "packets", Doc: "passed on as they are: other traffic, repeats that found nothing, acknowledgements that freed nothing"},
			Consumed:       {Name: "consumed", Title: "Consumed", Unit: "packets", Doc: "added to an aggregator that waits for more"},
			Completed:      {Name: "completed", Title: "Completed", Unit: "packets", Doc: "the last of an aggregator, whose sum went to the server"},
			Collided:       {Name: "collided", Title: "Collided", Unit: "packets", Doc: "of an aggregator that is another's: on to the server with the mark"},
			Duplicate:      {Name: "duplicate_dropped", Title: "Dropped, duplicate", Unit: "packets", Doc: "inside an aggregator that waits"},
			Answered:       {Name: "duplicate_answered", Title: "Answered, duplicate", Unit: "packets", Doc: "inside one that is complete: its sum went to the server again"},
			Flushed:        {Name: "flushed_by_resend", Title: "Flushed by a repeat", Unit: "packets", Doc: "marked as sent again: what was inside went to the server and the aggregator is free"},
			Bypassed:       {Name: "bypassed_overflow", Title: "Bypassed, overflow", Unit: "packets", Doc: "floats, which no aggregator adds"},
			Freed:          {Name: "released", Title: "Released", Unit: "packets", Doc: "acknowledgements that freed their aggregator"},
			Mismatched:     {Name: "mismatch", Title: "Dropped, size mismatch", Unit: "packets", Doc: "of another length than what their aggregator holds"},
			OutOfRange:     {Name: "out_of_range", Title: "Dropped, out of range", Unit: "packets", Doc: "of an aggregator that is not there"},
			Stranger:       {Name: "stranger", Title: "Dropped, stranger", Unit: "packets", Doc: "from a port that is no member's"},
			vectorsIn:      {Name: "vectors_in", Title: "Contributions in", Unit: "vectors", Doc: "workers' contributions inside the packets that were added"},
			vectorsOut:     {Name: "vectors_out", Title: "Contributions out", Unit: "vectors", Doc: "contributions inside the sums that went to the server, each once"},
			vectorsHeld:    {Name: "vectors_held", Title: "Contributions held", Unit: "vectors", Doc: "contributions inside aggregators that wait"},
			vectorsCleared: {Name: "vectors_cleared", Title: "Contributions cleared", Unit: "vectors", Doc: "contributions that were freed before they left"},
		},
		Identities: []olaf.Identity{{
			Left: []string{"vectors_in"}, Right: []string{"vectors_out", "vectors_held", "vectors_cleared"},
		}},
		Output: []string{"completed", "forwarded", "collided", "flushed_by_resend", "bypassed_overflow"},
	}
}

// Describe is ATP to those who handle programs by their descriptions.
func Describe() program.Description {
	return program.Description{
		Name:       "atp",
		Profiles:   []string{Released, Paper},
		Arithmetic: program.Sticky,
		Ledger:     ledger(),
		Classes:    int(classes),
		New:        func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}
