package network

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/loss"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// runPage returns the page with the ports, the fate of updates and the mean age.
func (s *session) runPage() tui.Page {
	return tui.Page{
		Title: "Run",
		About: "Every port that something can pass: slots in use now and over time, how much of the time its link was " +
			"sending. " +
			"Below, what became of all updates, and the Age of Model averaged over clusters. Ports and updates count " +
			"from the start.",
		Draw:    s.drawRun,
		Rows:    func() list.Rows { return s.portRows(chart.Span{}) },
		Caption: func() string { return s.viewCaption("Ports, fate and age") },
	}
}

// Heights with borders.
const (
	fateRows  = 7
	portsMost = 3 // maximum lines per port
	chartRows = 6
)

func (s *session) drawRun(f *tui.Frame, r screen.Region) {
	span, ports := s.span(), len(s.snapshot.Ports)
	high := min(list.Chrome+ports, max(r.H-fateRows-chartRows, list.Chrome+1))
	if more := r.H - fateRows - 2*chartRows - list.Chrome; more >= 2*ports {
		high = min(more/max(ports, 1), portsMost)*ports + list.Chrome
	}
	if r.H-fateRows-high < chartRows { // no room for a chart
		high = r.H - fateRows
	}
	box := r.Sub(0, 0, r.W, high)
	inside := box.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%d ports, frames since the start", ports))
	f.DrawList(box, inside, tui.Listing{Columns: portColumns(span), Rows: s.portRows(span), Focused: true})
	s.drawFate(r.Sub(0, high, r.W, fateRows))
	if rest := r.Sub(0, high+fateRows, r.W, r.H-high-fateRows); rest.H >= chartRows {
		s.drawAge(rest)
	}
}

// drawFate draws a chart of the fate of all updates.
func (s *session) drawFate(r screen.Region) {
	v := s.snapshot
	title := "fate of " + num.FormatCount(int64(v.Fate.Sent)) + " updates sent"
	if v.Warmup > 0 {
		title += " since the start"
	}
	if v.Control {
		title += ", " + num.FormatCount(int64(v.Withheld)) + " more withheld by transmission control"
	}
	loss.DrawBars(r.Box(screen.Thin, theme.Border, theme.Title, title), int64(v.Fate.Sent), []loss.Fate{
		{Mark: "◀", Name: "delivered", Count: int64(v.Fate.Delivered), Style: theme.Good},
		{Mark: "✗", Name: "dropped", Count: int64(v.Fate.Dropped), Style: theme.Bad},
		{Mark: "↻", Name: "replaced", Count: int64(v.Fate.Replaced), Style: theme.Warn},
		{Mark: "✗", Name: "on links", Count: int64(v.Fate.LostOnLinks), Style: theme.Bad},
		{Mark: "▮", Name: "moving", Count: int64(v.Fate.Queued + v.Fate.Flying), Style: theme.Dim},
	})
}

// drawAge draws a chart of the mean age over the clusters.
func (s *session) drawAge(r screen.Region) {
	span := s.span()
	now, averaged := meanAge(everyCluster(s.snapshot), s.reading), netsim.MeanAoM(s.snapshot.Values, s.reading)
	points := s.ageLine(span, func(p *Instant) float64 { return float64(p.Mean[s.reading]) }, now)
	top := 0.0
	for _, p := range points {
		if p.Y == p.Y {
			top = max(top, p.Y)
		}
	}
	title := s.ageTitle(fmt.Sprintf("AoM %s over %d clusters", s.reading, len(s.snapshot.Clusters)), now, averaged)
	inside := r.Box(screen.Thin, theme.Border, theme.Title, title)
	drawLine(inside, span, chart.RoundUp(top), points, theme.Subject)
}

// ageTitle returns a chart title with the current and the mean age, and the time from which the mean is computed.
func (s *session) ageTitle(of string, now, averaged results.Float) string {
	v := s.snapshot
	text := of + " now " + num.FormatNS(float64(now))
	switch mean := num.FormatNS(float64(averaged)); {
	case v.Now < v.Warmup:
		return text + ", averaged from " + num.FormatDuration(v.Warmup.Sub(0)) + " on"
	case v.Warmup > 0:
		return text + ", mean since " + num.FormatDuration(v.Warmup.Sub(0)) + " " + mean
	default:
		return text + ", mean " + mean
	}
}

func drawLine(r screen.Region, span chart.Span, top float64, points []chart.Point, style screen.Style) {
	if len(points) == 0 {
		r.Text(0, 0, theme.Dim, "no delivery yet")
		return
	}
	chart.DrawLines(r, span.Axes(top), chart.Line{Points: points, Style: style})
}
