// Package text prints result documents for people at a terminal: plain characters, no colour. The first lines say what
// came out, tables follow and fit the page, and what only some readers want stands behind View.Explain.
package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/olafctl/olaf/results/table"
)

// View is how a page is read: how much room a line has, and whether notes and every statistic are wanted.
type View struct {
	Width   int // characters of a line; 0 for PlainWidth
	Explain bool
}

// PlainWidth is the width where nobody says how wide a page is.
const PlainWidth = 80

// Columns is how many characters a line has.
func (v View) Columns() int { return cmp.Or(v.Width, PlainWidth) }

// Page keeps the first error, so that it reads as a list of lines.
type Page struct {
	View
	w   io.Writer
	err error
}

// NewPage begins a page.
func NewPage(w io.Writer, v View) *Page { return &Page{View: v, w: w} }

// Err is the first error of the page.
func (p *Page) Err() error { return p.err }

// Printf prints as it is.
func (p *Page) Printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// Say prints a sentence, folded between words; lines after the first are indented as far as mark is wide, which stands
// before it.
func (p *Page) Say(mark, format string, args ...any) {
	indent := strings.Repeat(" ", len([]rune(mark)))
	for i, line := range table.Fold(fmt.Sprintf(format, args...), p.Columns()-len([]rune(mark))) {
		if i > 0 {
			mark = indent
		}
		p.Printf("%s%s\n", mark, line)
	}
}

// Grid prints a table.
func (p *Page) Grid(g *table.Grid) {
	if p.err == nil {
		p.err = g.Write(p.w, p.Columns())
	}
}
