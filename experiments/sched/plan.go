package sched

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
)

// PlanSchema is the schema name in the JSON form of a Plan.
const PlanSchema = "olafctl.schedule/v1"

// ErrPlan is matched by errors in a plan document, such as invalid JSON, another schema or an invalid problem. Errors
// in a well-formed plan are found by CheckPlan.
var ErrPlan = olaf.NewError(olaf.Usage, "bad plan")

// Plan contains the aggregator, the slots and the rates of every job, and the connections between units in every slot.
type Plan struct {
	Schema      string       `json:"schema"`
	Policy      Policy       `json:"policy"`
	Problem     *Problem     `json:"problem"`
	Slots       int          `json:"slots"` // number of slots in which a job sends, or before its arrival
	Jobs        []Assignment `json:"jobs"`  // in the order of the problem's jobs
	Connections []Change     `json:"connections"`
	Outcome     Outcome      `json:"outcome"`
	Proof       *Proof       `json:"proof,omitempty"` // for a solver's plan
}

// Policy names the method by which a plan was made and the repairs that it used.
type Policy struct {
	Name    string  `json:"name"` // tw, fcfs or milp; any other name for a foreign plan
	Repairs Repairs `json:"repairs"`
}

// Assignment is the part of a plan that concerns one job.
type Assignment struct {
	Job string `json:"job"`
	// INC is the unit whose switch aggregates; empty for the job's parameter server.
	INC string `json:"inc,omitempty"`
	// Start is the slot of the first rate.
	Start int `json:"start_slot"`
	// Rates are each worker's rates in bit/s, slot by slot; empty for a job that is never served.
	Rates  []float64     `json:"rates_bps"`
	Finish olaf.Duration `json:"finish"` // with the server's update, since time 0; 0s for an unfinished job
}

// Change sets the number of connections between two units from a slot on.
type Change struct {
	Slot    int       `json:"slot"`
	Between [2]string `json:"between"`
	Count   int       `json:"count"`
}

// Outcome contains the results of a plan, as computed by the program that made the plan.
type Outcome struct {
	CTBTI            olaf.Duration `json:"ct_bti"`           // first arrival until last finish, for the finished jobs only
	TotalJCT         olaf.Duration `json:"total_jct"`        // arrival to finish, summed over the finished jobs
	Reconfigurations int           `json:"reconfigurations"` // connections set up
	Unfinished       []string      `json:"unfinished,omitempty"`
}

// MeanJCT returns the mean time from arrival to finish over those of the given number of jobs that finished.
func (o *Outcome) MeanJCT(jobs int) olaf.Duration {
	if n := jobs - len(o.Unfinished); n > 0 {
		return o.TotalJCT / olaf.Duration(n)
	}
	return 0
}

// Proof is a solver's result about the smallest CT-BTI.
type Proof struct {
	Solver string `json:"solver"`
	Status Status `json:"status"`
	// Bound is a lower bound on the CT-BTI of any schedule in this model, if the solver is right.
	Bound olaf.Duration `json:"bound"`
	// GapPct is an upper bound on the plan's distance from the optimum: 100·(CT-BTI − bound)/CT-BTI.
	GapPct float64 `json:"gap_pct"`
	// From names the policy whose plan is the result because the solver found no better one in time; otherwise
	// empty.
	From string `json:"from,omitempty"`
}

// Status describes how a search ended.
type Status string

// Ways a search can end.
const (
	Optimal Status = "optimal"    // bound and plan agree
	Within  Status = "within gap" // bound and plan are within the requested gap
	Limited Status = "time limit" // neither; the search stopped at the time limit
)

// ParsePlan parses a plan. name is used in messages. The error matches ErrPlan or, for an error in the problem that the
// plan contains, ErrProblem.
func ParsePlan(name string, text []byte) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%w: %s%s: %w", ErrPlan, name, lineOf(text, err), err)
	}
	switch {
	case p.Schema != PlanSchema:
		return nil, fmt.Errorf("%w: %s: schema %q is not %s", ErrPlan, name, p.Schema, PlanSchema)
	case p.Problem == nil:
		return nil, fmt.Errorf("%w: %s: it has no problem section, so the network and the jobs are unknown", ErrPlan,
			name)
	}
	p.Problem.File = name
	if err := p.Problem.Check(); err != nil {
		return nil, err
	}
	p.order()
	return p, nil
}

// order sorts the assignments in the order of the problem's jobs. Assignments to unknown jobs come last.
func (p *Plan) order() {
	place := make(map[string]int, len(p.Problem.Jobs))
	for i := range p.Problem.Jobs {
		place[p.Problem.Jobs[i].ID] = i
	}
	of := func(a Assignment) int {
		if i, known := place[a.Job]; known {
			return i
		}
		return len(place)
	}
	slices.SortStableFunc(p.Jobs, func(a, b Assignment) int { return of(a) - of(b) })
}

// lineOf returns the line of a JSON error, in the form ":LINE".
func lineOf(text []byte, err error) string {
	offset := int64(-1)
	switch e := err.(type) {
	case *json.SyntaxError:
		offset = e.Offset
	case *json.UnmarshalTypeError:
		offset = e.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return ""
	}
	return fmt.Sprintf(":%d", 1+bytes.Count(text[:offset], []byte("\n")))
}

// Differences returns descriptions of up to five differences between two problems. It returns none if they are equal.
// It is used to detect a plan for another network.
func Differences(a, b *Problem) []string {
	var d differences
	d.add("slot", a.Slot, b.Slot)
	d.add("reconfiguration", a.Reconfiguration, b.Reconfiguration)
	d.add("port_rate", a.PortRate, b.PortRate)
	d.add("server_rate", a.ServerRate, b.ServerRate)
	d.add("half_duplex", a.HalfDuplex, b.HalfDuplex)
	d.add("partial_inc", a.PartialINC, b.PartialINC)
	d.add("fixed", a.Fixed, b.Fixed)
	d.add("units", len(a.Units), len(b.Units))
	d.add("jobs", len(a.Jobs), len(b.Jobs))
	d.add("connections before slot 0", initial(a), initial(b))
	d.units(a, b)
	d.jobs(a, b)
	return d
}

// differences collects descriptions of differences.
type differences []string

func (d *differences) add(what string, x, y any) {
	if x != y && len(*d) < 5 {
		*d = append(*d, fmt.Sprintf("%s: %v and %v", what, x, y))
	}
}

func (d *differences) units(a, b *Problem) {
	units := map[string]*Unit{}
	for i := range a.Units {
		units[a.Units[i].Name] = &a.Units[i]
	}
	for i := range b.Units {
		y := &b.Units[i]
		x := units[y.Name]
		if x == nil {
			d.add("unit "+y.Name, "none", "one")
			continue
		}
		d.add("ports of "+y.Name, x.Ports, y.Ports)
		d.add("inc of "+y.Name, x.INC, y.INC)
		d.add("switch_rate of "+y.Name, x.SwitchRate, y.SwitchRate)
		d.add("memory of "+y.Name, x.Memory, y.Memory)
	}
}

func (d *differences) jobs(a, b *Problem) {
	jobs := map[string]*Job{}
	for i := range a.Jobs {
		jobs[a.Jobs[i].ID] = &a.Jobs[i]
	}
	for i := range b.Jobs {
		y := &b.Jobs[i]
		x := jobs[y.ID]
		if x == nil {
			d.add("job "+y.ID, "none", "one")
			continue
		}
		d.add("arrival of "+y.ID, x.Arrival, y.Arrival)
		d.add("volume of "+y.ID, x.Volume, y.Volume)
		d.add("update of "+y.ID, x.Update, y.Update)
		d.add("workers of "+y.ID, fmt.Sprint(x.Workers), fmt.Sprint(y.Workers))
		d.add("server of "+y.ID, x.Server, y.Server)
		d.add("server_only of "+y.ID, x.ServerOnly, y.ServerOnly)
		d.add("segment of "+y.ID, x.Segment, y.Segment)
	}
}

// initial formats the connections before slot 0. The text does not depend on their order.
func initial(p *Problem) string {
	count := map[string]int{}
	for _, c := range p.Connections {
		pair := orderPair(c.Between[0], c.Between[1])
		count[pair[0]+"–"+pair[1]] += c.Count
	}
	return fmt.Sprint(count)
}
