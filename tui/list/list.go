// Package list draws a scrolling table with a cursor and a filter. If the table is narrow, it omits whole columns, so
// that numbers are never cut off. If it is tall, rows with charts become taller.
package list

import (
	"cmp"
	"slices"
	"strings"

	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// State contains the cursor, the filter and the horizontal shift of a list. Selected is an index into the rows that
// match the filter.
type State struct {
	Selected int
	Filter   string
	Pan      int // number of columns by which lines are shifted to the left
}

// Column contains the heading and the layout of a column.
type Column struct {
	Name  string
	Width int  // minimum width, extended for longer numbers; 0 takes the remaining width
	Right bool // right-aligned numbers that are never cut
	Least int  // minimum width if Width is 0; below it, the column is dropped
	Drop  int  // columns with the highest value are dropped first; columns with 0 are never dropped
}

// Cell is a text or a picture. Style 0 is the plain style.
type Cell struct {
	Text  string
	Style screen.Style
	Draw  func(screen.Region) // draws the cell instead of Text
}

// Row is a line of a list, with an ID for the caller.
type Row struct {
	ID    int64
	Cells []Cell
}

// Rows contains the lines of a list. A line is created only when it is drawn or filtered.
type Rows struct {
	Len  int
	Row  func(i int) Row
	Text func(i int) string // text for the filter; nil uses all cells
	Of   string             // replaces Len in captions if there are more rows: "the newest 256 events"
	Tall int                // maximum lines per row if there is enough room; below 1 counts as 1
}

// FromRows returns Rows for a slice of existing rows.
func FromRows(rows []Row) Rows {
	return Rows{Len: len(rows), Row: func(i int) Row { return rows[i] }}
}

// FromTexts returns Rows in which each line is a single cell.
func FromTexts(lines []string) Rows {
	return Rows{Len: len(lines), Row: func(i int) Row { return Row{ID: int64(i), Cells: []Cell{{Text: lines[i]}}} }}
}

// matches reports whether a row matches the filter. A row must contain every word of the filter, except that words
// beginning with "!" must not occur in it.
func (r *Rows) matches(words []string, i int) bool {
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

// FilterRows returns the rows that match the filter.
func (s *State) FilterRows(rows Rows) Rows {
	words := strings.Fields(strings.ToLower(s.Filter))
	if len(words) == 0 {
		return rows
	}
	var kept []int
	for i := range rows.Len {
		if rows.matches(words, i) {
			kept = append(kept, i)
		}
	}
	out := rows
	out.Len, out.Row = len(kept), func(i int) Row { return rows.Row(kept[i]) }
	return out
}

// SortOrder returns the indexes of n rows in descending order of key. Rows whose key is NaN come last. If key is nil,
// the order does not change.
func SortOrder(n int, key func(i int) float64) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	if key != nil {
		// cmp.Compare puts NaN below all numbers
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(key(b), key(a)) })
	}
	return places
}

// Move moves the selection by n rows within the given number of rows.
func (s *State) Move(n, count int) {
	s.Selected = min(max(s.Selected+n, 0), max(count-1, 0))
}

// topRow returns the index of the first row to draw. The selected row must be among the shown rows.
func (s *State) topRow(count, shown int) int {
	return min(max(s.Selected-shown+1, 0), max(count-shown, 0))
}

// Placed describes where rows were drawn, for handling mouse clicks.
type Placed struct {
	Body   screen.Region
	Top    int // first row drawn
	Height int // lines per row
	Shown  int
}

// RowAt returns the index of the row at a cell of the screen, or false if there is none.
func (p *Placed) RowAt(x, y int) (row int, ok bool) {
	if !p.Body.Contains(x, y) {
		return 0, false
	}
	n := (y - p.Body.Y) / max(p.Height, 1)
	return p.Top + n, n < p.Shown
}

// Draw draws the headings and the rows around the selection. rows must already be filtered.
func Draw(r screen.Region, columns []Column, rows Rows, s State, focused bool) Placed {
	if r.H < 1 || r.W < 1 {
		return Placed{}
	}
	body := r
	if hasHeadings(columns) {
		body = r.Sub(0, 1, r.W, r.H-1)
	}
	if rows.Len == 0 {
		drawHeading(r, columns, layoutColumns(columns, nil, r.W))
		body.Text(0, 0, theme.Dim, emptyText(&s))
		return Placed{Body: body}
	}
	s.Move(0, rows.Len)
	tall := min(max(body.H/rows.Len, 1), max(rows.Tall, 1))
	p, visible, places := arrangeRows(body, columns, &rows, &s, tall)
	if tall > 1 && !hasPictures(columns, places) {
		p, visible, places = arrangeRows(body, columns, &rows, &s, 1)
	}
	drawHeading(r, columns, places)
	if p.Shown < rows.Len && body.H > scrolled {
		body.Set(body.W-1, p.Top*(body.H-1)/(rows.Len-p.Shown), '▐', theme.Dim)
	}
	for i := range visible {
		line := p.Body.Sub(0, i*p.Height, p.Body.W, p.Height)
		drawCells(line, columns, places, &visible[i], s.Pan)
		if focused && p.Top+i == s.Selected {
			line.Sub(0, 0, line.W, 1).Restyle(theme.Selected)
		}
	}
	return p
}

// scrolled is the height of the list's body above which a scroll bar is drawn.
const scrolled = 2

// arrangeRows creates the visible rows, each with the height tall, and lays out the columns. It leaves room for the
// scroll bar.
func arrangeRows(body screen.Region, columns []Column, rows *Rows, s *State, tall int) (Placed, []Row, []place) {
	p := Placed{Body: body, Height: tall, Shown: min(body.H/tall, rows.Len)}
	p.Top = s.topRow(rows.Len, p.Shown)
	if p.Shown < rows.Len && body.H > scrolled {
		p.Body.W--
	}
	visible := make([]Row, p.Shown)
	for i := range visible {
		visible[i] = rows.Row(p.Top + i)
	}
	return p, visible, layoutColumns(columns, visible, p.Body.W)
}

// hasPictures reports whether a column with pictures is visible. Only such columns need taller rows.
func hasPictures(columns []Column, places []place) bool {
	for i, c := range columns {
		if c.Least > 0 && places[i].width > 0 {
			return true
		}
	}
	return false
}

func emptyText(s *State) string {
	if s.Filter != "" {
		return "nothing matches /" + s.Filter
	}
	return "nothing yet"
}

// hasHeadings reports whether any column has a heading.
func hasHeadings(columns []Column) bool {
	return slices.ContainsFunc(columns, func(c Column) bool { return c.Name != "" })
}

func drawHeading(r screen.Region, columns []Column, places []place) {
	if !hasHeadings(columns) {
		return
	}
	for i, c := range columns {
		putCell(r.Sub(0, 0, r.W, 1), places[i], Cell{Text: c.Name, Style: theme.Strong}, c.Right)
	}
}

func drawCells(r screen.Region, columns []Column, places []place, row *Row, pan int) {
	for i := range min(len(columns), len(row.Cells)) {
		c := row.Cells[i]
		c.Text = panText(c.Text, pan)
		putCell(r, places[i], c, columns[i].Right)
	}
}

func panText(text string, n int) string {
	if n <= 0 {
		return text
	}
	runes := []rune(text)
	return string(runes[min(n, len(runes)):])
}

// place is the position of a column. If the width is 0, the column is not shown.
type place struct{ x, width int }

// chartLeast is the minimum height of a chart below a list, including its border.
const chartLeast = 8

// Chrome is the number of rows that the border and the heading of a list take up.
const Chrome = 3

// SplitPage divides a page between a list with the given number of lines and charts below it. There are charts only if
// enough rows remain for them. If the list is too long, the charts get two fifths of the page.
func SplitPage(r screen.Region, lines int) (listing, below screen.Region) {
	high := lines + Chrome
	if r.H-high < chartLeast {
		high = min(high, max(r.H*3/5, r.H-3*chartLeast))
	}
	if r.H-high < chartLeast {
		high = r.H
	}
	return r.Sub(0, 0, r.W, high), r.Sub(0, high, r.W, r.H-high)
}

// layoutColumns places the columns within width. Columns are wide enough for their numbers. If they do not all fit,
// whole columns are omitted. Columns with Width 0 share the remaining width.
func layoutColumns(columns []Column, rows []Row, width int) []place {
	out := make([]place, len(columns))
	kept := make([]bool, len(columns))
	for i := range columns {
		out[i].width, kept[i] = wantedWidth(columns, rows, i), true
	}
	order := dropOrder(columns)
	for _, i := range order {
		kept[i] = neededWidth(out, kept) <= width
	}
	for _, i := range slices.Backward(order) { // a narrow column may fit after a wider one was dropped
		if kept[i] = true; neededWidth(out, kept) > width {
			kept[i] = false
		}
	}
	spreadWidth(columns, out, kept, width-neededWidth(out, kept))
	x := 0
	for i := range out {
		if !kept[i] {
			out[i] = place{}
			continue
		}
		free := max(width-x, 0)
		if columns[i].Right && out[i].width > free {
			free = 0 // half a number would be misleading, so it is left out
		}
		out[i].x, out[i].width = x, min(out[i].width, free)
		x += out[i].width + 1
	}
	return out
}

// dropOrder returns the columns that may be omitted, starting with the first one to omit.
func dropOrder(columns []Column) []int {
	var order []int
	for i, c := range columns {
		if c.Drop > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return columns[b].Drop - columns[a].Drop })
	return order
}

// wantedWidth returns the minimum width of a column. Text may be cut off, but numbers and the headings of number
// columns may not.
func wantedWidth(columns []Column, rows []Row, i int) int {
	c := &columns[i]
	if c.Width == 0 {
		return c.Least
	}
	if !c.Right {
		return c.Width
	}
	n := max(c.Width, screen.TextWidth(c.Name))
	for _, row := range rows {
		if i < len(row.Cells) {
			n = max(n, screen.TextWidth(row.Cells[i].Text))
		}
	}
	return n
}

// neededWidth returns the total width of the kept columns, with one space between adjacent columns.
func neededWidth(places []place, shown []bool) int {
	n := -1
	for i, p := range places {
		if shown[i] {
			n += p.width + 1
		}
	}
	return max(n, 0)
}

// spreadWidth distributes the free width among the columns with Width 0.
func spreadWidth(columns []Column, places []place, shown []bool, free int) {
	open := 0
	for i, c := range columns {
		if shown[i] && c.Width == 0 {
			open++
		}
	}
	for i, c := range columns {
		if shown[i] && c.Width == 0 && free > 0 {
			share := free / open
			places[i].width += share
			free -= share
			open--
		}
	}
}

func putCell(r screen.Region, p place, c Cell, right bool) {
	cell := r.Sub(p.x, 0, p.width, r.H)
	switch {
	case cell.W == 0:
	case c.Draw != nil:
		c.Draw(cell)
	case right:
		cell.TextRight(cell.W, 0, c.Style, c.Text)
	default:
		cell.Text(0, 0, c.Style, screen.CutText(c.Text, cell.W))
	}
}
