package table

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Grid is a table of text cells that is printed to fit the page. If it is too wide, columns of prose are folded between
// words, spare columns are omitted and their names listed, and the remaining columns are split into several tables.
// Words are never broken.
type Grid struct {
	Columns []GridColumn
	Rows    [][]string
	Keys    int  // leading columns that identify a row, repeated in every table of a stack; at least the first
	OneLine bool // one line per row: columns after the keys share the remaining width; longer cells end in …
	// heads are lines between rows, by the index of the following row.
	heads map[int]string
}

// GridColumn describes a column of a Grid.
type GridColumn struct {
	Header string
	Right  bool // right-aligned numbers
	Prose  bool // may be folded
	Spare  int  // omitted on a narrow page, greatest first; 0 is never omitted
}

const (
	gap     = 2  // between columns
	leastOf = 18 // minimum width of a folded column in characters
)

// Add adds a row to the grid.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

// Head adds a line of text before the next row that is added.
func (g *Grid) Head(text string) {
	if g.heads == nil {
		g.heads = map[int]string{}
	}
	g.heads[len(g.Rows)] = text
}

// writeHead prints the line of text before a row, if there is one.
func (g *Grid) writeHead(b *strings.Builder, row, width int) {
	if text := g.heads[row]; text != "" {
		b.WriteString(strings.Join(Fold(text, width), "\n") + "\n")
	}
}

// Write prints the grid. Its lines have at most width characters.
func (g *Grid) Write(w io.Writer, width int) error {
	var b strings.Builder
	if g.OneLine {
		g.cutLines(&b, width)
		_, err := io.WriteString(w, b.String())
		return err
	}
	shown, left := g.fitColumns(width)
	switch stacks := g.stacks(shown, width); {
	case len(shown) == 0:
	case stacks == nil:
		g.records(&b, shown, width)
	default:
		for i, columns := range stacks {
			if i > 0 {
				b.WriteByte('\n')
			}
			g.lines(&b, columns, width)
		}
	}
	if len(left) > 0 {
		for _, line := range Fold("not shown at this width: "+strings.Join(left, ", "), width) {
			b.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fitColumns returns the indexes of the columns to print, and the names of the columns that are omitted.
func (g *Grid) fitColumns(width int) (shown []int, left []string) {
	for i := range g.Columns {
		shown = append(shown, i)
	}
	for g.minWidth(shown) > width {
		spare := 0
		for _, i := range shown {
			spare = max(spare, g.Columns[i].Spare)
		}
		if spare == 0 {
			break
		}
		at := slices.IndexFunc(shown, func(i int) bool { return g.Columns[i].Spare == spare })
		left = append(left, g.Columns[shown[at]].Header)
		shown = slices.Delete(shown, at, at+1)
	}
	return shown, left
}

// cell returns the text of a cell. It is empty if the row has fewer cells than the header.
func (g *Grid) cell(row, column int) string {
	if column < len(g.Rows[row]) {
		return g.Rows[row][column]
	}
	return ""
}

// natural returns the width that a column has if its text is not folded.
func (g *Grid) natural(column int) int {
	return max(utf8.RuneCountInString(g.Columns[column].Header), g.widest(column))
}

// widest returns the width of the widest cell in a column.
func (g *Grid) widest(column int) (n int) {
	for r := range g.Rows {
		n = max(n, utf8.RuneCountInString(g.cell(r, column)))
	}
	return n
}

// minWidth returns the minimum width of the given columns side by side, with headers and prose folded.
func (g *Grid) minWidth(columns []int) int {
	sum := gap * max(0, len(columns)-1)
	for _, i := range columns {
		sum += g.minColumnWidth(i)
	}
	return sum
}

// minColumnWidth returns the minimum width of a column. Its header may be folded, and its cells as well if they are
// prose.
func (g *Grid) minColumnWidth(column int) int {
	n := g.widest(column)
	if g.Columns[column].Prose {
		words := leastOf
		for r := range g.Rows {
			words = max(words, longestWord(g.cell(r, column)))
		}
		n = min(n, words)
	}
	return max(n, longestWord(g.Columns[column].Header))
}

func longestWord(s string) (n int) {
	for _, w := range joinNumbers(strings.Fields(s)) {
		n = max(n, utf8.RuneCountInString(w))
	}
	return n
}

// stacks splits columns into as few tables as possible that fit the width, all with a similar width. It returns nil if
// not even the key columns and one more column fit, unless only a long word is too wide.
func (g *Grid) stacks(columns []int, width int) [][]int {
	if len(columns) == 0 || g.minWidth(columns) <= width {
		return [][]int{columns}
	}
	stacks := g.fillTables(columns, width)
	for _, s := range stacks {
		last := s[len(s)-1]
		if beside := g.minWidth(s) - g.minColumnWidth(last); g.minWidth(s) > width &&
			(2*beside > width || g.hasWideCells(last, width-beside)) {
			return nil
		}
	}
	for ; width > 0; width-- {
		narrower := g.fillTables(columns, width-1)
		if len(narrower) > len(stacks) {
			break
		}
		stacks = narrower
	}
	return stacks
}

// hasWideCells reports whether a column contains cells of several words that are wider than room and could only be
// folded in a list. Prose is never such a cell, because it can be folded down to its longest word.
func (g *Grid) hasWideCells(column, room int) bool {
	word, several := 0, false
	for r := range g.Rows {
		c := g.cell(r, column)
		word = max(word, longestWord(c))
		several = several || utf8.RuneCountInString(c) > room && strings.Contains(c, " ")
	}
	return several && (!g.Columns[column].Prose || word <= room)
}

// fillTables distributes columns to tables. Each table has the key columns and as many other columns as fit.
func (g *Grid) fillTables(columns []int, width int) (stacks [][]int) {
	keys := min(max(1, g.Keys), len(columns))
	now := slices.Clone(columns[:keys])
	for _, i := range columns[keys:] {
		if len(now) > keys && g.minWidth(append(slices.Clone(now), i)) > width {
			stacks, now = append(stacks, now), slices.Clone(columns[:keys])
		}
		now = append(now, i)
	}
	return append(stacks, now)
}

// widths returns the widths of columns in a table. It starts with their minimum widths and gives each spare character
// to the column that is folded most.
func (g *Grid) widths(columns []int, width int) []int {
	widths, natural := make([]int, len(columns)), make([]int, len(columns))
	for k, i := range columns {
		widths[k], natural[k] = g.minColumnWidth(i), g.natural(i)
	}
	for room := width - g.minWidth(columns); room > 0; room-- {
		tightest, most := -1, 1.0
		for k := range columns {
			if r := float64(natural[k]) / float64(widths[k]); r > most {
				tightest, most = k, r
			}
		}
		if tightest < 0 {
			break
		}
		widths[tightest]++
	}
	return widths
}

// lines prints the given columns side by side.
func (g *Grid) lines(b *strings.Builder, columns []int, width int) {
	widths := g.widths(columns, width)
	header := make([]string, len(columns))
	headed := false
	for k, i := range columns {
		header[k] = g.Columns[i].Header
		headed = headed || header[k] != ""
	}
	if headed {
		g.line(b, columns, widths, header)
	}
	for r := range g.Rows {
		g.writeHead(b, r, width)
		cells := make([]string, len(columns))
		for k, i := range columns {
			cells[k] = g.cell(r, i)
		}
		g.line(b, columns, widths, cells)
	}
}

// cutLines prints every row in one line, cutting cells that are too wide. Spare characters go to the narrowest column
// that is cut, so that short cells stay complete next to long ones.
func (g *Grid) cutLines(b *strings.Builder, width int) {
	columns, widths := make([]int, len(g.Columns)), make([]int, len(g.Columns))
	room := width - gap*(len(columns)-1)
	for i := range columns {
		columns[i], widths[i] = i, g.natural(i)
		if i >= max(g.Keys, 1) {
			widths[i] = utf8.RuneCountInString(g.Columns[i].Header)
		}
		room -= widths[i]
	}
	for ; room > 0; room-- {
		narrowest := -1
		for i := range columns {
			if widths[i] < g.natural(i) && (narrowest < 0 || widths[i] < widths[narrowest]) {
				narrowest = i
			}
		}
		if narrowest < 0 {
			break
		}
		widths[narrowest]++
	}
	header := make([]string, len(columns))
	for i := range columns {
		header[i] = g.Columns[i].Header
	}
	g.line(b, columns, widths, header)
	for r := range g.Rows {
		cells := make([]string, len(columns))
		for i := range columns {
			cells[i] = cutText(g.cell(r, i), widths[i])
		}
		g.line(b, columns, widths, cells)
	}
}

// cutText shortens a text to at most width characters, of which there must be at least one. A shortened text ends in
// "…". It is cut between words if this loses at most half of a line, because part of a number could be misread.
func cutText(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	end := width - 1
	for at := end; at > width/2; at-- {
		if runes[at] == ' ' {
			end = at
			break
		}
	}
	return strings.TrimRight(string(runes[:end]), " ") + "…"
}

// line prints one row, in as many lines as its most folded cell needs.
func (g *Grid) line(b *strings.Builder, columns, widths []int, cells []string) {
	folded := make([][]string, len(cells))
	tall := 1
	for k, c := range cells {
		folded[k] = []string{c}
		if utf8.RuneCountInString(c) > widths[k] {
			folded[k] = Fold(c, widths[k])
		}
		tall = max(tall, len(folded[k]))
	}
	for n := range tall {
		var line strings.Builder
		for k := range cells {
			c := ""
			if n < len(folded[k]) {
				c = folded[k][n]
			}
			pad := strings.Repeat(" ", max(0, widths[k]-utf8.RuneCountInString(c)))
			if k > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			if g.Columns[columns[k]].Right {
				line.WriteString(pad + c)
			} else {
				line.WriteString(c + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// records prints each row as a list of headers and values. It is used if the page is narrower than any table.
func (g *Grid) records(b *strings.Builder, columns []int, width int) {
	for r := range g.Rows {
		if r > 0 {
			b.WriteByte('\n')
		}
		g.writeHead(b, r, width)
		for _, i := range columns {
			if g.cell(r, i) == "" {
				continue
			}
			text := g.cell(r, i)
			if header := g.Columns[i].Header; header != "" {
				text = header + ": " + text
			}
			for k, line := range Fold(text, width-2) {
				if k > 0 {
					line = "  " + line
				}
				b.WriteString(line + "\n")
			}
		}
	}
}

// Fold breaks a text between words into lines of at most width characters. A word that is longer has its own line. All
// lines are indented like the first line. A number is not separated from ± and its unit.
func Fold(text string, width int) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	width -= len(indent)
	var lines []string
	line := ""
	for _, word := range joinNumbers(strings.Fields(text)) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, indent+line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, indent+line)
}

// joinNumbers joins the words that belong to one number, and returns all words.
func joinNumbers(words []string) []string {
	var out []string
	for i, w := range words {
		tied := slices.Contains([]string{"±", "%", "%.", "%,", "%;", "%)", "µs", "ms", "ns"}, w) ||
			(i > 0 && words[i-1] == "±")
		if tied && len(out) > 0 {
			out[len(out)-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}
