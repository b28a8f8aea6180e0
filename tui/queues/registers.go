package queues

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// registersPage returns the page with the device's registers and their decoded values. It marks values that changed
// since the last reading.
func (s *session) registersPage() tui.Page {
	return s.inspectionPage(inspection{
		title: "Registers",
		head: func(*slowmotion.Inspection) screen.Phrase {
			return screen.Phrase{Text: "* changed since the last look; a look latches the counters", Style: theme.Dim}
		},
		columns: []list.Column{{Name: "register", Width: 32}, {Name: "address", Width: 8, Right: true, Drop: 1},
			{Name: "value", Width: 10, Right: true}, {Name: "decoded", Least: 8}},
		rows: s.registerRows, about: registerAbout,
	}, "Every readable register of the first device, by its name in docs/reference/registers.md, with its fields decoded.")
}

// changedRegisters returns the addresses of the registers whose values differ between two inspections.
func changedRegisters(before, after *slowmotion.Inspection) map[uint32]bool {
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

// registerAbout returns the description of the register in a row.
func registerAbout(in *slowmotion.Inspection, row list.Row) string {
	for i := range in.Registers {
		if r := &in.Registers[i]; int64(r.Address) == row.ID {
			return r.Name + ": " + r.Decoded + ". " + r.Doc
		}
	}
	return ""
}

func (s *session) registerRows(in *slowmotion.Inspection) list.Rows {
	rows := make([]list.Row, 0, len(in.Registers))
	for i := range in.Registers {
		r := &in.Registers[i]
		name, style := "  "+r.Name, theme.Text
		if s.inspects.changed[r.Address] {
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
	return list.FromRows(rows)
}
