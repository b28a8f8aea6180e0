package screen

import (
	"fmt"
	"strings"
)

// Look is how a style appears in a picture: colours as #rrggbb, empty for the picture's own.
type Look struct {
	Fore, Back string
	Bold       bool
}

// Measures of a cell in a picture.
const (
	cellWidth  = 8.4
	cellHeight = 17.0
	margin     = 8.0
)

// SVGSize is how large a picture of w × h cells is.
func SVGSize(w, h int) (width, height float64) {
	return float64(w)*cellWidth + 2*margin, float64(h)*cellHeight + 2*margin
}

// SVG is the grid as a picture of text, which stays text: it can be searched and copied.
func (s *Screen) SVG(looks []Look, fore, back string) string {
	var b strings.Builder
	w, h := SVGSize(s.width, s.height)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">`+"\n", w, h, w, h)
	b.WriteString(SVGStyle)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", back)
	fmt.Fprintf(&b, `<g class="t" fill="%s">`+"\n", fore)
	b.WriteString(s.SVGRows(looks))
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// SVGStyle is what the rows of SVGRows need in the picture around them.
const SVGStyle = `<style>.t{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}.b{font-weight:700}</style>` + "\n"

// SVGRows is the inside of a picture: one text element a row, one span a style.
func (s *Screen) SVGRows(looks []Look) string {
	var b strings.Builder
	for y := range s.height {
		s.svgRow(&b, y, looks)
	}
	return b.String()
}

func (s *Screen) svgRow(b *strings.Builder, y int, looks []Look) {
	row := s.cells[y*s.width : (y+1)*s.width]
	end := len(row)
	for end > 0 && row[end-1].Rune == ' ' && look(looks, row[end-1].Style).Back == "" {
		end--
	}
	base := margin + float64(y)*cellHeight
	var text strings.Builder
	for x := 0; x < end; {
		from, style := x, row[x].Style
		blank := true
		for ; x < end && row[x].Style == style; x++ {
			blank = blank && row[x].Rune == ' '
		}
		l := look(looks, style)
		if l.Back != "" {
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, margin+float64(from)*cellWidth, base, float64(x-from)*cellWidth, cellHeight, l.Back)
		}
		if blank {
			continue
		}
		first := from
		for row[first].Rune == ' ' {
			first++
		}
		fmt.Fprintf(&text, `<tspan x="%.1f"`, margin+float64(first)*cellWidth)
		if l.Fore != "" {
			fmt.Fprintf(&text, ` fill="%s"`, l.Fore)
		}
		if l.Bold {
			text.WriteString(` class="b"`)
		}
		text.WriteByte('>')
		writeEscaped(&text, row[first:x])
		text.WriteString("</tspan>")
	}
	if text.Len() > 0 {
		fmt.Fprintf(b, `<text y="%.1f">%s</text>`+"\n", base+13, text.String())
	}
}

func look(looks []Look, s Style) Look {
	if int(s) < len(looks) {
		return looks[s]
	}
	return Look{}
}

func writeEscaped(b *strings.Builder, cells []Cell) {
	for _, c := range cells {
		switch c.Rune {
		case 0:
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(c.Rune)
		}
	}
}
