// Package schedule contains the dashboard pages for a plan. They show the jobs over time and the state of the units'
// switches and optical links. The user steps through the slots.
package schedule

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// session is the state of the pages: the plan and the selected slot.
type session struct {
	plan   *sched.Plan
	lines  []string // lines of the checker's output
	broken bool
	slot   int
}

// New returns a dashboard for a plan. lines is the output of the checker. broken means that the plan breaks rules.
func New(plan *sched.Plan, lines []string, broken bool) tui.Dashboard {
	s := &session{plan: plan, lines: lines, broken: broken}
	const still = "a plan does not play; . and , step through its slots"
	without := map[keys.Action]string{
		keys.Pause: still, keys.Faster: still, keys.Slower: still, keys.FullSpeed: still, keys.RealTime: still,
		keys.Rerun: "plan again with 'olafctl schedule plan'",
		keys.Stop:  "nothing runs", keys.NextPanel: "no panels here; every page is one",
		keys.LastPanel: "no panels here; every page is one", keys.Maximise: "no panels here; every page is one",
		keys.Workbook: "'olafctl schedule sweep --xlsx' writes a workbook",
		keys.Figures:  "'olafctl schedule show PLAN --svg FOLDER' draws figures",
		keys.Reading:  "a plan has no ages", keys.Window: "a plan is shown whole", keys.Watch: "a plan is shown whole",
	}
	return tui.Dashboard{
		Subject: s, Pages: []tui.Page{s.jobsPage(), s.unitsPage(), s.checkPage()}, Without: without,
		Leaving: "Quitting ends nothing.",
		Instead: "without --tui, schedule show prints the plan",
		Keys: tui.Acts{
			keys.Step:     tui.AsAct(func(*tui.Frame) { s.slot = min(s.slot+1, s.plan.Slots-1) }),
			keys.StepBack: tui.AsAct(func(*tui.Frame) { s.slot = max(s.slot-1, 0) }),
		},
	}
}

// Look implements tui.Subject.
func (s *session) Look(time.Time) tea.Cmd { return nil }

// Status implements tui.Subject.
func (s *session) Status() tui.Status {
	o := &s.plan.Outcome
	verdict := screen.Phrase{Text: "every rule is kept", Style: theme.Dim}
	if s.broken {
		verdict = screen.Phrase{Text: "breaks rules", Style: theme.Strong}
	}
	return tui.Status{
		State: tui.Done, Now: olaf.Time(s.slotStart()), End: olaf.Time(s.plan.Problem.Slot) * olaf.Time(s.plan.Slots),
		Left: -1,
		Head: []screen.Phrase{
			{Text: s.plan.Policy.Name, Style: theme.Strong}, {Text: fmt.Sprintf("slot %d of %d", s.slot, s.plan.Slots),
				Style: theme.Text},
			{Text: fmt.Sprintf("%d jobs, CT-BTI %v, %d set up", len(s.plan.Jobs), o.CTBTI, o.Reconfigurations),
				Style: theme.Dim}, verdict,
		},
	}
}

func (s *session) slotStart() olaf.Duration { return olaf.Duration(s.slot) * s.plan.Problem.Slot }

// Seek implements tui.Subject.
func (s *session) Seek(to olaf.Time) string {
	s.slot = int(min(max(to/olaf.Time(s.plan.Problem.Slot), 0), olaf.Time(s.plan.Slots-1)))
	return ""
}

// barWidth is the width of the timeline of a plan in columns.
const barWidth = 40

func (s *session) jobsPage() tui.Page {
	bars := s.plan.Bars(barWidth)
	rows := func() list.Rows {
		return list.Rows{Len: len(s.plan.Jobs), Row: func(i int) list.Row {
			a := &s.plan.Jobs[i]
			by, doing := "server", "waits"
			if a.INC != "" {
				by = a.INC
			}
			switch n := s.slot - a.Start; {
			case s.slotStart() < s.plan.Problem.Jobs[i].Arrival:
				doing = "not here"
			case n >= len(a.Rates):
				doing = "done"
			case n >= 0 && a.Rates[n] > 0:
				doing = fmt.Sprintf("%.1f Gbps", a.Rates[n]/1e9)
			}
			return list.Row{ID: int64(i), Cells: []list.Cell{{Text: a.Job}, {Text: by}, {Text: doing},
				{Text: a.Finish.String()}, {Text: bars[i]}}}
		}}
	}
	columns := []list.Column{{Name: "job", Width: 8}, {Name: "sums", Width: 8}, {Name: "in this slot", Width: 12},
		{Name: "done", Width: 8, Right: true}, {Name: "· waits, █ sends", Least: 10, Drop: 1}}
	return tui.Page{
		Title: "Jobs", About: "Every job of the plan: who sums its gradients, what it does in the slot that is looked " +
			"at, when it is done, and its time line. . and , step through the slots.",
		Rows: rows,
		Draw: func(f *tui.Frame, r screen.Region) {
			f.DrawList(r, r.Box(screen.Thin, theme.Border, theme.Title, "jobs"), tui.Listing{Columns: columns,
				Rows: rows(), Focused: true})
		},
	}
}

func (s *session) unitsPage() tui.Page {
	rows := func() list.Rows {
		return list.Rows{Len: len(s.plan.Problem.Units), Row: func(i int) list.Row {
			u := &s.plan.Problem.Units[i]
			held, jobs := 0, []string{}
			for k := range s.plan.Jobs {
				if a := &s.plan.Jobs[k]; a.INC == u.Name && s.slot >= a.Start && s.slot < a.Start+len(a.Rates) {
					held++
					jobs = append(jobs, a.Job)
				}
			}
			return list.Row{ID: int64(i), Cells: []list.Cell{
				{Text: u.Name}, {Text: fmt.Sprintf("%d of %d", held, u.INC)},
				{Text: fmt.Sprintf("%d of %d", s.plan.ConnectedPorts(u.Name, s.slot), u.Ports)}, {Text: strings.Join(jobs, " ")},
			}}
		}}
	}
	columns := []list.Column{{Name: "unit", Width: 8}, {Name: "places held", Width: 11, Right: true},
		{Name: "ports connected", Width: 15, Right: true}, {Name: "aggregates for", Least: 8, Drop: 1}}
	return tui.Page{
		Title: "Units", About: "Every unit in the shown slot: switch slots in use, connected optical ports, and jobs it aggregates for.",
		Rows: rows,
		Draw: func(f *tui.Frame, r screen.Region) {
			f.DrawList(r, r.Box(screen.Thin, theme.Border, theme.Title, "units"), tui.Listing{Columns: columns,
				Rows: rows(), Focused: true})
		},
	}
}

func (s *session) checkPage() tui.Page {
	return tui.Page{
		Title: "Check", About: "What the plan achieves, and the result of the independent checker.",
		Draw: func(_ *tui.Frame, r screen.Region) {
			inside := r.Box(screen.Thin, theme.Border, theme.Title, "check")
			for i, text := range s.lines {
				inside.Text(1, i, theme.Text, text)
			}
		},
	}
}
