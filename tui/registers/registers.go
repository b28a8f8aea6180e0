// Package registers lists a device's registers by name, decoded, with those that changed since the last look marked.
package registers

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/theme"
)

// Columns of a list of a width; every row has all cells, and a narrow list shows them shorter.
func Columns(width int) []list.Column {
	if width >= 110 {
		return wide
	}
	return []list.Column{{Name: "register", Width: 26}, {Name: "address", Width: 8}, {Name: "value", Width: 18, Right: true}, {Name: "decoded"}}
}

var wide = []list.Column{{Name: "register", Width: 32}, {Name: "address", Width: 9}, {Name: "value", Width: 19, Right: true}, {Name: "decoded"}}

// Changed is which registers differ between two looks, by address.
func Changed(before, after *live.Inspection) map[uint32]bool {
	if before == nil || after == nil {
		return nil
	}
	old := make(map[uint32]uint64, len(before.Registers))
	for i := range before.Registers {
		old[before.Registers[i].Address] = before.Registers[i].Value
	}
	out := make(map[uint32]bool)
	for i := range after.Registers {
		r := &after.Registers[i]
		if v, ok := old[r.Address]; ok && v != r.Value {
			out[r.Address] = true
		}
	}
	return out
}

// About is what a register is for; empty for none of in.
func About(in *live.Inspection, address int64) string {
	for i := range in.Registers {
		if r := &in.Registers[i]; int64(r.Address) == address {
			return r.Name + ": " + r.Decoded + ". " + r.Doc
		}
	}
	return ""
}

// Rows are the registers by address; a changed one is marked with a star.
func Rows(in *live.Inspection, changed map[uint32]bool) []list.Row {
	rows := make([]list.Row, 0, len(in.Registers))
	for i := range in.Registers {
		r := &in.Registers[i]
		name, style := "  "+r.Name, theme.Text
		if changed[r.Address] {
			name, style = "* "+r.Name, theme.Changed
		}
		width := 8
		if r.Wide {
			width = 16
		}
		rows = append(rows, list.Row{ID: int64(r.Address), Cells: []list.Cell{
			{Text: name, Style: style}, {Text: fmt.Sprintf("0x%06x", r.Address), Style: theme.Dim},
			{Text: fmt.Sprintf("0x%0*x", width, r.Value), Style: style}, {Text: r.Decoded},
		}})
	}
	return rows
}
