package screen

import (
	"fmt"
	"slices"
	"strings"
)

// Look is the appearance of a style in a picture. Colours have the form #rrggbb; an empty string means the default
// colour.
type Look struct {
	Fore, Back string
	Bold       bool
}

// Pixel sizes in a picture.
const (
	cellWidth  = 8
	cellHeight = 16
	margin     = 8
)

// SVGSize returns the size of a picture that shows w × h cells.
func SVGSize(w, h int) (width, height int) {
	return w*cellWidth + 2*margin, h*cellHeight + 2*margin
}

// SVG returns the grid as an SVG picture in which the text can be searched and copied. title describes the picture.
func (s *Screen) SVG(title string, looks []Look, fore, back string) string {
	var b strings.Builder
	w, h := SVGSize(s.width, s.height)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", w, h, w, h)
	b.WriteString("<title>")
	writeEscaped(&b, title)
	b.WriteString("</title>\n")
	b.WriteString(SVGStyle(looks))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", back)
	fmt.Fprintf(&b, `<g class="t" fill="%s">`+"\n", fore)
	for y := range s.height {
		b.WriteString(s.SVGRow(y, looks))
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// SVGStyle returns the style element for rows created by SVGRow. It has a class for each style.
func SVGStyle(looks []Look) string {
	var b strings.Builder
	b.WriteString("<style>.t{font:13.28px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;white-space:pre}")
	for i, l := range looks {
		if l.Fore != "" {
			fmt.Fprintf(&b, ".s%d{fill:%s}", i, l.Fore)
		}
		if l.Bold {
			fmt.Fprintf(&b, ".s%d{font-weight:700}", i)
		}
	}
	b.WriteString("</style>\n")
	return b.String()
}

// SVGRow returns one row of the grid as SVG: first the backgrounds of the cells, then the text with a span for each
// style. The result is empty if the row is blank.
func (s *Screen) SVGRow(y int, looks []Look) string {
	row := s.cells[y*s.width : (y+1)*s.width]
	end := len(row)
	for end > 0 && row[end-1].Rune == ' ' && lookOf(looks, row[end-1].Style).Back == "" {
		end--
	}
	var ground, text strings.Builder
	for x := 0; x < end; {
		from, style := x, row[x].Style
		blank, back := true, lookOf(looks, style).Back
		for ; x < end && row[x].Style == style; x++ {
			if back == "" && row[x].Rune == ' ' && (x+1 == end || row[x+1].Rune == ' ') {
				break // the next span has an explicit position
			}
			blank = blank && row[x].Rune == ' '
		}
		x = max(x, from+1)
		if back != "" {
			fmt.Fprintf(&ground, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, margin+from*cellWidth, margin+
				y*cellHeight, (x-from)*cellWidth, cellHeight, back)
		}
		if !blank {
			writeSpan(&text, row[from:x], from, style, lookOf(looks, style) != Look{})
		}
	}
	if text.Len() > 0 {
		fmt.Fprintf(&ground, `<text y="%d">%s</text>`+"\n", margin+y*cellHeight+12, text.String())
	}
	return ground.String()
}

func hasBraille(cells []Cell) bool {
	return slices.ContainsFunc(cells, func(c Cell) bool { return c.Rune >= 0x2800 && c.Rune < 0x2900 })
}

// writeSpan writes consecutive cells that have the same style, starting at column x.
func writeSpan(b *strings.Builder, cells []Cell, x int, style Style, styled bool) {
	for cells[0].Rune == ' ' {
		cells, x = cells[1:], x+1
	}
	for cells[len(cells)-1].Rune == ' ' {
		cells = cells[:len(cells)-1]
	}
	fmt.Fprintf(b, `<tspan x="%d"`, margin+x*cellWidth)
	if hasBraille(cells) { // few fonts contain braille patterns, and fallback fonts are wider
		fmt.Fprintf(b, ` textLength="%d" lengthAdjust="spacingAndGlyphs"`, len(cells)*cellWidth)
	}
	if styled {
		fmt.Fprintf(b, ` class="s%d"`, style)
	}
	b.WriteByte('>')
	text := make([]rune, len(cells))
	for i, c := range cells {
		text[i] = c.Rune
	}
	writeEscaped(b, string(text))
	b.WriteString("</tspan>")
}

func lookOf(looks []Look, s Style) Look {
	if int(s) < len(looks) {
		return looks[s]
	}
	return Look{}
}

func writeEscaped(b *strings.Builder, text string) {
	for _, c := range text {
		switch {
		case c < ' ': // second half of a wide character, or a character that XML does not allow
		case c == '<':
			b.WriteString("&lt;")
		case c == '>':
			b.WriteString("&gt;")
		case c == '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(c)
		}
	}
}
