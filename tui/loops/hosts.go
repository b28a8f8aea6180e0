package loops

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// hostsPage returns the page that lists all workers and servers.
func (s *session) hostsPage() tui.Page {
	return tui.Page{
		Title: "Hosts",
		About: "Every worker and server: what it does, the updates that it has, packets sent for the first time and " +
			"again, packets received, " +
			"frames that its link lost either way, and the share of the time that the link towards the switch was busy, " +
			"now and over time.",
		Draw: s.drawHosts,
		Rows: func() list.Rows { return s.hostRows(chart.Span{}) },
		Keys: tui.Acts{keys.SortBy: tui.AsAct(func(f *tui.Frame) {
			s.order = (s.order + 1) % len(sortings)
			f.Cursor().Selected = 0
		})},
		Caption: func() string { return s.viewCaption("Hosts") },
	}
}

// sortings lists the sort orders for the hosts. All are descending.
var sortings = []struct {
	name string
	key  func(*closedloop.HostSnapshot) float64 // nil sorts in the order of jobs
}{
	{"job", nil},
	{"sent again", func(h *closedloop.HostSnapshot) float64 { return float64(h.Counts.Of("packets_resent")) }},
	{"lost", func(h *closedloop.HostSnapshot) float64 { return float64(h.Up.Lost + h.Down.Lost) }},
	{"updates", func(h *closedloop.HostSnapshot) float64 { return float64(h.Counts.Of("updates_applied")) }},
}

func (s *session) drawHosts(f *tui.Frame, r screen.Region) {
	span := s.span()
	rows := s.hostRows(span)
	inside := r.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%d hosts, by %s", rows.Len,
		sortings[s.order].name))
	f.DrawList(r, inside, tui.Listing{Columns: hostColumns(span), Rows: rows, Focused: true})
}

func hostColumns(span chart.Span) []list.Column {
	return []list.Column{
		{Name: "host", Width: 14}, {Name: "does", Width: 9}, {Name: "updates", Width: 7, Right: true},
		{Name: "sent", Width: 7, Right: true, Drop: 3},
		{Name: "again", Width: 6, Right: true}, {Name: "received", Width: 8, Right: true, Drop: 2},
		{Name: "lost", Width: 5, Right: true, Drop: 1},
		{Name: "link in use", Width: 8, Right: true}, {Name: "in use, " + span.Label(), Least: 16, Drop: 4},
	}
}

// hostRows returns rows for the hosts, with their links over a time span. The ID of a row is the host's index in the
// snapshot.
func (s *session) hostRows(span chart.Span) list.Rows {
	if s.snapshot == nil {
		return list.Rows{}
	}
	all := s.snapshot.Hosts
	var key func(i int) float64
	if of := sortings[s.order].key; of != nil {
		key = func(i int) float64 { return of(&all[i]) }
	}
	places := list.SortOrder(len(all), key)
	return list.Rows{
		Len:  len(all),
		Row:  func(i int) list.Row { return s.hostRow(&all[places[i]], places[i], span) },
		Text: func(i int) string { return all[places[i]].Name + " " + all[places[i]].Doing.String() },
	}
}

// doing maps the states of hosts to styles.
var doing = map[closedloop.Doing]screen.Style{closedloop.Talking: theme.Good, closedloop.Computing: theme.Text,
	closedloop.Applying: theme.Text, closedloop.Finished: theme.Dim}

func (s *session) hostRow(h *closedloop.HostSnapshot, place int, span chart.Span) list.Row {
	style := theme.ClusterStyle(h.Job)
	again, lost := list.Cell{Text: num.FormatCount(h.Counts.Of("packets_resent"))},
		list.Cell{Text: num.FormatCount(int64(h.Up.Lost + h.Down.Lost))}
	if h.Counts.Of("packets_resent") > 0 {
		again.Style = theme.Warn
	}
	if h.Up.Lost+h.Down.Lost > 0 {
		lost.Style = theme.Bad
	}
	return list.Row{ID: int64(place), Cells: []list.Cell{
		{Text: h.Name, Style: style}, {Text: h.Doing.String(), Style: doing[h.Doing]},
		{Text: num.FormatCount(h.Counts.Of("updates_applied"))},
		{Text: num.FormatCount(h.Counts.Of("packets_sent"))}, again,
		{Text: num.FormatCount(h.Counts.Of("packets_received"))}, lost,
		{Text: num.FormatPercent(100 * float64(h.Up.Busy))},
		{Draw: func(r screen.Region) {
			points, _ := s.line(span, func(i *Instant) float64 { return float64(i.Busy[place]) }, float64(h.Up.Busy))
			span.Sparkline(r, points, 1, style)
		}},
	}}
}
