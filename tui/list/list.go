// Package list is a scrolling table with a selected row and a filter.
package list

import (
	"strings"

	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// State is where a list stands. Selected counts rows that pass the filter.
type State struct {
	Selected int
	Filter   string
	Pan      int // columns that lines are shifted to the left
}

// Column is a heading; Width 0 takes what is left.
type Column struct {
	Name  string
	Width int
	Right bool
}

// Cell is one text; Style 0 is plain.
type Cell struct {
	Text  string
	Style screen.Style
}

// Row is one line, with an id of the caller's.
type Row struct {
	ID    int64
	Cells []Cell
}

// Passes says whether a row is to be shown: every word of the filter occurs in it, or does not where it starts with "!".
func (s *State) Passes(r *Row) bool {
	for _, word := range strings.Fields(strings.ToLower(s.Filter)) {
		text, inverse := strings.CutPrefix(word, "!")
		found := false
		for i := range r.Cells {
			found = found || strings.Contains(strings.ToLower(r.Cells[i].Text), text)
		}
		if found == inverse {
			return false
		}
	}
	return true
}

// Filtered is the rows that pass.
func (s *State) Filtered(rows []Row) []Row {
	if s.Filter == "" {
		return rows
	}
	out := make([]Row, 0, len(rows))
	for i := range rows {
		if s.Passes(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	return out
}

// Move changes the selection by n rows of count, and keeps it inside.
func (s *State) Move(n, count int) {
	s.Selected = min(max(s.Selected+n, 0), max(count-1, 0))
}

// Top is the first row to be drawn so that the selected one is visible in height rows.
func (s *State) Top(count, height int) int {
	return min(max(s.Selected-height+1, 0), max(count-height, 0))
}

// Draw draws headings and the rows around the selection. Rows must be filtered already.
func Draw(r screen.Region, columns []Column, rows []Row, s State, focused bool) {
	if r.H < 1 || r.W < 1 {
		return
	}
	at := positions(columns, r.W)
	body := r
	if headed(columns) {
		for i, c := range columns {
			put(r, at[i], at[i+1], 0, Cell{c.Name, theme.Strong}, c.Right)
		}
		body = r.Sub(0, 1, r.W, r.H-1)
	}
	if len(rows) == 0 {
		text := "nothing yet"
		if s.Filter != "" {
			text = "nothing matches /" + s.Filter
		}
		body.Text(0, 0, theme.Dim, text)
		return
	}
	s.Move(0, len(rows))
	top := s.Top(len(rows), body.H)
	for y := 0; y < body.H && top+y < len(rows); y++ {
		row := &rows[top+y]
		for i := range columns {
			if i < len(row.Cells) {
				c := row.Cells[i]
				c.Text = panned(c.Text, s.Pan)
				put(body, at[i], at[i+1], y, c, columns[i].Right)
			}
		}
		if focused && top+y == s.Selected {
			body.Sub(0, y, body.W, 1).Restyle(theme.Selected)
		}
	}
	if len(rows) > body.H && body.H > 2 {
		thumb := top * (body.H - 1) / max(len(rows)-body.H, 1)
		body.Set(body.W-1, thumb, '▐', theme.Dim)
	}
}

// headed says whether any column has a heading.
func headed(columns []Column) bool {
	for _, c := range columns {
		if c.Name != "" {
			return true
		}
	}
	return false
}

// Body is the part of a list's region that holds its rows.
func Body(r screen.Region, columns []Column) screen.Region {
	if headed(columns) {
		return r.Sub(0, 1, r.W, r.H-1)
	}
	return r
}

func panned(text string, n int) string {
	if n <= 0 {
		return text
	}
	runes := []rune(text)
	return string(runes[min(n, len(runes)):])
}

// positions is where each column starts, and where the last one ends.
func positions(columns []Column, width int) []int {
	free := width
	open := 0
	for _, c := range columns {
		free -= c.Width
		if c.Width == 0 {
			open++
		} else {
			free--
		}
	}
	at := make([]int, 0, len(columns)+1)
	x := 0
	for _, c := range columns {
		at = append(at, min(x, width))
		if c.Width == 0 {
			x += max(free/open, 4)
		} else {
			x += c.Width + 1
		}
	}
	return append(at, min(x, width+1))
}

func put(r screen.Region, from, to, y int, c Cell, right bool) {
	cell := r.Sub(from, y, to-from-1, 1)
	if right {
		cell.Right(cell.W, 0, c.Style, c.Text)
		return
	}
	cell.Text(0, 0, c.Style, c.Text)
}
