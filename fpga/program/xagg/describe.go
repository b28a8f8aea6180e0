package xagg

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Counters after those of all programs.
const (
	saturated = int(classes) + program.Sums + iota
	checks
	missed
	resent
	counters
)

// newLedger returns a ledger with the program's classes, the counters that all programs have, and the counters of the
// agents.
func newLedger() *olaf.Ledger {
	l := program.NewLedger([]olaf.Counter{
		Forwarded:  {Name: "forwarded", Title: "Forwarded", Doc: "of no aggregation protocol, passed on untouched"},
		Consumed:   {Name: "consumed", Title: "Consumed", Doc: "added to a fragment that waits for more"},
		Completed:  {Name: "completed", Title: "Completed", Doc: "the last of a fragment, whose sum then left"},
		Relayed:    {Name: "relayed", Title: "Relayed", Doc: "results from the parent, passed down"},
		Controlled: {Name: "control", Title: "Control", Doc: "control packets of known jobs"},
		Duplicate:  {Name: "duplicate_dropped", Title: "Dropped, duplicate", Doc: "inside already"},
		Late:       {Name: "late", Title: "Dropped, late", Doc: "of an epoch that is over"},
		Mismatched: {Name: "mismatch", Title: "Dropped, size mismatch",
			Doc: "of another length than what their fragment holds"},
		OutOfRange: {Name: "out_of_range", Title: "Dropped, out of range", Doc: "of a fragment beyond the model"},
		Stranger:   {Name: "stranger", Title: "Dropped, stranger", Doc: "of a job or a port that is no member"},
	}, "completed", "forwarded")
	l.Counters = append(l.Counters,
		olaf.Counter{Name: "lane_saturations", Title: "Lanes saturated", Unit: "lanes",
			Doc: "sums that left the range of int32 and were held at its end"},
		olaf.Counter{Name: "groups_checked", Title: "Groups checked", Unit: "groups",
			Doc: "looks for what is missing of a child, at the end of a group or of its vector"},
		olaf.Counter{Name: "fragments_missed", Title: "Fragments missed", Unit: "packets",
			Doc: "fragments that were found missing and asked for"},
		olaf.Counter{Name: "sums_resent", Title: "Sums resent", Unit: "packets",
			Doc: "sums and results that left once more because somebody missed them"})
	return l
}

// Describe returns the description of the XAgg program.
func Describe() program.Description {
	return program.Description{
		Name:       "xagg",
		Code:       5,
		Profiles:   limits.Profiles,
		Arithmetic: program.Saturating,
		Completes:  "one contribution of every child of the job",
		Ledger:     newLedger(),
		Classes:    int(classes),
		Actions: map[string]uint8{
			"ready": Ready, "rate": Rate, "finished": Finished, "lost": Lost, "checked": Checked, "ask": Ask,
			"renew": Renew,
			"begin": Begin, "first": First, "still": Still, "leave": Leave, "refuse": Refuse, "awaits": Awaits,
		},
		New: func(cfg program.Config) (program.Program, error) { return New(cfg) },
	}
}
