package tui

import "github.com/olafctl/olaf/tui/screen"

// Report is a text that is wrapped to the width of its page. It must be used by only one goroutine, that of the
// dashboard.
type Report struct {
	fold  func(width int) []string
	width int // width of the lines and of the page when it was last drawn
	lines []string
}

// NewReport returns a report. fold returns its lines for a width in characters.
func NewReport(fold func(width int) []string) *Report { return &Report{fold: fold} }

// narrowest is the width of the report in the smallest dashboard. The borders take two characters on each side.
const narrowest = minWidth - 4

// Fold wraps the report to the width of a page's region and returns its lines.
func (r *Report) Fold(inside screen.Region) []string {
	if width := max(inside.W-2, narrowest); r.lines == nil || width != r.width {
		r.width, r.lines = width, r.fold(width)
	}
	return r.lines
}

// Lines returns the lines as last wrapped for a page, or as wrapped for the smallest dashboard.
func (r *Report) Lines() []string {
	if r.lines == nil {
		r.width, r.lines = narrowest, r.fold(narrowest)
	}
	return r.lines
}
