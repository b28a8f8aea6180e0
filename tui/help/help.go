// Package help shows the keys and their actions according to the key bindings.
package help

import (
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// ColumnWidth is the width of a help column. Adjacent columns are separated by one space.
const ColumnWidth = 56

// Line is a row in the help: either text, or a key with its action.
type Line struct {
	Label, Text string
	Title       bool
}

// ListLines returns the bindings by group. Each group begins with its title.
func ListLines(bindings []keys.Binding) []Line {
	var out []Line
	group := ""
	for _, b := range bindings {
		if b.Group != group {
			if group != "" {
				out = append(out, Line{})
			}
			group = b.Group
			out = append(out, Line{Text: group, Title: true})
		}
		out = append(out, Line{Label: keys.LabelKeys(b.Keys), Text: b.About})
	}
	return out
}

// labelWidth is the width of the part of a line that shows the keys.
const labelWidth = 16

// Draw draws lines, starting with line number top, in as many columns as fit.
func Draw(r screen.Region, lines []Line, top int) {
	columns := max(r.W/ColumnWidth, 1)
	if columns*r.H >= len(lines) {
		top = 0
	}
	top = min(max(top, 0), max(len(lines)-r.H, 0))
	for i, l := range lines[top:] {
		x, y := i/max(r.H, 1), i%max(r.H, 1)
		if x >= columns {
			break
		}
		column := r.Sub(x*ColumnWidth, y, ColumnWidth-1, 1)
		switch {
		case l.Title:
			column.Text(0, 0, theme.Title, l.Text)
		case l.Label == "":
			column.Text(0, 0, theme.Text, l.Text)
		default:
			column.Sub(0, 0, labelWidth+1, 1).Text(1, 0, theme.Key, l.Label)
			column.Text(labelWidth, 0, theme.Text, l.Text)
		}
	}
}

// DrawFooter draws the bindings that have a brief name, as many as fit into one line.
func DrawFooter(r screen.Region, bindings []keys.Binding) {
	x := 0
	for _, b := range bindings {
		if b.Brief == "" {
			continue
		}
		label := keys.LabelKeys(b.Keys[:1])
		if x+screen.TextWidth(label)+screen.TextWidth(b.Brief)+3 > r.W {
			return
		}
		x = r.Text(x, 0, theme.Key, label) + 1
		x = r.Text(x, 0, theme.Dim, b.Brief) + 2
	}
}
