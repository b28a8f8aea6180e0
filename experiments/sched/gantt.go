package sched

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Gantt draws a plan as text, with at most the given numbers of time columns and jobs (0 means all). Rows show when
// each job waits (·), sends (█) and is done, then for each unit the jobs in its switch and its connected ports, and
// finally the new connections. A column stands for one slot or for several slots, of which the busiest is shown.
func (p *Plan) Gantt(w io.Writer, columns, jobs int) error {
	g := p.newGantt(columns)
	width := 4
	for i := range p.Jobs {
		width = max(width, len(p.Jobs[i].Job))
	}
	for i := range p.Problem.Units {
		width = max(width, len(p.Problem.Units[i].Name)+6)
	}
	var b strings.Builder
	scale := "one column is a slot of " + p.Problem.Slot.String()
	if g.per > 1 {
		scale = fmt.Sprintf("one column is %d slots of %v", g.per, p.Problem.Slot)
	}
	fmt.Fprintf(&b, "%s; · waits, █ sends\n", scale)
	for i := range p.Jobs {
		if jobs > 0 && i == jobs {
			fmt.Fprintf(&b, "and %d more jobs; use --all to draw them\n", len(p.Jobs)-jobs)
			break
		}
		a := &p.Jobs[i]
		fmt.Fprintf(&b, "%-*s  %-8s |%s| %s\n", width, a.Job, cmp.Or(a.INC, "server"), g.job(a), finishText(a))
	}
	for i := range p.Problem.Units {
		u := &p.Problem.Units[i]
		if u.INC > 0 {
			fmt.Fprintf(&b, "%-*s  of %-5d |%s|\n", width, u.Name+" inc", u.INC, g.digits(g.jobsHeld(u.Name)))
		}
		fmt.Fprintf(&b, "%-*s  of %-5d |%s|\n", width, u.Name+" ports", u.Ports, g.digits(g.ports(u.Name)))
	}
	fmt.Fprintf(&b, "%-*s  %-8d |%s|\n", width, "set up", p.Outcome.Reconfigurations, g.digits(g.setUp()))
	_, err := io.WriteString(w, b.String())
	return err
}

// Bars returns the time lines of the jobs, in order, with at most the given number of columns. A job that waits is
// drawn as ·, and a job that sends as █.
func (p *Plan) Bars(columns int) []string {
	g := p.newGantt(columns)
	bars := make([]string, len(p.Jobs))
	for i := range bars {
		bars[i] = g.job(&p.Jobs[i])
	}
	return bars
}

// ConnectedPorts returns the number of ports that a unit has connected in a slot.
func (p *Plan) ConnectedPorts(unit string, slot int) int {
	g := gantt{plan: p}
	return g.ports(unit)[slot]
}

func finishText(a *Assignment) string {
	if a.Finish == 0 {
		return "unfinished"
	}
	return a.Finish.String()
}

// gantt contains a plan and the scale of its Gantt chart.
type gantt struct {
	plan         *Plan
	per, columns int
}

// newGantt returns a chart with at most the given number of columns.
func (p *Plan) newGantt(columns int) gantt {
	columns = max(1, min(columns, p.Slots))
	per := max(1, (p.Slots+columns-1)/columns)
	return gantt{plan: p, per: per, columns: (p.Slots + per - 1) / per}
}

func (g *gantt) job(a *Assignment) string {
	row := []rune(strings.Repeat(" ", g.columns))
	arrives := 0
	for i := range g.plan.Problem.Jobs {
		if j := &g.plan.Problem.Jobs[i]; j.ID == a.Job {
			arrives = j.ArrivalSlot(g.plan.Problem.Slot)
		}
	}
	mark := func(slot int, r rune) {
		if k := slot / g.per; slot >= 0 && k < len(row) && row[k] != '█' {
			row[k] = r
		}
	}
	for slot := arrives; slot < a.Start; slot++ {
		mark(slot, '·')
	}
	for k, rate := range a.Rates {
		if rate > 0 {
			mark(a.Start+k, '█')
		} else {
			mark(a.Start+k, '·')
		}
	}
	return string(row)
}

// digits draws one character per column: the count as a digit, + for a count above 9, and a space for 0.
func (g *gantt) digits(counts []int) string {
	row := []rune(strings.Repeat(" ", g.columns))
	most := make([]int, g.columns)
	for slot, n := range counts {
		most[slot/g.per] = max(most[slot/g.per], n)
	}
	for k, n := range most {
		switch {
		case n > 9:
			row[k] = '+'
		case n > 0:
			row[k] = rune(strconv.Itoa(n)[0])
		}
	}
	return string(row)
}

// jobsHeld returns, for each slot, the number of jobs in a unit's switch.
func (g *gantt) jobsHeld(unit string) []int {
	counts := make([]int, g.plan.Slots)
	for i := range g.plan.Jobs {
		if a := &g.plan.Jobs[i]; a.INC == unit {
			for k := range a.Rates {
				counts[a.Start+k]++
			}
		}
	}
	return counts
}

// ports returns, for each slot, the number of connected ports of a unit.
func (g *gantt) ports(unit string) []int {
	change := make([]int, g.plan.Slots)
	g.eachChange(func(pair [2]string, slot, more int) {
		if pair[0] == unit || pair[1] == unit {
			change[max(slot, 0)] += more
		}
	})
	for i := 1; i < len(change); i++ {
		change[i] += change[i-1]
	}
	return change
}

// setUp returns, for each slot, the number of connections that are set up.
func (g *gantt) setUp() []int {
	counts := make([]int, g.plan.Slots)
	g.eachChange(func(_ [2]string, slot, more int) {
		if slot >= 0 {
			counts[slot] += max(0, more)
		}
	})
	return counts
}

// eachChange calls f for every change in the number of connections. The slot is −1 for connections before slot 0.
func (g *gantt) eachChange(f func(pair [2]string, slot, more int)) {
	live := map[[2]string]int{}
	for _, c := range g.plan.Problem.Connections {
		pair := orderPair(c.Between[0], c.Between[1])
		live[pair] += c.Count
		f(pair, -1, c.Count)
	}
	for _, c := range g.plan.Connections {
		pair := orderPair(c.Between[0], c.Between[1])
		f(pair, c.Slot, c.Count-live[pair])
		live[pair] = c.Count
	}
}
