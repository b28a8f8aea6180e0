package loops

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// slotsPage returns the page that lists the slots in the switches.
func (s *session) slotsPage() tui.Page {
	return tui.Page{
		Title: "Slots",
		About: "The used slots of every switch: job, packet of the vector, number of contributions, " +
			"contributors if the program stores them, and age.",
		Draw:    s.drawSlots,
		Rows:    s.slotRows,
		Caption: func() string { return s.viewCaption("Slots") },
	}
}

func (s *session) drawSlots(f *tui.Frame, r screen.Region) {
	var words []string
	for i := range s.snapshot.Switches {
		if sw := &s.snapshot.Switches[i]; sw.Slots > 0 {
			words = append(words, fmt.Sprintf("%s: %d of %d, at most %d so far", sw.Name, sw.Occupied, sw.Slots, sw.Peak))
		}
	}
	title := strings.Join(words, " · ")
	if words == nil {
		title = "the switch only passes packets on"
	}
	inside := r.Box(screen.Thin, theme.Border, theme.Title, title)
	f.DrawList(r, inside, tui.Listing{Columns: slotColumns, Rows: s.slotRows(), Focused: true})
}

var slotColumns = []list.Column{
	{Name: "switch", Width: 8}, {Name: "slot", Width: 6, Right: true}, {Name: "job", Width: 4, Right: true},
	{Name: "packet", Width: 8, Right: true},
	{Name: "inside", Width: 6, Right: true}, {Name: "held for", Width: 8, Right: true}, {Name: " whose", Least: 10,
		Drop: 1},
}

// slotRows returns rows for the slots in use, starting with those in the root switch.
func (s *session) slotRows() list.Rows {
	if s.snapshot == nil {
		return list.Rows{}
	}
	var rows []list.Row
	held, now := 0, s.snapshot.Now
	for i := range s.snapshot.Switches {
		sw := &s.snapshot.Switches[i]
		held += sw.Occupied
		for k := range sw.Table {
			h := &sw.Table[k]
			style := theme.ClusterStyle(int(h.Job) - int(closedloop.FirstJob))
			rows = append(rows, list.Row{ID: int64(i)<<32 | int64(h.Place), Cells: []list.Cell{
				{Text: sw.Name}, {Text: fmt.Sprint(h.Place)}, {Text: fmt.Sprint(h.Job), Style: style},
				{Text: fmt.Sprint(h.Seg)}, {Text: fmt.Sprint(h.Count)},
				{Text: num.FormatDuration(now.Sub(h.Since)), Style: theme.Dim}, {Text: " " + setBits(h.Bitmap), Style: style},
			}})
		}
	}
	out := list.FromRows(rows)
	if held > len(rows) {
		out.Of = fmt.Sprintf("the first %d of %d slots", len(rows), held)
	}
	return out
}

// setBits lists the positions of the set bits.
func setBits(bitmap uint64) string {
	var words []string
	for ; bitmap != 0; bitmap &= bitmap - 1 {
		words = append(words, fmt.Sprint(bits.TrailingZeros64(bitmap)))
	}
	return strings.Join(words, " ")
}
