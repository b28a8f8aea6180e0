// Package testbed shows the devices, what they were built with, their links, and what captures lost.
package testbed

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/theme"
)

// Columns of the list.
var Columns = []list.Column{{Name: "device", Width: 20}, {Name: "what", Width: 24}, {Name: "value"}}

// Rows are every device's facts.
func Rows(in *live.Inspection) []list.Row {
	var rows []list.Row
	for i := range in.Cards {
		l := &in.Cards[i]
		name := fmt.Sprintf("%s (%s)", l.Device.Address, l.Queue)
		add := func(what, value string, good bool) {
			style := theme.Text
			if !good {
				style = theme.Bad
			}
			rows = append(rows, list.Row{ID: int64(len(rows)), Cells: []list.Cell{{Text: name, Style: theme.Queue(i)}, {Text: what, Style: theme.Dim}, {Text: value, Style: style}}})
		}
		add("kind, build", fmt.Sprintf("%s, %s, register map %s", l.Device.Kind, l.Device.Build, l.Device.MapVersion), true)
		add("clock", num.Hertz(l.Device.ClockHz), true)
		add("links", link(l), true)
		add("generator", l.Generator, l.Generator != "failed" && l.Generator != "error")
		add("late packets", num.Count(int64(l.Late)), l.Late == 0)
		add("capture", fmt.Sprintf("%d updates seen, %d lost", l.Observed, l.CaptureLost), l.CaptureLost == 0)
		add("built with", fmt.Sprintf("%d slots, %d clusters, %d flows, %d descriptors", l.Slots, l.Clusters, l.Flows, l.Descriptors), true)
	}
	return rows
}

func link(l *live.CardState) string {
	if l.Virtual {
		return "virtual, always up"
	}
	return "not reported by this device"
}
