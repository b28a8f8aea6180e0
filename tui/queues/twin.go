package queues

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// twinPage returns the page that shows measured ages next to those of the twin.
func (s *session) twinPage() tui.Page {
	return tui.Page{
		Title: "Twin",
		About: "Each age three times: the twin's for planned arrivals, the twin's for logged arrivals, and measured. " +
			"The first two differ by the senders, the last two by the output.",
		Draw:    s.drawTwin,
		Rows:    func() list.Rows { return twinRows(s.pairs()) },
		Caption: func() string { return s.viewCaption("Ages beside the twin's") },
	}
}

// pairs returns the rows that contain ages next to those of the twin. They come from the experiment so far or, when the
// run has ended, from this run.
func (s *session) pairs() []results.Row {
	if s.options.CompareTwin {
		if s.bench == nil {
			return nil
		}
		return s.bench.Rows
	}
	var rows []results.Row
	for i := range s.snapshot.Queues {
		if pair := s.snapshot.Queues[i].Pair; pair != nil {
			rows = append(rows, *pair)
		}
	}
	return rows
}

var twinColumns = []list.Column{
	{Name: "age", Width: 13}, {Name: "queue", Width: 6}, {Name: "out", Width: 8, Right: true, Drop: 1},
	{Name: "plan", Width: 10, Right: true},
	{Name: "twin", Width: 10, Right: true}, {Name: "measured", Width: 10, Right: true}, {Name: "off, %", Width: 6,
		Right: true, Drop: 2}, {},
}

// twinRows returns the ages that a report also contains, with the same precision.
func twinRows(rows []results.Row) list.Rows {
	var lines []list.Row
	for i := range rows {
		r := &rows[i]
		for k := range r.Stats {
			b := &r.Stats[k]
			if b.TwinComparison == nil || b.Column == "" || b.Unit != "ns" {
				continue
			}
			lines = append(lines, list.Row{ID: int64(len(lines)), Cells: []list.Cell{
				{Text: b.Column}, {Text: r.Queue, Style: theme.QueueStyle(i)}, {Text: olaf.Rate(r.OutRateBPS).String()},
				{Text: text.Duration(b.Plan)},
				{Text: text.Duration(b.Twin)}, {Text: text.Duration(b.Measured), Style: theme.Strong},
				{Text: text.FormatSigned(b.OutputPct())},
			}})
		}
	}
	return list.FromRows(lines)
}

// moods maps the kinds of statements about runs on real cables to styles.
var moods = map[text.Mood]screen.Style{text.Neutral: theme.Text, text.Fine: theme.Good, text.Doubt: theme.Warn,
	text.Wrong: theme.Bad}

// witnessPhrases describes, for each row, the comparison of decisions, how late frames were, and the ages that are
// withheld.
func witnessPhrases(rows []results.Row) (lines []screen.Phrase) {
	say := func(style screen.Style, format string, a ...any) {
		lines = append(lines, screen.Phrase{Text: fmt.Sprintf(format, a...), Style: style})
	}
	for i := range rows {
		r := &rows[i]
		name := r.Queue + " " + olaf.Rate(r.OutRateBPS).String()
		for _, said := range text.Real(r) {
			say(moods[said.Mood], "%s: %s", name, said.Text)
		}
		if r.InvalidRuns > 0 {
			say(theme.Bad, "%s: %s invalid: %s", name, olaf.Plural(r.InvalidRuns, "run"), r.Reasons[0])
		}
	}
	return lines
}

func (s *session) drawTwin(f *tui.Frame, r screen.Region) {
	rows := s.pairs()
	title := "Ages beside the twin's"
	if s.options.CompareTwin && s.bench != nil {
		title += fmt.Sprintf(", %d of %d runs", s.bench.Done, s.bench.Total)
	}
	lines := twinRows(rows)
	if lines.Len == 0 {
		r.Text(1, 0, theme.Dim, "nothing yet: ages are set beside the twin's when a run is over")
		return
	}
	listing, below := list.SplitPage(r, lines.Len)
	f.DrawList(listing, listing.Box(screen.Thin, theme.Border, theme.Title, title),
		tui.Listing{Columns: twinColumns, Rows: lines, Focused: true})
	y := 0
	for _, phrase := range witnessPhrases(rows) {
		for _, line := range chart.WrapText(phrase.Text, below.W-2) {
			if y < below.H {
				below.Text(1, y, phrase.Style, line)
			}
			y++
		}
	}
}
