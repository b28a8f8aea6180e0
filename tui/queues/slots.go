package queues

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// hasSums reports whether a switch in the run sums updates. Only such switches have slots to show.
func (s *session) hasSums() bool {
	return s.snapshot.Plan != nil && slices.ContainsFunc(s.snapshot.Plan.Configs,
		func(c bench.Config) bool { return c.H > 0 })
}

// slotsPage returns the page with the partial sums in the switch and the workers that contributed to them.
func (s *session) slotsPage() tui.Page {
	return s.inspectionPage(inspection{
		title: "Slots", head: tablesHead, rows: slotRows, about: wholeLine,
		columns: []list.Column{{Name: "cluster", Width: 9}, {Name: "seg", Width: 5}, {Name: "inside", Width: 9},
			{Name: "since", Width: 12}, {Name: "whose"}},
	}, "The program's slots with a partial sum: cluster, segment, contributions of H, age and contributors. "+
		"Packets do not carry the contributors; the twin knows them.")
}

// tablesHead returns a line about the fill levels of the tables.
func tablesHead(in *slowmotion.Inspection) screen.Phrase {
	var parts []string
	for i := range in.Cards {
		if t := in.Cards[i].Table; t != nil {
			parts = append(parts, fmt.Sprintf("%s: %d of %d slots have a partial sum, H=%d", t.Program, len(t.Held),
				t.Slots, t.H))
		}
	}
	if parts == nil {
		return screen.Phrase{Text: "no program is in front of a queue, or " +
			"this device cannot be looked into while it runs", Style: theme.Warn}
	}
	return screen.Phrase{Text: strings.Join(parts, " · "), Style: theme.Good}
}

func slotRows(in *slowmotion.Inspection) list.Rows {
	var rows []list.Row
	for i := range in.Cards {
		t := in.Cards[i].Table
		if t == nil {
			continue
		}
		for k := range t.Held {
			h := &t.Held[k]
			style := theme.ClusterStyle(int(h.Cluster))
			rows = append(rows, list.Row{ID: int64(h.Cluster)<<32 | int64(h.Seg), Cells: []list.Cell{
				{Text: fmt.Sprint(h.Cluster), Style: style}, {Text: fmt.Sprint(h.Seg)},
				{Text: fmt.Sprintf("%d of %d", h.Count, t.H)},
				{Text: olaf.Duration(h.Since).String(), Style: theme.Dim}, {Text: workerNames(h.Inside), Style: style},
			}})
		}
	}
	return list.FromRows(rows)
}

// workerNames lists the workers, starting with the oldest contribution.
func workerNames(inside []olaf.Contributor) string {
	var words []string
	for i := range inside {
		words = append(words, fmt.Sprintf("w%d", inside[i].Worker))
	}
	return strings.Join(words, " ")
}
