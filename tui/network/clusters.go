package network

import (
	"fmt"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// clustersPage returns the page that shows the clusters and their ages over time.
func (s *session) clustersPage() tui.Page {
	return tui.Page{
		Title: "Clusters",
		About: "Every cluster since the end of the warm-up: its updates, the loss (those in dropped frames), its Age " +
			"of Model on average and now, and over time on the axis of the chart below. " +
			"The chart is the watched one (◎), which enter chooses. The filter looks at ids and groups.",
		Draw: s.drawClusters,
		Rows: func() list.Rows { return s.clusterRows(chart.Span{}, 0) },
		Open: func(_ *tui.Frame, id int64) tea.Cmd { s.watched = int(id); return nil },
		Keys: tui.Acts{keys.SortBy: tui.AsAct(func(f *tui.Frame) {
			s.order = (s.order + 1) % len(sortings)
			f.Cursor().Selected = 0
		})},
		Caption: func() string { return s.viewCaption("Clusters") },
	}
}

// sortings lists the sort orders for the clusters. All are descending.
var sortings = []struct {
	name string
	key  func(*netsim.ClusterSnapshot, olaf.Reading) float64 // nil sorts in the order of ids
}{
	{"id", nil},
	{"AoM now", func(c *netsim.ClusterSnapshot, r olaf.Reading) float64 { return float64(c.AoM[r]) }},
	{"mean AoM", func(c *netsim.ClusterSnapshot, r olaf.Reading) float64 { return float64(netsim.MeanAoM(c.Values, r)) }},
	{"loss", func(c *netsim.ClusterSnapshot, _ olaf.Reading) float64 {
		return float64(c.Values.Of("loss_updates_pct"))
	}},
	{"sent", func(c *netsim.ClusterSnapshot, _ olaf.Reading) float64 { return float64(c.Values.Of("window_sent")) }},
}

// sorted caches the order of the clusters until the next snapshot.
type sorted struct {
	of      *netsim.Snapshot
	by      int
	reading olaf.Reading
	places  []int
}

// places returns the order of the clusters as a list of indexes into the snapshot.
func (s *session) places() []int {
	if s.sorted.of == s.snapshot && s.sorted.by == s.order && s.sorted.reading == s.reading {
		return s.sorted.places
	}
	all := s.snapshot.Clusters
	var key func(i int) float64
	if of := sortings[s.order].key; of != nil {
		key = func(i int) float64 { return of(&all[i], s.reading) }
	}
	places := list.SortOrder(len(all), key)
	s.sorted = sorted{s.snapshot, s.order, s.reading, places}
	return places
}

func clusterColumns(top float64) []list.Column {
	return []list.Column{
		{Name: "cluster", Width: 8}, {Name: "group", Width: 7}, {Name: "workers", Width: 5, Right: true, Drop: 6},
		{Name: "sent", Width: 6, Right: true, Drop: 4},
		{Name: "merged", Width: 6, Right: true, Drop: 5}, {Name: "loss", Width: 7, Right: true},
		{Name: "mean AoM", Width: 8, Right: true}, {Name: "now", Width: 8, Right: true},
		{Name: "to " + num.FormatNS(top), Least: 14, Drop: 3},
	}
}

func (s *session) drawClusters(f *tui.Frame, r screen.Region) {
	v, span := s.snapshot, s.span()
	top := s.topAge(span)
	listing, below := list.SplitPage(r, len(v.Clusters))
	title := fmt.Sprintf("%d clusters, updates after the warm-up, AoM %s, by %s", len(v.Clusters), s.reading,
		sortings[s.order].name)
	if v.Now < v.Warmup {
		title += ", counted from " + num.FormatDuration(v.Warmup.Sub(0)) + " on"
	}
	inside := listing.Box(screen.Thin, theme.Border, theme.Title, title)
	f.DrawList(listing, inside, tui.Listing{Columns: clusterColumns(top), Rows: s.clusterRows(span, top), Focused: true})
	if below.H == 0 || len(v.Clusters) == 0 {
		return
	}
	s.watched = min(s.watched, len(v.Clusters)-1)
	c := &v.Clusters[s.watched]
	title = s.ageTitle(fmt.Sprintf("cluster %d (%s: next): AoM %s", c.Cluster, f.Key(keys.Watch), s.reading),
		c.AoM[s.reading], netsim.MeanAoM(c.Values, s.reading))
	drawLine(below.Box(screen.Thin, theme.Border, theme.Title, title), span, top, s.ageSeries(s.watched, span),
		theme.ClusterStyle(c.Cluster))
}

// ageSeries returns the age of a cluster over time, up to the current instant.
func (s *session) ageSeries(place int, span chart.Span) []chart.Point {
	return s.ageLine(span, func(p *Instant) float64 { return float64(p.Ages[s.reading][place]) },
		s.snapshot.Clusters[place].AoM[s.reading])
}

// clusterRows returns rows for the clusters, with their ages over a time span. The ID of a row is the cluster's index
// in the snapshot.
func (s *session) clusterRows(span chart.Span, top float64) list.Rows {
	if s.snapshot == nil {
		return list.Rows{}
	}
	all, places := s.snapshot.Clusters, s.places()
	return list.Rows{
		Len:  len(places),
		Row:  func(i int) list.Row { return s.clusterRow(&all[places[i]], places[i], span, top) },
		Text: func(i int) string { return strconv.Itoa(all[places[i]].Cluster) + " " + all[places[i]].Group },
	}
}

func (s *session) clusterRow(c *netsim.ClusterSnapshot, place int, span chart.Span, top float64) list.Row {
	name := strconv.Itoa(c.Cluster)
	if place == s.watched {
		name += " ◎"
	}
	lost := list.Cell{Text: num.FormatPercent(float64(c.Values.Of("loss_updates_pct")))}
	if c.Values.Of("window_dropped_updates") > 0 {
		lost.Style = theme.Bad
	}
	style := theme.ClusterStyle(c.Cluster)
	return list.Row{ID: int64(place), Cells: []list.Cell{
		{Text: name, Style: style}, {Text: c.Group}, {Text: num.FormatCount(int64(c.Workers))},
		{Text: num.FormatCount(int64(c.Values.Of("window_sent")))},
		{Text: num.FormatCount(int64(c.Values.Of("window_aggregated") + c.Values.Of("window_replaced")))}, lost,
		{Text: num.FormatNS(float64(netsim.MeanAoM(c.Values, s.reading))), Style: theme.Strong},
		{Text: num.FormatNS(float64(c.AoM[s.reading]))},
		{Draw: func(r screen.Region) { span.Sparkline(r, s.ageSeries(place, span), top, style) }},
	}}
}
