package queues

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/aom"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// resultsPage returns the page with the report on the experiment. Until there is a report, the page shows the results
// of the run so far.
func (s *session) resultsPage() tui.Page {
	return tui.Page{
		Title: "Results",
		About: "The report of the whole experiment once it is there, else what this one run shows so far. left and " +
			"right shift long lines.",
		Draw:    s.drawResults,
		Rows:    s.resultRows,
		Keys:    tui.ShiftKeys(func() bool { return s.reportLines() != nil }),
		Caption: func() string { return s.viewCaption("Results") },
	}
}

// reportLines returns the lines of the experiment's report or error, or nil if there is neither yet.
func (s *session) reportLines() []string {
	if s.bench == nil {
		return nil
	}
	var lines []string
	if s.bench.Err != nil {
		lines = []string{"✗ " + s.bench.Err.Error(), ""}
	}
	if s.bench.Report != nil {
		lines = append(lines, s.bench.Report.Lines()...)
	}
	return lines
}

func (s *session) drawResults(f *tui.Frame, r screen.Region) {
	title := "Results of this run so far"
	if s.bench != nil {
		title = fmt.Sprintf("Results of the whole experiment, %d of %d runs", s.bench.Done, s.bench.Total)
	}
	listing := r
	columns := []list.Column{{}}
	if s.reportLines() == nil {
		var below screen.Region
		columns = resultColumns
		listing, below = list.SplitPage(r, len(s.snapshot.Queues))
		s.drawCurves(below)
	}
	inside := listing.Box(screen.Thin, theme.Border, theme.Title, title)
	if s.bench != nil && s.bench.Report != nil {
		s.bench.Report.Fold(inside)
	}
	f.DrawList(listing, inside, tui.Listing{Columns: columns, Rows: s.resultRows()})
}

// curveLeast is the minimum height of a curve, including its border.
const curveLeast = 5

// drawCurves draws the ages behind each queue, one chart below the other with the same axes, and a comparison.
func (s *session) drawCurves(r screen.Region) {
	if r.H == 0 {
		return
	}
	for _, line := range chart.WrapText(s.comparison(), r.W-2) {
		r.Text(1, 0, theme.Text, line)
		r = r.Sub(0, 1, r.W, r.H-1)
	}
	r.Text(1, r.H-1, theme.Dim, "Statistics over all runs, and the paper: olafctl bench --tui")
	r.H--
	span, n := s.span(), len(s.snapshot.Queues)
	if r.H < curveLeast*n {
		return
	}
	top := aom.MaxMeanAge(s.snapshot, span, s.reading)
	for i := range n {
		q := &s.snapshot.Queues[i]
		part := r.Sub(0, i*r.H/n, r.W, (i+1)*r.H/n-i*r.H/n)
		title := q.Name + ": " + aom.FormatTitle(q, s.reading, r.W-titleMargin-len(q.Name)-2)
		aom.DrawMean(part.Box(screen.Thin, theme.Border, theme.QueueStyle(i), title), s.snapshot, i, span, top,
			s.reading, theme.QueueStyle(i))
	}
}

// comparison describes, for each reading, how much fresher or older the models behind the first queue are than those
// behind the other queue.
func (s *session) comparison() string {
	if len(s.snapshot.Queues) < 2 {
		return ""
	}
	this, other := &s.snapshot.Queues[0], &s.snapshot.Queues[1]
	var parts []string
	for reading := range olaf.Reading(olaf.Readings) {
		a, b := this.MeanAoM[reading], other.MeanAoM[reading]
		if !a.Known() || !b.Known() || b <= 0 {
			continue
		}
		fresher, word := 100*(1-float64(a)/float64(b)), "fresher"
		if fresher < 0 {
			fresher, word = -fresher, "older"
		}
		parts = append(parts, fmt.Sprintf("%s %s %s", num.FormatPercent(fresher), word, reading))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Models behind %s are %s than behind %s.", this.Name, strings.Join(parts, " and "), other.Name)
}

var resultColumns = []list.Column{
	{Name: "queue", Width: 8}, {Name: "out", Width: 7, Right: true, Drop: 2}, {Name: "lost", Width: 7,
		Right: true}, {Name: "merged", Width: 7, Right: true, Drop: 1},
	{Name: "delivered", Width: 7, Right: true, Drop: 3}, {Name: "dropped", Width: 7, Right: true, Drop: 4},
	{Name: "AoM/cluster", Width: 8, Right: true},
	{Name: "AoM/worker", Width: 8, Right: true}, {},
}

func (s *session) resultRows() list.Rows {
	lines := s.reportLines()
	if lines == nil {
		return s.liveResults()
	}
	return list.Rows{Len: len(lines), Row: func(i int) list.Row { return reportLine(i, lines[i]) }}
}

func reportLine(i int, line string) list.Row {
	style := theme.Text
	switch gradeIn(line) {
	case paper.Good:
		style = theme.Good
	case paper.Fair:
		style = theme.Warn
	case paper.Bad:
		style = theme.Bad
	}
	if strings.HasPrefix(line, "✗") {
		style = theme.Bad
	}
	return list.Row{ID: int64(i), Cells: []list.Cell{{Text: line, Style: style}}}
}

// gradeIn returns the grade of the verdict in a column of a report's line, or "" if there is none.
func gradeIn(line string) paper.Grade {
	for _, v := range paper.AllVerdicts() {
		if v.Grade() != "" && strings.Contains(line, "  "+string(v)) {
			return v.Grade()
		}
	}
	return ""
}

func (s *session) liveResults() list.Rows {
	if s.snapshot == nil {
		return list.Rows{}
	}
	return list.Rows{Len: len(s.snapshot.Queues), Row: func(i int) list.Row {
		q := &s.snapshot.Queues[i]
		c := &q.Counters
		return list.Row{ID: int64(i), Cells: []list.Cell{
			{Text: q.Name, Style: theme.QueueStyle(i)}, {Text: q.OutRate.String()},
			{Text: num.FormatPercent(lostPct(q))}, {Text: num.FormatCount(c.SumMerged())},
			{Text: num.FormatCount(c.SumOutput())}, {Text: num.FormatCount(c.Of("dropped_full"))},
			{Text: num.FormatNS(float64(q.MeanAoM[olaf.PerCluster])), Style: theme.Strong},
			{Text: num.FormatNS(float64(q.MeanAoM[olaf.PerWorker])), Style: theme.Strong},
		}}
	}}
}

// lostPct returns how many of the offered updates have been lost so far, in per cent and counted as in the paper.
func lostPct(q *slowmotion.QueueSnapshot) float64 {
	if q.Counters.SumOffered() == 0 {
		return 0
	}
	return 100 * float64(q.Counters.SumLost()-q.Counters.SumInside()) / float64(q.Counters.SumOffered())
}
