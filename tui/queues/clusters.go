package queues

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/aom"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// clustersPage compares the clusters, one queue beside the other where there is room.
func (s *session) clustersPage() tui.Page {
	return tui.Page{
		Title: "Clusters",
		About: "What became of every cluster's updates, and how old its model is: now, on average, at most. Both queues stand in one order. " +
			"Below, the sawtooth of the watched cluster (◎), which enter chooses.",
		Draw: s.drawClusters,
		Rows: func() list.Rows { return s.clusterRows(0) },
		Open: func(f *tui.Frame, id int64) tea.Cmd {
			s.options.Source.Do(live.Watch{Cluster: olaf.ClusterID(id)})
			f.Say(fmt.Sprintf("cluster %d is watched, here and on the Run page", id))
			return nil
		},
		Keys:    tui.Acts{keys.SortBy: tui.Do(func(*tui.Frame) { s.order = (s.order + 1) % len(sortings) })},
		Caption: func() string { return s.caption("Clusters") },
	}
}

var clusterColumns = []list.Column{
	{Name: "cluster", Width: 7}, {Name: "AoM now", Width: 7, Right: true, Drop: 2}, {Name: "mean", Width: 7, Right: true}, {Name: "peak", Width: 7, Right: true, Drop: 4},
	{Name: "lost", Width: 7, Right: true, Drop: 1}, {Name: "merged", Width: 6, Right: true, Drop: 3}, {Name: "dropped", Width: 6, Right: true, Drop: 5},
	{Name: "sent", Width: 5, Right: true, Drop: 6}, {Name: "delivered", Width: 6, Right: true, Drop: 7},
}

// sortings are the orders of the clusters, the largest first.
var sortings = []struct {
	name string
	key  func(*live.ClusterSnapshot) float64
}{
	{"cluster", func(c *live.ClusterSnapshot) float64 { return -float64(c.ID) }},
	{"AoM now", func(c *live.ClusterSnapshot) float64 { return known(c.AoM) }},
	{"mean AoM", func(c *live.ClusterSnapshot) float64 { return known(c.Mean) }},
	{"peak AoM", func(c *live.ClusterSnapshot) float64 { return known(c.Peak) }},
	{"lost", (*live.ClusterSnapshot).LostPct},
	{"merged", func(c *live.ClusterSnapshot) float64 { return float64(c.Merged) }},
}

// known puts what is missing last.
func known(f results.Float) float64 {
	if !f.Known() {
		return math.Inf(-1)
	}
	return float64(f)
}

// besideWidth is how wide a queue's list must be to stand beside another one.
const besideWidth = 42

func (s *session) drawClusters(f *tui.Frame, r screen.Region) {
	n := len(s.snapshot.Queues)
	if r.W/max(n, 1) < besideWidth {
		n = min(n, 1)
	}
	listing, below := list.Split(r, len(s.snapshot.Queues[0].Clusters)+headings+borders)
	for i := range n {
		part := listing.Column(i, n)
		q := &s.snapshot.Queues[i]
		inside := part.Box(screen.Thin, theme.Border, theme.Queue(i), fmt.Sprintf("%s at %v, by %s", q.Name, q.OutRate, sortings[s.order].name))
		f.List(part, inside, tui.Listing{Columns: clusterColumns, Rows: s.clusterRows(i), Focused: true})
	}
	span := s.span()
	top := aom.SawTop(s.snapshot, span)
	for i := range n {
		q := &s.snapshot.Queues[i]
		if part := below.Column(i, n); part.H > 0 {
			aom.Sawtooth(part.Box(screen.Thin, theme.Border, theme.Title, s.sawTitle(f, q)), q, s.snapshot.Now, span, top, theme.Cluster(int(s.snapshot.Watched)))
		}
	}
}

// Rows of a list that are not its lines.
const (
	headings = 1
	borders  = 2
)

// span is the part of the time axis that all charts show.
func (s *session) span() chart.Span { return chart.Window(s.snapshot.Now, s.snapshot.End, s.whole) }

func (s *session) sawTitle(f *tui.Frame, q *live.QueueSnapshot) string {
	return fmt.Sprintf("%s: AoM of cluster %d (%s: next)", q.Name, s.snapshot.Watched, f.Key(keys.Watch))
}

// clusterRows are the clusters of the queue with an index; a row's id is the cluster. Those of every queue come in the
// order of the first one's, so that lines stand side by side.
func (s *session) clusterRows(queue int) list.Rows {
	if s.queue(queue) == nil {
		return list.Rows{}
	}
	first, these := s.snapshot.Queues[0].Clusters, s.snapshot.Queues[queue].Clusters
	order := make([]int, 0, len(these))
	for i := range min(len(first), len(these)) {
		order = append(order, i)
	}
	if key := sortings[s.order].key; s.order > 0 {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(&first[b]), key(&first[a])) })
	}
	return list.Rows{
		Len: len(order), Row: func(i int) list.Row { return s.clusterRow(&these[order[i]]) },
		Text: func(i int) string { return fmt.Sprintf("c%d", these[order[i]].ID) },
	}
}

func (s *session) clusterRow(c *live.ClusterSnapshot) list.Row {
	name := fmt.Sprintf("c%d", c.ID)
	if c.ID == s.snapshot.Watched {
		name += " ◎"
	}
	lost := list.Cell{Text: num.Percent(c.LostPct())}
	if c.LostPct() > 0 {
		lost.Style = theme.Bad
	}
	return list.Row{ID: int64(c.ID), Cells: []list.Cell{
		{Text: name, Style: theme.Cluster(int(c.ID))},
		{Text: num.NS(float64(c.AoM))}, {Text: num.NS(float64(c.Mean)), Style: theme.Strong}, {Text: num.NS(float64(c.Peak))},
		lost, {Text: num.Count(c.Merged)}, {Text: num.Count(c.Dropped + c.Replaced)}, {Text: num.Count(c.Sent)}, {Text: num.Count(c.Delivered)},
	}}
}
