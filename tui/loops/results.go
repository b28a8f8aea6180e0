package loops

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// resultsPage returns the page with the report on all runs. Until there is a report, the page shows the counters of
// this run.
func (s *session) resultsPage() tui.Page {
	return tui.Page{
		Title: "Results",
		About: "The report of all runs once they are measured, as quitting prints it; until then what hosts and " +
			"switches of this run counted so far. " +
			"left and right shift long lines.",
		Draw:    s.drawResults,
		Rows:    s.resultRows,
		Keys:    tui.ShiftKeys(func() bool { return s.report != nil }),
		Caption: func() string { return s.viewCaption("Results") },
	}
}

func (s *session) drawResults(f *tui.Frame, r screen.Region) {
	title, columns := "Counted so far", []list.Column{{Name: "what", Width: 24}, {Name: "number", Width: 12,
		Right: true}, {Name: "unit", Width: 10}, {}}
	if s.report != nil {
		title, columns = fmt.Sprintf("Results of %d run(s)", s.runs.Total), []list.Column{{}}
	}
	inside := r.Box(screen.Thin, theme.Border, theme.Title, title)
	if s.report != nil {
		s.report.Fold(inside)
	}
	f.DrawList(r, inside, tui.Listing{Columns: columns, Rows: s.resultRows(), Focused: true})
}

func (s *session) resultRows() list.Rows {
	if s.report != nil {
		return list.FromTexts(s.report.Lines())
	}
	if s.snapshot == nil {
		return list.Rows{}
	}
	var rows []list.Row
	for _, counts := range []olaf.Counts{s.snapshot.Endpoints, s.snapshot.Program} {
		for i := range counts.Names() {
			c := &counts.Ledger().Counters[i]
			rows = append(rows, list.Row{ID: int64(len(rows)), Cells: []list.Cell{{Text: c.Title},
				{Text: num.FormatCount(counts.At(i)), Style: theme.Strong}, {Text: c.Unit, Style: theme.Dim}, {}}})
		}
	}
	return list.FromRows(rows)
}
