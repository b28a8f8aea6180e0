package sched

import (
	"cmp"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/table"
)

// Sheets returns the plan as tables for figures and reports. They contain the times at which each of the first jobs (0
// means all) waits, sends and is updated, and the use of switches and optics by slot.
func (p *Plan) Sheets(jobs int) []table.Sheet { return []table.Sheet{p.ganttSheet(jobs), p.useSheet()} }

func (p *Plan) ganttSheet(jobs int) table.Sheet {
	if jobs == 0 || jobs > len(p.Jobs) {
		jobs = len(p.Jobs)
	}
	title := fmt.Sprintf("%s: %d jobs, CT-BTI %v, %d connections set up", p.Policy.Name, len(p.Jobs), p.Outcome.CTBTI,
		p.Outcome.Reconfigurations)
	if jobs < len(p.Jobs) {
		title += fmt.Sprintf("; the first %d jobs", jobs)
	}
	s := table.Sheet{Name: "Jobs", Title: title, Columns: []table.Column{
		{Header: "job and aggregator"}, {Header: "arrives", Unit: "s", Format: table.General}, {Header: "waits",
			Unit: "s", Format: table.General},
		{Header: "sends", Unit: "s", Format: table.General}, {Header: "update", Unit: "s", Format: table.General},
		{Header: "done", Unit: "s", Format: table.General},
	}}
	slot := p.Problem.Slot
	for i := range jobs {
		a, j := &p.Jobs[i], &p.Problem.Jobs[i]
		from, to := olaf.Duration(a.Start)*slot, olaf.Duration(a.Start+len(a.Rates))*slot
		cells := []table.Cell{table.S(j.ID + " " + cmp.Or(a.INC, "server")), table.N(j.Arrival.Seconds())}
		if a.Finish == 0 {
			cells = append(cells, table.Missing("unfinished"), table.Missing("unfinished"), table.Missing("unfinished"),
				table.Missing("unfinished"))
		} else {
			cells = append(cells, table.N((from - j.Arrival).Seconds()), table.N((to - from).Seconds()),
				table.N(max(0, a.Finish-to).Seconds()), table.N(a.Finish.Seconds()))
		}
		s.Rows = append(s.Rows, cells)
	}
	s.Charts = []table.Chart{{Kind: table.Stacked, Title: "Jobs over time", YTitle: "s", Series: []table.Series{
		{Name: "before", Column: 1, Blank: true}, {Name: "waits", Column: 2}, {Name: "sends", Column: 3},
		{Name: "update at the server", Column: 4},
	}}}
	return s
}

func (p *Plan) useSheet() table.Sheet {
	general := func(header string) table.Column { return table.Column{Header: header, Format: table.General} }
	s := table.Sheet{Name: "Use", Title: "Use of jobs, switches and ports per slot", Columns: []table.Column{
		general("time, s"), general("jobs sending"), general("aggregation places"), general("connections"),
		general("set up"),
	}}
	g := gantt{plan: p}
	sending, held, ends, setUp := make([]int, p.Slots), make([]int, p.Slots), make([]int, p.Slots), g.setUp()
	for i := range p.Jobs {
		for k, rate := range p.Jobs[i].Rates {
			if at := p.Jobs[i].Start + k; rate > 0 && at < p.Slots {
				sending[at]++
			}
		}
	}
	for i := range p.Problem.Units {
		for slot, n := range g.jobsHeld(p.Problem.Units[i].Name) {
			held[slot] += n
		}
		for slot, n := range g.ports(p.Problem.Units[i].Name) {
			ends[slot] += n
		}
	}
	for i := range p.Slots {
		s.Rows = append(s.Rows, []table.Cell{
			table.N((olaf.Duration(i) * p.Problem.Slot).Seconds()), table.I(int64(sending[i])),
			table.I(int64(held[i])), table.I(int64(ends[i] / 2)), table.I(int64(setUp[i])),
		})
	}
	c := table.Chart{Kind: table.Lines, Title: "In use", XTitle: "time, s", YTitle: "jobs or connections"}
	for k := 1; k < len(s.Columns); k++ {
		c.Series = append(c.Series, table.Series{Name: s.Columns[k].Header, Column: k})
	}
	s.Charts = []table.Chart{c}
	return s
}
