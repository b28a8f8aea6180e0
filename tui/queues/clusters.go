package queues

import (
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/aom"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// clustersPage returns the page that compares the clusters. The queues are side by side if there is room.
func (s *session) clustersPage() tui.Page {
	return tui.Page{
		Title: "Clusters",
		About: "What became of every cluster's updates, and how old its model is: now, on average from its first " +
			"delivery to its last, just before a delivery (peak), " +
			"and over time, on the axis of the chart below. Both queues have the same order. A cluster is done when no " +
			"more of its updates can arrive. The chart is the sawtooth of the watched cluster (◎), which enter chooses.",
		Draw: s.drawClusters,
		Rows: func() list.Rows { return s.clusterRows(0, chart.Span{}, 0) },
		Open: func(f *tui.Frame, id int64) tea.Cmd {
			s.options.Source.Do(slowmotion.Watch{Cluster: olaf.ClusterID(id)})
			f.ShowNote(fmt.Sprintf("cluster %d is watched, here and on the Run page", id))
			return nil
		},
		Keys:    tui.Acts{keys.SortBy: tui.AsAct(func(*tui.Frame) { s.order = (s.order + 1) % len(sortings) })},
		Caption: func() string { return s.viewCaption("Clusters") },
	}
}

var clusterColumns = []list.Column{
	{Name: "cluster", Width: 7}, {Name: "AoM now", Width: 7, Right: true, Drop: 2}, {Name: "mean", Width: 7,
		Right: true}, {Name: "peak", Width: 7, Right: true, Drop: 5},
	{Name: "lost", Width: 7, Right: true, Drop: 1}, {Name: "merged", Width: 6, Right: true, Drop: 3},
	{Name: "dropped", Width: 6, Right: true, Drop: 6},
	{Name: "sent", Width: 5, Right: true, Drop: 7}, {Name: "delivered", Width: 6, Right: true, Drop: 8},
	{Least: 12, Drop: 4},
}

// clusterHeads returns the columns. The last heading shows the scale.
func clusterHeads(top float64) []list.Column {
	columns := slices.Clone(clusterColumns)
	columns[len(columns)-1].Name = "to " + num.FormatNS(top)
	return columns
}

// sortings lists the sort orders for the clusters. All are descending.
var sortings = []struct {
	name string
	key  func(*slowmotion.ClusterSnapshot, olaf.Reading) float64 // nil sorts in the order of ids
}{
	{"id", nil},
	{"AoM now", func(c *slowmotion.ClusterSnapshot, r olaf.Reading) float64 { return float64(c.AoM[r]) }},
	{"mean AoM", func(c *slowmotion.ClusterSnapshot, r olaf.Reading) float64 { return float64(c.Mean[r]) }},
	{"peak AoM", func(c *slowmotion.ClusterSnapshot, _ olaf.Reading) float64 { return float64(c.Peak) }},
	{"lost", func(c *slowmotion.ClusterSnapshot, _ olaf.Reading) float64 { return c.LostPct() }},
	{"merged", func(c *slowmotion.ClusterSnapshot, _ olaf.Reading) float64 { return float64(c.Merged) }},
}

// sideBySideWidth is the minimum width of the list for one queue if two lists are side by side.
const sideBySideWidth = 42

func (s *session) drawClusters(f *tui.Frame, r screen.Region) {
	n := len(s.snapshot.Queues)
	if r.W/max(n, 1) < sideBySideWidth {
		n = min(n, 1)
	}
	span := s.span()
	oldest := aom.MaxAge(s.snapshot, span, s.reading)
	columns := clusterHeads(oldest)
	listing, below := list.SplitPage(r, len(s.snapshot.Queues[0].Clusters))
	for i := range n {
		part := listing.Column(i, n)
		q := &s.snapshot.Queues[i]
		title := fmt.Sprintf("%s at %v, AoM %s, by %s", q.Name, q.OutRate, s.reading, sortings[s.order].name)
		inside := part.Box(screen.Thin, theme.Border, theme.QueueStyle(i), title)
		f.DrawList(part, inside, tui.Listing{Columns: columns, Rows: s.clusterRows(i, span, oldest), Focused: true})
	}
	top := aom.MaxSawtooth(s.snapshot, span)
	for i := range n {
		if part := below.Column(i, n); part.H > 0 {
			title := fmt.Sprintf("%s: AoM of cluster %d (%s: next)", s.snapshot.Queues[i].Name, s.snapshot.Watched, f.Key(keys.Watch))
			inside := part.Box(screen.Thin, theme.Border, theme.Title, title)
			aom.DrawSawtooth(inside, s.snapshot, i, span, top, theme.ClusterStyle(int(s.snapshot.Watched)))
		}
	}
}

// span returns the time span that all charts show.
func (s *session) span() chart.Span {
	return chart.WindowSpan(s.snapshot.Now, s.snapshot.End, s.wholeRun)
}

// clusterRows returns rows for the clusters behind a queue, with their ages over a time span. The ID of a row is the
// cluster. All queues use the order of the first queue, so that their lines correspond.
func (s *session) clusterRows(queue int, span chart.Span, oldest float64) list.Rows {
	if s.queue(queue) == nil {
		return list.Rows{}
	}
	first, these := s.snapshot.Queues[0].Clusters, s.snapshot.Queues[queue].Clusters
	var key func(i int) float64
	if of := sortings[s.order].key; of != nil {
		key = func(i int) float64 { return of(&first[i], s.reading) }
	}
	order := list.SortOrder(min(len(first), len(these)), key)
	return list.Rows{
		Len: len(order), Row: func(i int) list.Row { return s.clusterRow(queue, &these[order[i]], span, oldest) },
		Text: func(i int) string { return fmt.Sprintf("c%d", these[order[i]].ID) },
	}
}

func (s *session) clusterRow(queue int, c *slowmotion.ClusterSnapshot, span chart.Span, oldest float64) list.Row {
	name := fmt.Sprintf("c%d", c.ID)
	if c.ID == s.snapshot.Watched {
		name += " ◎"
	}
	lost := list.Cell{Text: num.FormatPercent(c.LostPct())}
	if c.LostPct() > 0 {
		lost.Style = theme.Bad
	}
	now := list.Cell{Text: num.FormatNS(float64(c.AoM[s.reading]))}
	if c.Done {
		now = list.Cell{Text: "done", Style: theme.Dim}
	}
	style := theme.ClusterStyle(int(c.ID))
	return list.Row{ID: int64(c.ID), Cells: []list.Cell{
		{Text: name, Style: style}, now, {Text: num.FormatNS(float64(c.Mean[s.reading])), Style: theme.Strong},
		{Text: num.FormatNS(float64(c.Peak))},
		lost, {Text: num.FormatCount(c.Merged)}, {Text: num.FormatCount(c.Dropped + c.Replaced)},
		{Text: num.FormatCount(c.Sent)}, {Text: num.FormatCount(c.Delivered)},
		{Draw: func(r screen.Region) {
			span.Sparkline(r, aom.AgeSeries(s.snapshot, queue, c.ID, s.reading), oldest, style)
		}},
	}}
}
