// Package screen implements a grid of styled cells into which panels draw. The grid has exactly the size of the
// terminal, and a panel cannot draw outside its region. The grid can be converted to terminal text, plain text or SVG
// without being redrawn.
package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Style is an index into a palette that the theme defines. Style 0 is plain text.
type Style uint8

// Cell is a character with its style. The second cell of a wide character contains 0.
type Cell struct {
	Rune  rune
	Style Style
}

// Phrase is a short text with a style.
type Phrase struct {
	Text  string
	Style Style
}

// Screen is a grid of cells. The zero value is empty. Resize sets its size.
type Screen struct {
	width, height int
	cells         []Cell
	out           strings.Builder
}

// limit is the maximum width and height of a grid. It bounds the memory for absurd sizes.
const limit = 2000

// Resize clears the grid and sets its size. Negative sizes count as 0.
func (s *Screen) Resize(width, height int) {
	s.width, s.height = min(max(width, 0), limit), min(max(height, 0), limit)
	n := s.width * s.height
	if cap(s.cells) < n {
		s.cells = make([]Cell, n)
	}
	s.cells = s.cells[:n]
	for i := range s.cells {
		s.cells[i] = Cell{Rune: ' '}
	}
}

// Size returns the number of columns and rows in the grid.
func (s *Screen) Size() (width, height int) { return s.width, s.height }

// All returns the region that covers the whole grid.
func (s *Screen) All() Region { return Region{s, 0, 0, s.width, s.height} }

// reset is the terminal sequence that ends a style.
const reset = "\x1b[0m"

// ANSI returns the grid as text for the terminal, with rows separated by newlines. palette contains the sequence that
// begins each style; it is empty for plain text. Styles end before the end of a row.
func (s *Screen) ANSI(palette []string) string {
	b := &s.out
	b.Reset()
	b.Grow(len(s.cells)*2 + 16*s.height)
	for y := range s.height {
		if y > 0 {
			b.WriteByte('\n')
		}
		open := ""
		row := s.cells[y*s.width : (y+1)*s.width]
		for _, c := range row {
			if c.Rune == 0 {
				continue
			}
			code := ""
			if int(c.Style) < len(palette) {
				code = palette[c.Style]
			}
			if code != open {
				if open != "" {
					b.WriteString(reset)
				}
				b.WriteString(code)
				open = code
			}
			b.WriteRune(c.Rune)
		}
		if open != "" {
			b.WriteString(reset)
		}
	}
	out := b.String()
	b.Reset()
	return out
}

// Text returns the grid without styles or trailing spaces.
func (s *Screen) Text() string {
	var b strings.Builder
	for y := range s.height {
		var line strings.Builder
		for _, c := range s.cells[y*s.width : (y+1)*s.width] {
			if c.Rune != 0 {
				line.WriteRune(c.Rune)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// Region is a rectangular part of a grid with its own origin. Drawing outside the region has no effect.
type Region struct {
	s    *Screen
	X, Y int // position of its origin in the grid
	W, H int
}

// Sub returns the part of r that begins at x, y and has at most the given size.
func (r Region) Sub(x, y, w, h int) Region {
	x, y = min(max(x, 0), r.W), min(max(y, 0), r.H)
	return Region{r.s, r.X + x, r.Y + y, min(max(w, 0), r.W-x), min(max(h, 0), r.H-y)}
}

// Column returns the part with index i if r is divided into n parts side by side.
func (r Region) Column(i, n int) Region {
	return r.Sub(i*r.W/n, 0, (i+1)*r.W/n-i*r.W/n, r.H)
}

// Contains reports whether a cell of the grid is inside the region.
func (r Region) Contains(x, y int) bool {
	return x >= r.X && y >= r.Y && x < r.X+r.W && y < r.Y+r.H
}

// Set draws a character that is one cell wide.
func (r Region) Set(x, y int, c rune, style Style) {
	if r.s != nil && x >= 0 && y >= 0 && x < r.W && y < r.H {
		r.s.cells[(r.Y+y)*r.s.width+r.X+x] = Cell{c, style}
	}
}

// Text draws a line of text that starts at x and returns the column after the text. Control characters are replaced
// with spaces.
func (r Region) Text(x, y int, style Style, text string) int {
	for _, c := range text {
		if c < ' ' || c == 0x7f || c == utf8.RuneError {
			c = ' '
		}
		switch runeColumns(c) {
		case 0:
			continue
		case 1:
			r.Set(x, y, c, style)
		default:
			if x+1 >= r.W {
				r.Set(x, y, ' ', style)
				return x + 1
			}
			r.Set(x, y, c, style)
			r.Set(x+1, y, 0, style)
			x++
		}
		x++
	}
	return x
}

// runeColumns returns the number of cells that a character takes up. Latin letters, arrows, boxes, blocks and braille
// patterns take up one cell in every locale.
func runeColumns(c rune) int {
	if c < 0x1100 || c >= 0x2190 && c < 0x2c00 {
		return 1
	}
	return runewidth.RuneWidth(c)
}

// TextWidth returns the number of columns that a text takes up.
func TextWidth(text string) int {
	n := 0
	for _, c := range text {
		n += runeColumns(c)
	}
	return n
}

// TextRight draws a line of text that ends before column x.
func (r Region) TextRight(x, y int, style Style, text string) {
	r.Text(x-TextWidth(text), y, style, text)
}

// CutText shortens a text to width columns. It marks a cut with "…".
func CutText(text string, width int) string {
	if TextWidth(text) <= width {
		return text
	}
	n := 0
	for i, c := range text {
		if n += runeColumns(c); n >= width {
			return text[:i] + "…"[:3*min(max(width, 0), 1)]
		}
	}
	return text
}

// Fill sets every cell in the region to the same character and style.
func (r Region) Fill(c rune, style Style) {
	for y := range r.H {
		for x := range r.W {
			r.Set(x, y, c, style)
		}
	}
}

// Restyle changes the style of all cells in the region.
func (r Region) Restyle(style Style) {
	for y := range r.H {
		for x := range r.W {
			if r.s != nil {
				r.s.cells[(r.Y+y)*r.s.width+r.X+x].Style = style
			}
		}
	}
}

// Frame contains the characters for the border of a box.
type Frame [6]rune // ─ │ ┌ ┐ └ ┘

// The available borders.
var (
	Thin   = Frame{'─', '│', '┌', '┐', '└', '┘'}
	Heavy  = Frame{'━', '┃', '┏', '┓', '┗', '┛'}
	Dotted = Frame{'┄', '┆', '┌', '┐', '└', '┘'}
)

// Box draws a border with a title and returns the region inside the border.
func (r Region) Box(f Frame, border, title Style, name string) Region {
	if r.W < 2 || r.H < 2 {
		return r.Sub(0, 0, 0, 0)
	}
	for x := 1; x < r.W-1; x++ {
		r.Set(x, 0, f[0], border)
		r.Set(x, r.H-1, f[0], border)
	}
	for y := 1; y < r.H-1; y++ {
		r.Set(0, y, f[1], border)
		r.Set(r.W-1, y, f[1], border)
	}
	r.Set(0, 0, f[2], border)
	r.Set(r.W-1, 0, f[3], border)
	r.Set(0, r.H-1, f[4], border)
	r.Set(r.W-1, r.H-1, f[5], border)
	if name != "" {
		r.Sub(2, 0, r.W-4, 1).Text(0, 0, title, " "+name+" ")
	}
	return r.Sub(1, 1, r.W-2, r.H-2)
}
