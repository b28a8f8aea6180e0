package sched

import (
	"fmt"
	"slices"
	"strings"
)

// Repairs is a set of repairs, one bit each. A repair corrects a mistake in the printed model or algorithms.
type Repairs uint32

// The repairs, in the order of the paper. docs/guide/scheduling.md shows each with its smallest example.
const (
	Volume Repairs = 1 << iota
	LocalShare
	ServerRate
	Duplex
	Rise
	SlotEnd
	ArrivalSlot
	WholeJobs
	KeepINC
	ServeINC
	Midpoint
	LateUpdate
	PartSteps
	Enough
)

// AllRepairs contains every repair. It is the default of the planners.
const AllRepairs = Enough<<1 - 1

// repair describes one of the corrections.
type repair struct {
	Bit     Repairs
	Name    string
	InPaper string // in the paper
	Printed string // the printed text, or its omission
	Instead string // the correction
	MILP    bool   // concerns the model
	Policy  bool   // concerns TW or FCFS
}

// repairList returns descriptions of all repairs in the order of their bits.
func repairList() []repair {
	return []repair{
		{Volume, "volume", "Eqs. (4), (8)",
			"a job that its unit's switch aggregates sends nothing if its server is in another unit",
			"every worker sends its volume", true, true},
		{LocalShare, "local-share", "Eqs. (4), (8)",
			"for a job in several units, workers in the server's unit do not count at the server's port", "they count",
			false, true},
		{ServerRate, "server-rate", "nowhere", "a server's interface has no rate limit", "it is limited to server_rate",
			true, true},
		{Duplex, "duplex", "Eq. (6)", "both directions share a port's rate, although the footnote calls ports duplex",
			"each direction has the port's rate", true, true},
		{Rise, "rise", "Eq. (7)", "unchanged connections count as reconfigured", "only added connections count", true,
			true},
		{SlotEnd, "slot-end", "Eq. (11)", "a job that sends last in slot i is done at the start of the slot", "it is " +
			"done at the end of the slot", true, true},
		{ArrivalSlot, "arrival", "Eq. (11)", "a job may send before it arrives", "it sends from its arrival on", true,
			false},
		{WholeJobs, "whole-jobs", "Eq. (2), §VI-A",
			"a switch may aggregate only some of a job's workers, which §VI-A excludes",
			"it aggregates all or none, unless the network has partial_inc", true, true},
		{KeepINC, "keep-inc", "Algorithm 2, 2–14", "a job in the middle of its transfer may get a switch",
			"the aggregator is chosen when a job begins", false, true},
		{ServeINC, "serve-inc", "Algorithm 2, line 8", "a job with a switch is removed from J, and lines 18–31 serve " +
			"only jobs in J", "it is served like the others", false, true},
		{Midpoint, "midpoint", "Algorithm 3, line 9", "the search for a window's end tests the lower bound", "it " +
			"tests the midpoint", false, true},
		{LateUpdate, "late-update", "Algorithm 3, line 9",
			"a job whose update takes longer than the window has negative demand", "such a window is rejected as too " +
				"short", false,
			true},
		{PartSteps, "part-steps", "Algorithm 2, 21–27",
			"a step that does not fit completely is refused, so 16 workers never fit one server",
			"the part that fits is used", false, true},
		{Enough, "enough", "Algorithm 2, 19–31", "a job that will be done in this slot still gets more capacity",
			"it gets no more", false, true},
	}
}

// Has reports whether r includes all of q.
func (r Repairs) Has(q Repairs) bool { return r&q == q }

// Names returns the names of the repairs in r.
func (r Repairs) Names() []string {
	names := []string{}
	for _, one := range repairList() {
		if r.Has(one.Bit) {
			names = append(names, one.Name)
		}
	}
	return names
}

// String returns "all", "none", or the names of the repairs separated by commas. If fewer repairs are left out than
// included, it returns the names of those left out, each with a minus.
func (r Repairs) String() string {
	switch r {
	case AllRepairs:
		return "all"
	case 0:
		return "none"
	}
	if without := (AllRepairs &^ r).Names(); len(without) < len(r.Names()) {
		return "-" + strings.Join(without, ",-")
	}
	return strings.Join(r.Names(), ",")
}

// ParseRepairs parses "all", "none", or a list of names. A list of names with a minus means all repairs except these.
func ParseRepairs(s string) (Repairs, error) {
	switch s {
	case "all":
		return AllRepairs, nil
	case "none":
		return 0, nil
	}
	var r Repairs
	without := strings.HasPrefix(s, "-")
	for name := range strings.SplitSeq(s, ",") {
		bare := strings.TrimPrefix(name, "-")
		if (bare != name) != without {
			return 0, fmt.Errorf("%q mixes repairs to apply with repairs to omit", s)
		}
		list := repairList()
		i := slices.IndexFunc(list, func(one repair) bool { return one.Name == bare })
		if i < 0 {
			return 0, fmt.Errorf("unknown repair %q; use %s, all or none", bare, strings.Join(AllRepairs.Names(), ", "))
		}
		r |= list[i].Bit
	}
	if without {
		return AllRepairs &^ r, nil
	}
	return r, nil
}

// MarshalText returns the text that String returns.
func (r Repairs) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText sets r from the text that ParseRepairs accepts.
func (r *Repairs) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRepairs(string(text))
	return err
}

// Set parses s like ParseRepairs. With Type, it makes Repairs usable as a flag.
func (r *Repairs) Set(s string) error { return r.UnmarshalText([]byte(s)) }
func (r *Repairs) Type() string       { return "repairs" }
