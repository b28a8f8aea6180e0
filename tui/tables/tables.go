// Package tables lists the P4Runtime entries of a device and says who may write them.
package tables

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/theme"
)

// Columns of the list.
var Columns = []list.Column{{Name: "table", Width: 22}, {Name: "key", Width: 15}, {Name: "action"}}

// Rows are all entries, table by table.
func Rows(in *live.Inspection) []list.Row {
	var rows []list.Row
	add := func(table, key, action string, cluster int) {
		style := theme.Text
		if cluster >= 0 {
			style = theme.Cluster(cluster)
		}
		rows = append(rows, list.Row{ID: int64(len(rows)), Cells: []list.Cell{{Text: table, Style: theme.Dim}, {Text: key}, {Text: action, Style: style}}})
	}
	t := in.Tables.Canonical()
	for _, w := range t.Workers {
		add("vnp4_1.workers", w.Address.String(), fmt.Sprintf("set_worker(cluster %d, worker %d)", w.Cluster, w.ID), int(w.Cluster))
	}
	for _, s := range t.Servers {
		add("parameter servers", s.String(), "is the parameter server", -1)
	}
	for _, c := range t.Clusters {
		add("vnp4_2.cluster_groups", fmt.Sprintf("cluster %d", c.ID), fmt.Sprintf("multicast to group %d", c.Group), int(c.ID))
	}
	for _, g := range t.Groups {
		text := ""
		for _, m := range g.Members {
			text += fmt.Sprintf("w%d@port%d ", m.Instance, m.Port)
		}
		add("multicast groups", fmt.Sprintf("group %d", g.ID), text, -1)
	}
	return rows
}

// Role says in one line who is primary.
func Role(in *live.Inspection) (string, bool) {
	text := fmt.Sprintf("this session is %s, election id %s, at %s", in.Role, in.ElectionID, in.Target)
	if in.RoleErr != nil {
		text += ": " + in.RoleErr.Error()
	}
	return text, in.Role == "primary"
}
