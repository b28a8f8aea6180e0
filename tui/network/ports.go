package network

import (
	"fmt"
	"strconv"

	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// portsPage returns the page that shows the ports over time.
func (s *session) portsPage() tui.Page {
	return tui.Page{
		Title: "Ports",
		About: "Every port: slots in use, frames that left, updates that joined one in the queue or were dropped, and " +
			"the share of the time its link was sending. " +
			"Over time, the slots in use, to one scale for every port; below, the selected one.",
		Draw:    s.drawPorts,
		Rows:    func() list.Rows { return s.portRows(chart.Span{}) },
		Caption: func() string { return s.viewCaption("Ports") },
	}
}

// portTall is the maximum height of a port in lines.
const portTall = 4

func (s *session) drawPorts(f *tui.Frame, r screen.Region) {
	span := s.span()
	rows := s.portRows(span)
	rows.Tall = portTall
	listing, below := list.SplitPage(r, portTall*rows.Len)
	inside := listing.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%d ports, frames since the start",
		rows.Len))
	f.DrawList(listing, inside, tui.Listing{Columns: portColumns(span), Rows: rows, Focused: true})
	row, ok := f.SelectedRow()
	if !ok || below.H == 0 {
		return
	}
	s.drawPort(below, int(row.ID), span)
}

// drawPort draws a port's slots in use and its drops over time.
func (s *session) drawPort(r screen.Region, place int, span chart.Span) {
	p := &s.snapshot.Ports[place]
	left, right := r.Column(0, 2), r.Column(1, 2)
	axes := span.Axes(float64(p.Slots))
	axes.Y = func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	inside := left.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%s: %d slots in use", p.Port, p.Occupancy))
	chart.DrawLines(inside, axes, chart.Line{Points: s.occupancySeries(p, place, span), Style: theme.Subject})

	drops, most := s.dropsOverTime(place, span, right.W-2)
	inside = right.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%s: %s frames dropped", p.Port,
		num.FormatCount(int64(p.Values.Of("dropped")))))
	inside.Text(0, 0, theme.Dim, fmt.Sprintf("at most %s a column, %s", num.FormatCount(int64(most)), span.Label()))
	chart.DrawColumns(inside.Sub(0, 1, inside.W, inside.H-1), drops, most, theme.Bad)
}

func portColumns(span chart.Span) []list.Column {
	return []list.Column{
		{Name: "port", Width: 14}, {Name: "waiting", Width: 10, Drop: 2}, {Name: "slots", Width: 5, Right: true},
		{Name: "left", Width: 6, Right: true, Drop: 4},
		{Name: "merged", Width: 6, Right: true, Drop: 3}, {Name: "dropped", Width: 7, Right: true},
		{Name: "link in use", Width: 8, Right: true},
		{Name: "slots in use, " + span.Label(), Least: 16, Drop: 5},
	}
}

// portRows returns rows for the ports, with their history over a time span. The ID of a row is the port's index in the
// snapshot.
func (s *session) portRows(span chart.Span) list.Rows {
	if s.snapshot == nil {
		return list.Rows{}
	}
	ports := s.snapshot.Ports
	return list.Rows{
		Len: len(ports), Tall: portsMost,
		Row:  func(i int) list.Row { return s.portRow(&ports[i], i, span) },
		Text: func(i int) string { return ports[i].Port },
	}
}

func (s *session) portRow(p *netsim.PortSnapshot, place int, span chart.Span) list.Row {
	fill, drops := theme.Good, theme.Text
	if p.Occupancy >= p.Slots {
		fill = theme.Warn
	}
	if p.Values.Of("dropped") > 0 {
		drops = theme.Bad
	}
	use := list.Cell{Text: num.FormatPercent(100 * float64(p.Values.Of("utilisation")))}
	if p.Down {
		use = list.Cell{Text: "link down", Style: theme.Bad}
	}
	return list.Row{ID: int64(place), Cells: []list.Cell{
		{Text: p.Port},
		{Draw: func(r screen.Region) { chart.DrawGauge(r, float64(p.Occupancy), float64(p.Slots), fill) }},
		{Text: fmt.Sprintf("%d/%d", p.Occupancy, p.Slots)}, {Text: num.FormatCount(int64(p.Values.Of("left")))},
		{Text: num.FormatCount(int64(p.Values.Of("aggregated") + p.Values.Of("replaced")))},
		{Text: num.FormatCount(int64(p.Values.Of("dropped"))), Style: drops}, use,
		{Draw: func(r screen.Region) { span.Sparkline(r, s.occupancySeries(p, place, span), float64(p.Slots), fill) }},
	}}
}

// occupancySeries returns the number of a port's slots in use over time, up to the current instant.
func (s *session) occupancySeries(p *netsim.PortSnapshot, place int, span chart.Span) []chart.Point {
	var points []chart.Point
	for i := range s.history.Instants {
		at := &s.history.Instants[i]
		if then := at.findPort(p.Port, place); then != nil && span.Contains(at.At) && at.At < s.snapshot.Now {
			points = append(points, chart.PointAt(at.At, float64(then.Occupancy)))
		}
	}
	return append(points, chart.PointAt(s.snapshot.Now, float64(p.Occupancy)))
}

// dropsOverTime divides a time span into n equal parts and returns a port's drops in each part and their maximum.
func (s *session) dropsOverTime(place int, span chart.Span, n int) (parts []float64, most float64) {
	parts = make([]float64, max(n, 0))
	p := &s.snapshot.Ports[place]
	before, last := uint64(0), span.From
	add := func(i *Instant, dropped uint64) {
		if i.At > span.From && i.At <= span.To && n > 0 && i.At > last {
			part := min(int(float64(i.At-span.From)/float64(span.To-span.From)*float64(n)), n-1)
			parts[part] += float64(dropped - before)
			most = max(most, parts[part])
			last = i.At
		}
		before = dropped
	}
	for i := range s.history.Instants {
		if at := &s.history.Instants[i]; at.At < s.snapshot.Now {
			if then := at.findPort(p.Port, place); then != nil {
				add(at, then.Dropped)
			}
		}
	}
	add(&Instant{At: s.snapshot.Now}, uint64(p.Values.Of("dropped")))
	return parts, most
}
