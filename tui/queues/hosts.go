package queues

import (
	"fmt"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// hostsPage returns the page that describes the hosts of a testbed with roles, including their clocks.
func (s *session) hostsPage() tui.Page {
	return s.inspectionPage(inspection{
		title: "Hosts",
		head: func(in *slowmotion.Inspection) screen.Phrase {
			return screen.Phrase{Text: olaf.Plural(len(in.Hosts), "host") + "; clocks are compared with this machine's", Style: theme.Dim}
		},
		columns: []list.Column{{Name: "host", Width: 16}, {Name: "what", Width: 10}, {Name: "value"}},
		rows:    hostRows, about: wholeLine,
	}, "The hosts of the testbed, their roles and devices, and how far their clocks are ahead of this machine's, "+
		"with the bound of that measurement.")
}

func hostRows(in *slowmotion.Inspection) list.Rows {
	var rows []list.Row
	for i := range in.Hosts {
		h := &in.Hosts[i]
		add := func(what, value string, style screen.Style) {
			if value != "" {
				rows = append(rows, list.Row{ID: int64(len(rows)), Cells: []list.Cell{{Text: h.Name, Style: theme.QueueStyle(i)},
					{Text: what, Style: theme.Dim}, {Text: value, Style: style}}})
			}
		}
		at := "this machine"
		if h.SSH != "" {
			at = "ssh " + h.SSH
		}
		add("at", at, theme.Text)
		add("roles", strings.Join(h.Roles, ", "), theme.Strong)
		add("device", h.Device, theme.Text)
		if h.NIC != "" {
			add("interface", fmt.Sprintf("%s (%s)", h.NIC, h.Driver), theme.Text)
		}
		add("kernel", h.Kernel, theme.Text)
		add("build", h.Build, theme.Text)
		if h.SSH != "" {
			clock, known := describeClock(h)
			style := theme.Text
			if !known {
				style = theme.Bad
			}
			add("clock", clock, style)
		}
	}
	return list.FromRows(rows)
}

// describeClock describes the clock of a host in words. known reports whether the clock could be measured.
func describeClock(h *results.Host) (text string, known bool) {
	ns := func(f results.Float) time.Duration { return time.Duration(float64(f)).Round(100 * time.Nanosecond) }
	text = fmt.Sprintf("%v ± %v ahead", ns(h.OffsetNS), ns(h.BoundNS))
	if !h.DriftNS.Known() {
		return text + " when opened; the host does not answer now", false
	}
	return fmt.Sprintf("%s, %v since then", text, ns(h.DriftNS)), true
}
