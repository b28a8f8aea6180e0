package queues

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// tablesPage returns the page with the device's P4Runtime entries and the role of the session.
func (s *session) tablesPage() tui.Page {
	return s.inspectionPage(inspection{
		title: "Tables", head: roleHead, rows: tableRows, about: wholeLine,
		columns: []list.Column{{Name: "table", Width: 22}, {Name: "key", Width: 15}, {Name: "action"}},
	}, "The match-action tables over P4Runtime: who is a worker of which cluster, which cluster is answered by "+
		"which multicast group, and who may write.")
}

// wholeLine returns all cells of a row in full.
func wholeLine(_ *slowmotion.Inspection, row list.Row) string {
	var words []string
	for _, c := range row.Cells {
		words = append(words, strings.TrimSpace(c.Text))
	}
	return strings.Join(words, "  ")
}

func tableRows(in *slowmotion.Inspection) list.Rows {
	var rows []list.Row
	add := func(table, key, action string, cluster int) {
		style := theme.Text
		if cluster >= 0 {
			style = theme.ClusterStyle(cluster)
		}
		rows = append(rows, list.Row{ID: int64(len(rows)), Cells: []list.Cell{{Text: table, Style: theme.Dim},
			{Text: key}, {Text: action, Style: style}}})
	}
	t := in.Tables.Canonical()
	for _, w := range t.Workers {
		add("vnp4_1.workers", w.Address.String(), fmt.Sprintf("set_worker(cluster %d, worker %d)", w.Cluster, w.ID),
			int(w.Cluster))
	}
	for _, s := range t.Servers {
		add("parameter servers", s.String(), "is the parameter server", -1)
	}
	for _, c := range t.Clusters {
		add("vnp4_2.cluster_groups", fmt.Sprintf("cluster %d", c.ID), fmt.Sprintf("multicast to group %d", c.Group),
			int(c.ID))
	}
	for _, g := range t.Groups {
		text := ""
		for _, m := range g.Members {
			text += fmt.Sprintf("w%d@port%d ", m.Instance, m.Port)
		}
		add("multicast groups", fmt.Sprintf("group %d", g.ID), text, -1)
	}
	return list.FromRows(rows)
}

// roleHead returns a line that states which controller is primary.
func roleHead(in *slowmotion.Inspection) screen.Phrase {
	text := fmt.Sprintf("this session is %s, election id %s, at %s", in.Role, in.ElectionID, in.Target)
	switch {
	case in.TablesError != nil:
		return screen.Phrase{Text: in.TablesError.Error(), Style: theme.Bad}
	case in.RoleErr != nil:
		return screen.Phrase{Text: text + ": " + in.RoleErr.Error(), Style: theme.Warn}
	case in.Role != "primary":
		return screen.Phrase{Text: text, Style: theme.Warn}
	}
	return screen.Phrase{Text: text, Style: theme.Good}
}
