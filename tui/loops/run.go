package loops

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/loss"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// runPage returns the page with the progress of the jobs, the fate of packets, and charts of slots and frames over
// time.
func (s *session) runPage() tui.Page {
	return tui.Page{
		Title: "Run",
		About: "Every job: the rounds that all of its workers have the sum of, how many workers are a round ahead, " +
			"and what its workers do. " +
			"Below, the outcomes of frames sent on links, and over time the slots in use and the frames in flight.",
		Draw:    s.drawRun,
		Rows:    s.jobRows,
		Caption: func() string { return s.viewCaption("Jobs, frames and slots") },
	}
}

// Heights with borders.
const (
	fateRows  = 6
	chartRows = 6
)

func (s *session) drawRun(f *tui.Frame, r screen.Region) {
	rows := s.jobRows()
	high := min(list.Chrome+rows.Len, max(r.H-fateRows-chartRows, list.Chrome+1))
	if r.H-fateRows-high < chartRows { // no room for a chart
		high = max(r.H-fateRows, list.Chrome+1)
	}
	box := r.Sub(0, 0, r.W, high)
	inside := box.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%s of %s", olaf.Plural(rows.Len, "job"),
		olaf.Plural(int(s.snapshot.Rounds), "round")))
	f.DrawList(box, inside, tui.Listing{Columns: jobColumns, Rows: rows, Focused: true})
	s.drawFate(r.Sub(0, high, r.W, fateRows))
	if rest := r.Sub(0, high+fateRows, r.W, r.H-high-fateRows); rest.H >= chartRows {
		s.drawOverTime(rest)
	}
}

var jobColumns = []list.Column{
	{Name: "job", Width: 5}, {Name: "", Width: 12, Drop: 1}, {Name: "rounds", Width: 9, Right: true},
	{Name: "ahead", Width: 6, Right: true},
	{Name: "computing", Width: 9, Right: true, Drop: 3}, {Name: "talking", Width: 7, Right: true, Drop: 2},
	{Name: "sent", Width: 7, Right: true, Drop: 4},
	{Name: "again", Width: 7, Right: true}, {},
}

// jobRows returns rows for the jobs. The ID of a row is the index of the job.
func (s *session) jobRows() list.Rows {
	if s.snapshot == nil {
		return list.Rows{}
	}
	return list.Rows{Len: len(s.snapshot.Jobs), Row: s.jobRow}
}

func (s *session) jobRow(i int) list.Row {
	v := s.snapshot
	j := &v.Jobs[i]
	var doing [closedloop.Finished + 1]int
	sent, again := int64(0), int64(0)
	for k := range v.Hosts {
		h := &v.Hosts[k]
		if h.Job != i {
			continue
		}
		if !h.Server {
			doing[h.Doing]++
		}
		sent += h.Counts.Of("packets_sent")
		again += h.Counts.Of("packets_resent")
	}
	style := theme.ClusterStyle(i)
	resent := list.Cell{Text: num.FormatCount(again)}
	if again > 0 {
		resent.Style = theme.Warn
	}
	return list.Row{ID: int64(i), Cells: []list.Cell{
		{Text: fmt.Sprint(i + 1), Style: style},
		{Draw: func(r screen.Region) { chart.DrawGauge(r, float64(j.Rounds), float64(v.Rounds), style) }},
		{Text: fmt.Sprintf("%d/%d", j.Rounds, v.Rounds)}, {Text: num.FormatCount(int64(j.Ahead))},
		{Text: num.FormatCount(int64(doing[closedloop.Computing] + doing[closedloop.Applying]))},
		{Text: num.FormatCount(int64(doing[closedloop.Talking]))}, {Text: num.FormatCount(sent)}, resent, {},
	}}
}

// drawFate draws a chart of the fate of frames and the number of packets that workers sent again.
func (s *session) drawFate(r screen.Region) {
	v := s.snapshot
	fates := []loss.Fate{
		{Mark: "◀", Name: "arrived", Count: int64(v.Frames - v.Lost - min(v.Underway, v.Frames-v.Lost)), Style: theme.Good},
		{Mark: "✗", Name: "lost", Count: int64(v.Lost), Style: theme.Bad},
		{Mark: "▮", Name: "on links", Count: int64(min(v.Underway, v.Frames-v.Lost)), Style: theme.Dim},
		{Mark: "↻", Name: "resent", Count: v.Endpoints.Of("packets_resent"), Style: theme.Warn},
	}
	loss.DrawBars(r.Box(screen.Thin, theme.Border, theme.Title, "fate of "+num.FormatCount(int64(v.Frames))+
		" frames"), int64(v.Frames), fates)
}

// drawOverTime draws charts of slots and frames over time.
func (s *session) drawOverTime(r screen.Region) {
	span, v := s.span(), s.snapshot
	held, slots := 0, 0
	for i := range v.Switches {
		held, slots = held+v.Switches[i].Occupied, slots+v.Switches[i].Slots
	}
	parts := [2]screen.Region{r, {}}
	if slots > 0 {
		parts = [2]screen.Region{r.Column(0, 2), r.Column(1, 2)}
		points, top := s.line(span, (*Instant).heldSlots, float64(held))
		title := fmt.Sprintf("%d of %d slots held", held, slots)
		drawCounts(parts[1], span, title, points, top, theme.Subject)
	}
	points, top := s.line(span, func(i *Instant) float64 { return float64(i.Underway) }, float64(v.Underway))
	drawCounts(parts[0], span, fmt.Sprintf("%d frames on their way", v.Underway), points, top, theme.Good)
}

// heldSlots returns the number of slots in use in all switches.
func (i *Instant) heldSlots() float64 {
	sum := int32(0)
	for _, n := range i.Occupied {
		sum += n
	}
	return float64(sum)
}

// drawCounts draws a chart of a count over time.
func drawCounts(r screen.Region, span chart.Span, title string, points []chart.Point, top float64, style screen.Style) {
	most := 1.0
	for most < top {
		most *= 2
	}
	axes := span.Axes(most)
	axes.Y = func(v float64) string { return num.FormatCount(int64(v)) }
	chart.DrawLines(r.Box(screen.Thin, theme.Border, theme.Title, title), axes, chart.Line{Points: points, Style: style})
}
