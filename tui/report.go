package tui

import "github.com/olafctl/olaf/tui/screen"

// Report is a text that is folded anew for each width of its page. It may only be used by one dashboard's goroutine.
type Report struct {
	fold  func(width int) []string
	width int // of lines and of the page that was drawn last
	lines []string
}

// NewReport returns a report whose lines fold returns for a width in characters.
func NewReport(fold func(width int) []string) *Report { return &Report{fold: fold} }

// narrowest is the report's width in the smallest dashboard, whose borders take two characters on each side.
const narrowest = minWidth - 4

// Fold folds the report for a page's region, and returns its lines.
func (r *Report) Fold(inside screen.Region) []string {
	if width := max(inside.W-2, narrowest); r.lines == nil || width != r.width {
		r.width, r.lines = width, r.fold(width)
	}
	return r.lines
}

// Lines returns the lines for the page drawn last, or for the smallest one.
func (r *Report) Lines() []string {
	if r.lines == nil {
		r.width, r.lines = narrowest, r.fold(narrowest)
	}
	return r.lines
}
