// Package help lists what every key does, from the table of bindings.
package help

import (
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

const columnWidth = 56

// Draw draws the bindings by group, in as many columns as fit.
func Draw(r screen.Region, m *keys.Map) {
	x, y, group := 0, 0, ""
	for _, b := range m.Bindings() {
		need := 1
		if b.Group != group {
			need = 3
		}
		if y+need > r.H {
			if x, y = x+columnWidth, 0; x+columnWidth/2 > r.W {
				r.Right(r.W, r.H-1, theme.Warn, "more on a larger terminal")
				return
			}
		}
		column := r.Sub(x, 0, columnWidth-2, r.H)
		if b.Group != group {
			if y > 0 {
				y++
			}
			column.Text(0, y, theme.Title, b.Group)
			group = b.Group
			y++
		}
		column.Sub(0, 0, 18, r.H).Text(1, y, theme.Key, keys.Label(b.Keys))
		column.Text(18, y, theme.Text, b.About)
		y++
	}
}

// Footer draws the bindings that matter most in one line.
func Footer(r screen.Region, m *keys.Map) {
	x := 0
	for _, b := range m.Bindings() {
		if !b.Short {
			continue
		}
		label, about := keys.Label(b.Keys[:1]), short(b.About)
		if x+len(label)+len(about)+3 > r.W {
			return
		}
		x = r.Text(x, 0, theme.Key, label) + 1
		x = r.Text(x, 0, theme.Dim, about) + 2
	}
}

// short is the part of a description before its first comma or semicolon.
func short(about string) string {
	for i, c := range about {
		if c == ';' || c == ',' {
			return about[:i]
		}
	}
	return about
}
