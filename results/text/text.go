// Package text prints result documents in a terminal. It uses plain characters and no colour. The findings come first,
// followed by tables that fit the page. Details are printed only with View.Explain.
package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/olafctl/olaf/results/table"
)

// View configures the width of a page, and whether notes and all statistics are printed.
type View struct {
	Width   int // characters in a line; 0 for PlainWidth
	Explain bool
}

// PlainWidth is the default width.
const PlainWidth = 80

// Columns returns the number of characters in a line.
func (v View) Columns() int { return cmp.Or(v.Width, PlainWidth) }

// Page prints to a writer and keeps the first error, so that callers can print line after line without checks.
type Page struct {
	View
	w   io.Writer
	err error
}

// NewPage returns a page that prints to w.
func NewPage(w io.Writer, v View) *Page { return &Page{View: v, w: w} }

// Err returns the first error that occurred while the page was printed.
func (p *Page) Err() error { return p.err }

// Printf prints text without folding it.
func (p *Page) Printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// Say prints a sentence after mark, folded between words. Further lines are indented by the width of mark.
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
