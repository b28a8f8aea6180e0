package network

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// resultsPage is the report of all runs once they are over, and until then what this one shows so far, group by group.
func (s *session) resultsPage() tui.Page {
	return tui.Page{
		Title: "Results",
		About: "The report of all seeds once they are simulated, as quitting prints it; until then what the run shows so far, group by group, " +
			"clusters averaged. left and right shift long lines.",
		Draw:    s.drawResults,
		Rows:    s.resultRows,
		Keys:    tui.Shifting(func() bool { return s.report != nil }),
		Caption: func() string { return s.caption("Results") },
	}
}

func (s *session) drawResults(f *tui.Frame, r screen.Region) {
	if s.report != nil {
		inside := r.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("Results of %d seed(s)", s.seeds.Total))
		f.List(r, inside, tui.Listing{Columns: []list.Column{{}}, Rows: s.resultRows()})
		return
	}
	rows := s.resultRows()
	listing, below := list.Split(r, rows.Len)
	inside := listing.Box(screen.Thin, theme.Border, theme.Title, "Results of this run so far, by group")
	f.List(listing, inside, tui.Listing{Columns: groupColumns, Rows: rows})
	s.drawGroups(below)
}

// mostGroups is how many groups have a chart.
const mostGroups = 4

// drawGroups draws the mean age of each group, side by side on the same axes.
func (s *session) drawGroups(r screen.Region) {
	if r.H == 0 {
		return
	}
	span, groups := s.span(), s.groups()
	groups = groups[:min(len(groups), mostGroups)]
	lines, top := make([][]chart.Point, len(groups)), 0.0
	for i := range groups {
		g := &groups[i]
		now, _ := meanAges(g.clusters, s.reading)
		lines[i] = s.ageLine(span, func(p *Instant) float64 { return g.meanAt(p, s.reading) }, now)
		for _, p := range lines[i] {
			if p.Y == p.Y {
				top = max(top, p.Y)
			}
		}
	}
	for i := range groups {
		box := r.Column(i, len(groups)).Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%s: AoM %s", groups[i].name, s.reading))
		drawLine(box, span, chart.Ceiling(top), lines[i], theme.Cluster(i))
	}
}

// group is a run of clusters with one name.
type group struct {
	name     string
	from     int // place of the first cluster in the snapshot
	clusters []netsim.ClusterSnapshot
}

func (s *session) groups() []group {
	var out []group
	for i := range s.snapshot.Clusters {
		if n := len(out); n == 0 || out[n-1].name != s.snapshot.Clusters[i].Group {
			out = append(out, group{name: s.snapshot.Clusters[i].Group, from: i})
		}
		g := &out[len(out)-1]
		g.clusters = s.snapshot.Clusters[g.from : i+1]
	}
	return out
}

// meanAt is the mean age at an instant of the history; NaN where no cluster has one.
func (g *group) meanAt(p *Instant, reading olaf.Reading) float64 {
	sum, n := 0.0, 0
	for _, age := range p.Ages[reading][g.from : g.from+len(g.clusters)] {
		if age == age {
			sum += float64(age)
			n++
		}
	}
	return sum / float64(n)
}

var groupColumns = []list.Column{
	{Name: "group", Width: 10}, {Name: "clusters", Width: 8, Right: true}, {Name: "workers", Width: 7, Right: true, Drop: 4}, {Name: "sent", Width: 7, Right: true, Drop: 3},
	{Name: "delivered", Width: 9, Right: true, Drop: 1}, {Name: "merged", Width: 7, Right: true, Drop: 2}, {Name: "loss", Width: 7, Right: true},
	{Name: "AoM/cluster", Width: 8, Right: true}, {Name: "AoM/worker", Width: 8, Right: true}, {},
}

func (s *session) resultRows() list.Rows {
	if s.report != nil {
		return list.Rows{Len: len(s.report), Row: func(i int) list.Row { return list.Row{ID: int64(i), Cells: []list.Cell{{Text: s.report[i]}}} }}
	}
	if s.snapshot == nil {
		return list.Rows{}
	}
	groups := s.groups()
	return list.Rows{Len: len(groups), Row: func(i int) list.Row { return groups[i].row(i) }}
}

func (g *group) row(i int) list.Row {
	var workers int
	var sum netsim.Counts
	for c := range g.clusters {
		k := &g.clusters[c]
		workers += k.Workers
		sum.Sent += k.Sent
		sum.DeliveredUpdates += k.DeliveredUpdates
		sum.Aggregated += k.Aggregated + k.Counts.Replaced
		sum.DroppedUpdates += k.DroppedUpdates
	}
	lost := results.Missing()
	if sum.Sent > 0 {
		lost = results.Float(100 * float64(sum.DroppedUpdates) / float64(sum.Sent))
	}
	_, cluster := meanAges(g.clusters, olaf.PerCluster)
	_, worker := meanAges(g.clusters, olaf.PerWorker)
	return list.Row{ID: int64(i), Cells: []list.Cell{
		{Text: g.name, Style: theme.Cluster(i)}, {Text: num.Count(int64(len(g.clusters)))}, {Text: num.Count(int64(workers))}, {Text: num.Count(int64(sum.Sent))},
		{Text: num.Count(int64(sum.DeliveredUpdates))}, {Text: num.Count(int64(sum.Aggregated))}, {Text: num.Percent(float64(lost))},
		{Text: num.NS(float64(cluster)), Style: theme.Strong}, {Text: num.NS(float64(worker)), Style: theme.Strong},
	}}
}
