package network

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// resultsPage returns the page with the report on all runs. Until there is a report, the page shows the results of this
// run so far, by group.
func (s *session) resultsPage() tui.Page {
	return tui.Page{
		Title: "Results",
		About: "The report of all seeds once they are simulated, as quitting prints it; until then what the run shows " +
			"so far, group by group, " +
			"clusters averaged. left and right shift long lines.",
		Draw:    s.drawResults,
		Rows:    s.resultRows,
		Keys:    tui.ShiftKeys(func() bool { return s.report != nil }),
		Caption: func() string { return s.viewCaption("Results") },
	}
}

func (s *session) drawResults(f *tui.Frame, r screen.Region) {
	if s.report != nil {
		inside := r.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("Results of %d seed(s)", s.seeds.Total))
		f.DrawList(r, inside, tui.Listing{Columns: []list.Column{{}}, Rows: list.FromTexts(s.report.Fold(inside))})
		return
	}
	rows := s.resultRows()
	listing, below := list.SplitPage(r, rows.Len)
	inside := listing.Box(screen.Thin, theme.Border, theme.Title, "Results of this run after the warm-up so far, by group")
	f.DrawList(listing, inside, tui.Listing{Columns: groupColumns(), Rows: rows})
	s.drawGroups(below)
}

// mostGroups is the maximum number of groups that have a chart.
const mostGroups = 4

// drawGroups draws the mean age for each group, side by side with the same axes.
func (s *session) drawGroups(r screen.Region) {
	if r.H == 0 {
		return
	}
	span, groups := s.span(), s.groups()
	groups = groups[:min(len(groups), mostGroups)]
	lines, top := make([][]chart.Point, len(groups)), 0.0
	for i := range groups {
		g := &groups[i]
		now := meanAge(s.clustersAt(g.places), s.reading)
		lines[i] = s.ageLine(span, func(p *Instant) float64 { return g.meanAt(p, s.reading) }, now)
		for _, p := range lines[i] {
			if p.Y == p.Y {
				top = max(top, p.Y)
			}
		}
	}
	for i := range groups {
		box := r.Column(i, len(groups)).Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%s: AoM %s",
			groups[i].Group, s.reading))
		drawLine(box, span, chart.RoundUp(top), lines[i], theme.ClusterStyle(i))
	}
}

// group contains the clusters that have the same group name.
type group struct {
	*netsim.GroupResult
	places []int // indexes of the group's clusters in the snapshot
}

func (s *session) groups() []group {
	out, index := make([]group, len(s.snapshot.Groups)), map[string]int{}
	for i := range out {
		out[i].GroupResult = &s.snapshot.Groups[i]
		index[out[i].Group] = i
	}
	for place := range s.snapshot.Clusters {
		g := &out[index[s.snapshot.Clusters[place].Group]]
		g.places = append(g.places, place)
	}
	return out
}

func (s *session) clustersAt(places []int) iter.Seq[*netsim.ClusterSnapshot] {
	return func(yield func(*netsim.ClusterSnapshot) bool) {
		for _, place := range places {
			if !yield(&s.snapshot.Clusters[place]) {
				return
			}
		}
	}
}

// meanAt returns the mean age of the group at an instant of the history, or NaN if no cluster has an age.
func (g *group) meanAt(p *Instant, reading olaf.Reading) float64 {
	sum, n := 0.0, 0
	for _, place := range g.places {
		if age := p.Ages[reading][place]; age == age {
			sum += float64(age)
			n++
		}
	}
	return sum / float64(n)
}

// groupShown lists the group statistics that have a column.
var groupShown = slices.DeleteFunc(slices.Clone(netsim.PartStatistics()),
	func(m *metric.Metric) bool { return m.Column == "" })

// groupColumns returns the columns for groupShown. If the table is narrow, counts are omitted first, then shares, and
// finally ages.
func groupColumns() []list.Column {
	columns := []list.Column{{Name: "group", Width: 10}, {Name: "clusters", Width: 8, Right: true},
		{Name: "workers", Width: 7, Right: true, Drop: 2*len(groupShown) + 1}}
	for i, m := range groupShown {
		name := strings.ReplaceAll(strings.ToLower(m.Column), "aom", "AoM")
		c := list.Column{Name: name, Width: max(len(name), 7), Right: true, Drop: i + 1}
		switch {
		case m.Unit == "%":
			c.Drop += len(groupShown)
		case m.Unit != "ns":
			c.Drop += 2 * len(groupShown)
		}
		columns = append(columns, c)
	}
	return append(columns, list.Column{})
}

func (s *session) resultRows() list.Rows {
	if s.report != nil {
		return list.FromTexts(s.report.Lines())
	}
	if s.snapshot == nil {
		return list.Rows{}
	}
	groups := s.groups()
	return list.Rows{Len: len(groups), Row: func(i int) list.Row { return groups[i].cells(i) }}
}

func (g *group) cells(i int) list.Row {
	cells := []list.Cell{{Text: g.Group, Style: theme.ClusterStyle(i)}, {Text: num.FormatCount(int64(g.Clusters))},
		{Text: num.FormatCount(int64(g.Workers))}}
	for _, m := range groupShown {
		v := float64(g.Values.Of(m.Name))
		switch m.Unit {
		case "ns":
			cells = append(cells, list.Cell{Text: num.FormatNS(v), Style: theme.Strong})
		case "%":
			cells = append(cells, list.Cell{Text: num.FormatPercent(v)})
		default:
			cells = append(cells, list.Cell{Text: num.FormatCount(int64(v))})
		}
	}
	return list.Row{ID: int64(i), Cells: cells}
}
