package queues

import (
	"context"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// inspecting contains the last known state of tables, registers and devices, which takes more time to read than a
// snapshot.
type inspecting struct {
	seen    *slowmotion.Inspection
	changed map[uint32]bool // changed registers, by address
	wanted  bool            // a page has shown the inspection since the last look
	asking  bool
	err     string
}

// inspectEvery is the number of snapshots after which the inspection is repeated.
const inspectEvery = 8

// inspect reads tables, registers and devices while a page shows them.
func (s *session) inspect() tea.Cmd {
	in := &s.inspects
	if !in.wanted || in.asking || in.seen != nil && s.looks%inspectEvery != 0 {
		return nil
	}
	in.wanted, in.asking = false, true
	source := s.options.Source
	return func() tea.Msg {
		seen, err := source.Inspect(context.Background())
		return tui.Then(func(*tui.Frame) { s.storeInspection(seen, err) })
	}
}

func (s *session) storeInspection(seen *slowmotion.Inspection, err error) {
	in := &s.inspects
	in.asking = false
	if err != nil {
		in.err = err.Error()
		return
	}
	in.err, in.changed, in.seen = "", changedRegisters(in.seen, seen), seen
}

// inspection defines a page that shows part of the inspected state.
type inspection struct {
	title   string
	head    func(*slowmotion.Inspection) screen.Phrase
	columns []list.Column
	rows    func(*slowmotion.Inspection) list.Rows
	about   func(*slowmotion.Inspection, list.Row) string // returns the full text of a line, shown below the list; may be nil
	below   func(screen.Region)                           // draws charts if rows are left; may be nil
}

// inspectionPage returns the page that an inspection defines.
func (s *session) inspectionPage(i inspection, about string) tui.Page {
	rows := func() list.Rows {
		if s.inspects.seen == nil {
			return list.Rows{}
		}
		return i.rows(s.inspects.seen)
	}
	return tui.Page{
		Title: i.title, About: about, Rows: rows,
		Draw:    func(f *tui.Frame, r screen.Region) { s.drawInspection(f, r, &i, rows()) },
		Caption: func() string { return s.viewCaption(i.title) },
	}
}

// aboutRows is the maximum number of rows for the full text of the selected line.
const aboutRows = 2

func (s *session) drawInspection(f *tui.Frame, r screen.Region, i *inspection, rows list.Rows) {
	s.inspects.wanted = true
	in := s.inspects.seen
	if in == nil {
		text := "asking the device…"
		if s.inspects.err != "" {
			text = s.inspects.err
		}
		r.Text(1, 0, theme.Dim, text)
		return
	}
	head := i.head(in)
	r.Text(1, 0, head.Style, head.Text)
	box := r.Sub(0, 1, r.W, r.H-1)
	if i.below != nil {
		var rest screen.Region
		if box, rest = list.SplitPage(box, rows.Len); rest.H > 0 {
			i.below(rest)
		}
	}
	inside := box.Box(screen.Thin, theme.Border, theme.Title, i.title)
	if row, ok := f.SelectedRow(); ok && i.about != nil && inside.H > 3*aboutRows {
		words := inside.Sub(0, inside.H-aboutRows, inside.W, aboutRows)
		for y, line := range chart.WrapText(i.about(in, row), words.W-2) {
			words.Text(1, y, theme.Dim, line)
		}
		inside.H -= aboutRows
	}
	f.DrawList(box, inside, tui.Listing{Columns: i.columns, Rows: rows, Focused: true})
}
