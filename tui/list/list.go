// Package list is a scrolling table with a cursor and a filter. Where room is short whole columns give way, so that no
// number is ever cut; where there is plenty, rows get taller for the charts in them.
package list

import (
	"cmp"
	"slices"
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

// Column is a heading and how its column takes part in the layout.
type Column struct {
	Name  string
	Width int  // at least; numbers make it wider. 0 takes what is left
	Right bool // numbers: never cut
	Least int  // of a column of Width 0: what it must have, else it is left out
	Drop  int  // the column with the highest goes first where room is short; 0 stays
}

// Cell is one text, or a picture; Style 0 is plain.
type Cell struct {
	Text  string
	Style screen.Style
	Draw  func(screen.Region) // instead of Text
}

// Row is one line, with an id of the caller's.
type Row struct {
	ID    int64
	Cells []Cell
}

// Rows are a list's lines. Only those that are drawn, or looked at by a filter, are made.
type Rows struct {
	Len  int
	Row  func(i int) Row
	Text func(i int) string // what a filter looks at; nil: all cells
	Of   string             // what Len counts where that is not all there is: "the newest 256 events"
	Tall int                // how many lines a row may take where there is room; below 1 counts as 1
}

// Lines are rows that exist already.
func Lines(rows []Row) Rows {
	return Rows{Len: len(rows), Row: func(i int) Row { return rows[i] }}
}

// Texts are rows of one cell each.
func Texts(lines []string) Rows {
	return Rows{Len: len(lines), Row: func(i int) Row { return Row{ID: int64(i), Cells: []Cell{{Text: lines[i]}}} }}
}

// passes says whether a row is to be shown: every word of the filter occurs in it, or does not where it starts with "!".
func (r *Rows) passes(words []string, i int) bool {
	var text string
	if r.Text != nil {
		text = r.Text(i)
	} else {
		row := r.Row(i)
		for _, c := range row.Cells {
			text += c.Text + "\n"
		}
	}
	text = strings.ToLower(text)
	for _, word := range words {
		word, inverse := strings.CutPrefix(word, "!")
		if strings.Contains(text, word) == inverse {
			return false
		}
	}
	return true
}

// Filtered is the rows that pass the filter.
func (s *State) Filtered(rows Rows) Rows {
	words := strings.Fields(strings.ToLower(s.Filter))
	if len(words) == 0 {
		return rows
	}
	var kept []int
	for i := range rows.Len {
		if rows.passes(words, i) {
			kept = append(kept, i)
		}
	}
	out := rows
	out.Len, out.Row = len(kept), func(i int) Row { return rows.Row(kept[i]) }
	return out
}

// Order is the places of n rows, the largest by a key first, those whose key is not a number last. Without a key they stay
// as they are.
func Order(n int, key func(i int) float64) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	if key != nil {
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(key(b), key(a)) }) // which has NaN below all
	}
	return places
}

// Move changes the selection by n rows of count, and keeps it inside.
func (s *State) Move(n, count int) {
	s.Selected = min(max(s.Selected+n, 0), max(count-1, 0))
}

// top is the first row to be drawn so that the selected one is among shown rows.
func (s *State) top(count, shown int) int {
	return min(max(s.Selected-shown+1, 0), max(count-shown, 0))
}

// Placed is where rows were drawn, for the mouse.
type Placed struct {
	Body   screen.Region
	Top    int // the first row
	Height int // of a row, in lines
	Shown  int
}

// At is the row at a cell of the grid; false where there is none.
func (p *Placed) At(x, y int) (row int, ok bool) {
	if !p.Body.Contains(x, y) {
		return 0, false
	}
	n := (y - p.Body.Y) / max(p.Height, 1)
	return p.Top + n, n < p.Shown
}

// Draw draws headings and the rows around the selection. Rows must be filtered already.
func Draw(r screen.Region, columns []Column, rows Rows, s State, focused bool) Placed {
	if r.H < 1 || r.W < 1 {
		return Placed{}
	}
	body := r
	if headed(columns) {
		body = r.Sub(0, 1, r.W, r.H-1)
	}
	if rows.Len == 0 {
		heading(r, columns, layout(columns, nil, r.W))
		body.Text(0, 0, theme.Dim, nothing(&s))
		return Placed{Body: body}
	}
	s.Move(0, rows.Len)
	tall := min(max(body.H/rows.Len, 1), max(rows.Tall, 1))
	p, visible, places := arrange(body, columns, &rows, &s, tall)
	if tall > 1 && !pictured(columns, places) {
		p, visible, places = arrange(body, columns, &rows, &s, 1)
	}
	heading(r, columns, places)
	if p.Shown < rows.Len && body.H > scrolled {
		body.Set(body.W-1, p.Top*(body.H-1)/(rows.Len-p.Shown), '▐', theme.Dim)
	}
	for i := range visible {
		line := p.Body.Sub(0, i*p.Height, p.Body.W, p.Height)
		draw(line, columns, places, &visible[i], s.Pan)
		if focused && p.Top+i == s.Selected {
			line.Sub(0, 0, line.W, 1).Restyle(theme.Selected)
		}
	}
	return p
}

// scrolled is how many rows there must be more than for a scroll bar.
const scrolled = 2

// arrange makes the rows that are to be seen when each takes some lines, and gives the columns their places beside the
// scroll bar.
func arrange(body screen.Region, columns []Column, rows *Rows, s *State, tall int) (Placed, []Row, []place) {
	p := Placed{Body: body, Height: tall, Shown: min(body.H/tall, rows.Len)}
	p.Top = s.top(rows.Len, p.Shown)
	if p.Shown < rows.Len && body.H > scrolled {
		p.Body.W--
	}
	visible := make([]Row, p.Shown)
	for i := range visible {
		visible[i] = rows.Row(p.Top + i)
	}
	return p, visible, layout(columns, visible, p.Body.W)
}

// pictured says that there is a column for pictures, which taller rows are for.
func pictured(columns []Column, places []place) bool {
	for i, c := range columns {
		if c.Least > 0 && places[i].width > 0 {
			return true
		}
	}
	return false
}

func nothing(s *State) string {
	if s.Filter != "" {
		return "nothing matches /" + s.Filter
	}
	return "nothing yet"
}

// headed says whether any column has a heading.
func headed(columns []Column) bool {
	return slices.ContainsFunc(columns, func(c Column) bool { return c.Name != "" })
}

func heading(r screen.Region, columns []Column, places []place) {
	if !headed(columns) {
		return
	}
	for i, c := range columns {
		put(r.Sub(0, 0, r.W, 1), places[i], Cell{Text: c.Name, Style: theme.Strong}, c.Right)
	}
}

func draw(r screen.Region, columns []Column, places []place, row *Row, pan int) {
	for i := range min(len(columns), len(row.Cells)) {
		c := row.Cells[i]
		c.Text = panned(c.Text, pan)
		put(r, places[i], c, columns[i].Right)
	}
}

func panned(text string, n int) string {
	if n <= 0 {
		return text
	}
	runes := []rune(text)
	return string(runes[min(n, len(runes)):])
}

// place is where a column is drawn; of width 0 it is not.
type place struct{ x, width int }

// chartLeast is how many rows a chart below a list needs, with its border.
const chartLeast = 8

// Chrome is how many rows of a list's box are not its lines: border and heading.
const Chrome = 3

// Split gives a list of so many lines what it needs of a page, and charts below it the rest where that is enough for them.
// A list that is too long leaves them two fifths.
func Split(r screen.Region, lines int) (listing, below screen.Region) {
	high := lines + Chrome
	if r.H-high < chartLeast {
		high = min(high, max(r.H*3/5, r.H-3*chartLeast))
	}
	if r.H-high < chartLeast {
		high = r.H
	}
	return r.Sub(0, 0, r.W, high), r.Sub(0, high, r.W, r.H-high)
}

// layout gives every column its place in a width: as wide as its numbers, whole columns left out where room is short, and
// what is left over to those that take it.
func layout(columns []Column, rows []Row, width int) []place {
	out := make([]place, len(columns))
	kept := make([]bool, len(columns))
	for i := range columns {
		out[i].width, kept[i] = wanted(columns, rows, i), true
	}
	order := dropping(columns)
	for _, i := range order {
		kept[i] = needed(out, kept) <= width
	}
	for _, i := range slices.Backward(order) { // a narrow one may fit where a wide one went later
		if kept[i] = true; needed(out, kept) > width {
			kept[i] = false
		}
	}
	spread(columns, out, kept, width-needed(out, kept))
	x := 0
	for i := range out {
		if !kept[i] {
			out[i] = place{}
			continue
		}
		free := max(width-x, 0)
		if columns[i].Right && out[i].width > free {
			free = 0 // rather no number than half of one
		}
		out[i].x, out[i].width = x, min(out[i].width, free)
		x += out[i].width + 1
	}
	return out
}

// dropping are the columns that may give way, the first to go first.
func dropping(columns []Column) []int {
	var order []int
	for i, c := range columns {
		if c.Drop > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return columns[b].Drop - columns[a].Drop })
	return order
}

// wanted is how wide a column must be: texts may be cut, numbers and their heading may not.
func wanted(columns []Column, rows []Row, i int) int {
	c := &columns[i]
	if c.Width == 0 {
		return c.Least
	}
	if !c.Right {
		return c.Width
	}
	n := max(c.Width, screen.Width(c.Name))
	for _, row := range rows {
		if i < len(row.Cells) {
			n = max(n, screen.Width(row.Cells[i].Text))
		}
	}
	return n
}

// needed is how wide the kept columns are together, with a blank between two.
func needed(places []place, kept []bool) int {
	n := -1
	for i, p := range places {
		if kept[i] {
			n += p.width + 1
		}
	}
	return max(n, 0)
}

// spread gives what is left over to the columns that take it.
func spread(columns []Column, places []place, kept []bool, free int) {
	open := 0
	for i, c := range columns {
		if kept[i] && c.Width == 0 {
			open++
		}
	}
	for i, c := range columns {
		if kept[i] && c.Width == 0 && free > 0 {
			share := free / open
			places[i].width += share
			free -= share
			open--
		}
	}
}

func put(r screen.Region, p place, c Cell, right bool) {
	cell := r.Sub(p.x, 0, p.width, r.H)
	switch {
	case cell.W == 0:
	case c.Draw != nil:
		c.Draw(cell)
	case right:
		cell.Right(cell.W, 0, c.Style, c.Text)
	default:
		cell.Text(0, 0, c.Style, screen.Cut(c.Text, cell.W))
	}
}
