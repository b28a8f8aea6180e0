// Package help lists what every key does, from the table of bindings.
package help

import (
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

const columnWidth = 56

// line is one row of the help: a group's name, or a key and what it does.
type line struct {
	label, about string
	group        bool
}

func all(m *keys.Map) []line {
	var out []line
	group := ""
	for _, b := range m.Bindings() {
		if b.Group != group {
			if group != "" {
				out = append(out, line{})
			}
			group = b.Group
			out = append(out, line{group, "", true})
		}
		out = append(out, line{keys.Label(b.Keys), b.About, false})
	}
	return out
}

// Lines is how many rows the help has.
func Lines(m *keys.Map) int { return len(all(m)) }

// Draw draws the bindings by group from row top on, in as many columns as fit.
func Draw(r screen.Region, m *keys.Map, top int) {
	lines := all(m)
	columns := max(r.W/columnWidth, 1)
	if columns*r.H >= len(lines) {
		top = 0
	}
	top = min(max(top, 0), max(len(lines)-r.H, 0))
	for i, l := range lines[top:] {
		x, y := i/max(r.H, 1), i%max(r.H, 1)
		if x >= columns {
			break
		}
		column := r.Sub(x*columnWidth, y, columnWidth-2, 1)
		if l.group {
			column.Text(0, 0, theme.Title, l.label)
			continue
		}
		column.Sub(0, 0, 17, 1).Text(1, 0, theme.Key, l.label)
		column.Text(16, 0, theme.Text, l.about)
	}
}

// Footer draws the bindings that matter most in one line.
func Footer(r screen.Region, m *keys.Map) {
	x := 0
	for _, b := range m.Bindings() {
		if b.Brief == "" {
			continue
		}
		label, about := keys.Label(b.Keys[:1]), b.Brief
		if x+len(label)+len(about)+3 > r.W {
			return
		}
		x = r.Text(x, 0, theme.Key, label) + 1
		x = r.Text(x, 0, theme.Dim, about) + 2
	}
}
