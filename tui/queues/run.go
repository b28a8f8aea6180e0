package queues

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/aom"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/eventlog"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/loss"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/queue"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// panels is the state of the Run page: which box has the focus, and whether that box fills the page.
type panels struct {
	focus int // index into places
	zoom  bool
	area  screen.Region // the page's region when it was last drawn
}

// runPage returns the page that shows both queues side by side.
func (s *session) runPage() tui.Page {
	focus := func(step int) func(*tui.Frame) tea.Cmd {
		return tui.AsAct(func(*tui.Frame) { s.run.focus = (s.run.focus + step + len(s.places())) % len(s.places()) })
	}
	return tui.Page{
		Title: "Run",
		About: "Both queues on the same input: rates, slots in departure order (◀ is leaving, c7×22 is cluster 7 " +
			"with 22 updates merged), " +
			"the Age of Model, the fate of all updates, and the events. enter on an event or a slot shows that update's history.",
		Draw: s.drawRun,
		Rows: s.runRows,
		Open: func(_ *tui.Frame, id int64) tea.Cmd { return s.showLife(s.focusedPlace().queue, id) },
		Keys: tui.Acts{
			keys.NextPanel: focus(1),
			keys.LastPanel: focus(-1),
			keys.Maximise:  tui.AsAct(func(*tui.Frame) { s.run.zoom = !s.run.zoom }),
			keys.Filter:    func(f *tui.Frame) tea.Cmd { s.focusLog(); return f.RunDefault(keys.Filter) },
			keys.Back:      tui.AsAct(func(f *tui.Frame) { f.Cursor().Filter, s.run.zoom = "", false }),
		},
		Settle:  s.settle,
		Caption: func() string { return s.viewCaption("Queues") },
	}
}

// settle moves the focus to a list and freezes a growing log, so that its lines do not move.
func (s *session) settle(f *tui.Frame) {
	if s.focusedPlace().panel != panelQueue {
		s.focusLog()
	}
	if s.snapshot != nil && s.snapshot.State == slowmotion.Running && !f.Frozen() {
		f.Freeze(true)
		f.ShowNote("view frozen; " + f.Key(keys.Freeze) + " goes on")
	}
}

// focusLog moves the focus to the log of the focused queue, if there is a log.
func (s *session) focusLog() {
	queue := s.focusedPlace().queue
	for i, p := range s.places() {
		if p.panel == panelLog && p.queue == queue {
			s.run.focus = i
		}
	}
}

// runRows returns the events of the focused queue or, if the slots have the focus, its slots.
func (s *session) runRows() list.Rows {
	p := s.focusedPlace()
	q := s.queue(p.queue)
	switch {
	case q == nil:
		return list.Rows{}
	case p.panel == panelQueue:
		return list.Rows{Len: len(q.Items), Row: func(i int) list.Row { return list.Row{ID: q.Items[i].Update} }}
	}
	return eventlog.LogRows(q, s.snapshot.End)
}

// ratesRows is the height of the line with the rates, which is above the panels.
const ratesRows = 1

// drawRun draws the panels of each queue in a column or, if a panel is maximised, this panel for each queue. All
// columns have the same axes.
func (s *session) drawRun(f *tui.Frame, r screen.Region) {
	s.drawGauges(r.Sub(0, 0, r.W, ratesRows))
	r = r.Sub(0, ratesRows, r.W, r.H-ratesRows)
	s.run.area = r
	span := s.span()
	shared := axes{span, aom.MaxMeanAge(s.snapshot, span, s.reading), aom.MaxSawtooth(s.snapshot, span)}
	focus, n := 0, len(s.snapshot.Queues)
	for i := range n {
		part := r.Column(i, n)
		if s.run.zoom {
			p := s.focusedPlace().panel
			s.drawPanel(f, part, place{p, i}, i*int(panelKinds)+int(p), shared)
			continue
		}
		y := 0
		for _, row := range arrangePanels(r.W/n, r.H) {
			for j, p := range row.panels {
				box := part.Sub(0, y, part.W, row.height).Column(j, len(row.panels))
				s.drawPanel(f, box, place{p, i}, focus, shared)
				focus++
			}
			y += row.height
		}
	}
}

// drawGauges draws the input and output rates. Each queue has a column.
func (s *session) drawGauges(r screen.Region) {
	n := len(s.snapshot.Queues)
	line := float64(s.snapshot.Plan.Spec.Workload.LineRate)
	for i := range n {
		q, c := &s.snapshot.Queues[i], r.Column(i, n)
		bar := max((c.W-34)/2, 0)
		x := c.Text(1, 0, theme.Dim, "in ")
		chart.DrawGauge(c.Sub(x, 0, bar, 1), q.InRate, line, theme.Text)
		x = c.Text(x+bar, 0, theme.Text, fmt.Sprintf(" %-9s", num.FormatRate(q.InRate)))
		x = c.Text(x+1, 0, theme.Dim, "out ")
		chart.DrawGauge(c.Sub(x, 0, bar, 1), q.OutputRate, float64(q.OutRate), theme.QueueStyle(i))
		c.Text(x+bar, 0, theme.Text, " "+num.FormatRate(q.OutputRate))
	}
}

// titleMargin is the part of the width of a box that its title cannot use. It consists of the corners, and of a line
// and a space on either side.
const titleMargin = 6

// axes contains the axes that the charts for all queues share.
type axes struct {
	span        chart.Span
	top, sawTop float64
}

func (s *session) drawPanel(f *tui.Frame, r screen.Region, p place, focus int, a axes) {
	q := &s.snapshot.Queues[p.queue]
	focused := s.focusedPlace() == p
	frame, border, title := screen.Thin, theme.Border, theme.QueueStyle(p.queue)
	if focused {
		frame, border = screen.Heavy, theme.Focus
	}
	if p.panel != panelQueue {
		title = theme.Title
	}
	inside := r.Box(frame, border, title, s.panelTitle(f, p.panel, q, r.W-titleMargin))
	click := func() { s.run.focus = focus }
	if p.panel == panelLog {
		f.DrawList(r, inside, tui.Listing{Columns: eventlog.LogColumns(inside.H), Rows: eventlog.LogRows(q,
			s.snapshot.End), Focused: focused, Click: click})
		return
	}
	f.AddHit(r, func(int, int) tea.Cmd { click(); return nil })
	switch p.panel {
	case panelQueue:
		selected := -1
		if focused && (f.Frozen() || s.snapshot.State != slowmotion.Running) {
			selected = min(f.Cursor().Selected, len(q.Items)-1)
		}
		queue.Draw(inside, q, s.snapshot.Sampled, selected)
	case panelAoM:
		aom.DrawMean(inside, s.snapshot, p.queue, a.span, a.top, s.reading, theme.QueueStyle(p.queue))
	case panelSaw:
		aom.DrawSawtooth(inside, s.snapshot, p.queue, a.span, a.sawTop, theme.ClusterStyle(int(s.snapshot.Watched)))
	case panelLoss:
		drawFates(inside, q, a.span)
	case panelCDF:
		s.drawAggregations(inside, q, theme.QueueStyle(p.queue))
	case panelCounters:
		loss.DrawCounters(inside, q)
	}
}

// overTime is the minimum height at which the panel with fates also shows drops over time.
const overTime = 8

func drawFates(r screen.Region, q *slowmotion.QueueSnapshot, span chart.Span) {
	if r.H < overTime {
		loss.Draw(r, q)
		return
	}
	loss.Draw(r.Sub(0, 0, r.W, r.H-2), q)
	drops := loss.DropsOverTime(q, span.From, span.To, r.W)
	most := 0.0
	for _, n := range drops {
		most = max(most, n)
	}
	r.Text(0, r.H-2, theme.Dim, fmt.Sprintf("dropped, at most %s a column, %s", num.FormatCount(int64(most)),
		span.Label()))
	chart.DrawColumns(r.Sub(0, r.H-1, r.W, 1), drops, most, theme.Bad)
}

// drawAggregations draws the CDF of aggregations. If the panel is maximised, it also draws the histogram next to the
// CDF.
func (s *session) drawAggregations(r screen.Region, q *slowmotion.QueueSnapshot, style screen.Style) {
	if !s.run.zoom || r.H < 3 {
		chart.CDF(r, q.Merges, style)
		return
	}
	left, right := r.Column(0, 2), r.Column(1, 2)
	left.Text(0, 0, theme.Dim, "at most so many")
	chart.CDF(left.Sub(0, 1, left.W-1, left.H-1), q.Merges, style)
	right.Text(0, 0, theme.Dim, "exactly so many")
	chart.DrawHistogram(right.Sub(0, 1, right.W, right.H-1), q.Merges, style)
}

// answersTitle returns the title for a queue that sends its sums to the workers.
func answersTitle(q *slowmotion.QueueSnapshot, width int) string {
	full := fmt.Sprintf("%s, %d sums on their way to workers at %v", q.Name, q.OnTheWay, q.OutRate)
	if screen.TextWidth(full) <= width {
		return full
	}
	return fmt.Sprintf("%s, %d on their way", q.Name, q.OnTheWay)
}

func (s *session) panelTitle(f *tui.Frame, p panel, q *slowmotion.QueueSnapshot, width int) string {
	switch p {
	case panelQueue:
		if q.Answers {
			return answersTitle(q, width)
		}
		if full := fmt.Sprintf("%s, %d slots, out at %v", q.Name, q.Slots, q.OutRate); screen.TextWidth(full) <= width {
			return full
		}
		return fmt.Sprintf("%s at %v", q.Name, q.OutRate)
	case panelAoM:
		return aom.FormatTitle(q, s.reading, width)
	case panelSaw:
		return fmt.Sprintf("AoM of cluster %d (%s: next)", s.snapshot.Watched, f.Key(keys.Watch))
	case panelLoss:
		return fmt.Sprintf("fate of %s sent", num.FormatCount(q.Counters.SumOffered()))
	case panelCDF:
		return "CDF of aggregations"
	case panelCounters:
		return "counters (registers)"
	}
	return fmt.Sprintf("events, newest first (%s)", num.FormatCount(q.Events))
}
