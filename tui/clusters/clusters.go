// Package clusters lists every cluster's fate, one queue beside the other.
package clusters

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/theme"
)

// wideEnough is how wide a list must be for all columns.
const wideEnough = 74

// Columns of one queue's list of a width: where room is short, those that are compared first.
func Columns(width int) []list.Column {
	if width < wideEnough {
		return columns[:6]
	}
	return columns
}

var columns = []list.Column{
	{Name: "cluster", Width: 8}, {Name: "AoM now", Width: 8, Right: true}, {Name: "mean", Width: 8, Right: true}, {Name: "peak", Width: 8, Right: true},
	{Name: "lost", Width: 7, Right: true}, {Name: "merged", Width: 7, Right: true}, {Name: "dropped", Width: 7, Right: true},
	{Name: "sent", Width: 7, Right: true}, {Name: "delivered", Right: true},
}

// Sorts are the names of what the list can be sorted by.
var Sorts = []string{"cluster", "AoM now", "mean AoM", "peak AoM", "lost", "merged"}

func value(c *live.ClusterSnapshot, by int) float64 {
	switch by {
	case 1:
		return known(c.AoM)
	case 2:
		return known(c.Mean)
	case 3:
		return known(c.Peak)
	case 4:
		return c.LostPct()
	case 5:
		return float64(c.Merged)
	}
	return -float64(c.ID)
}

func known(f results.Float) float64 {
	if math.IsNaN(float64(f)) {
		return -1
	}
	return float64(f)
}

// Rows are the clusters of the queue with an index, largest first by the chosen column; a row's id is the cluster.
// Clusters of every queue come in the order of the first one's, so that lines stand side by side.
func Rows(s *live.Snapshot, queue, by int) []list.Row {
	if len(s.Queues) == 0 || queue >= len(s.Queues) {
		return nil
	}
	first := s.Queues[0].Clusters
	order := make([]int, len(first))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(&first[b], by), value(&first[a], by)) })
	rows := make([]list.Row, 0, len(order))
	for _, i := range order {
		if i < len(s.Queues[queue].Clusters) {
			rows = append(rows, row(&s.Queues[queue].Clusters[i], int(s.Watched)))
		}
	}
	return rows
}

func row(c *live.ClusterSnapshot, watched int) list.Row {
	name := fmt.Sprintf("c%d", c.ID)
	if int(c.ID) == watched {
		name += " ◎"
	}
	lost := list.Cell{Text: num.Percent(c.LostPct())}
	if c.LostPct() > 0 {
		lost.Style = theme.Bad
	}
	return list.Row{ID: int64(c.ID), Cells: []list.Cell{
		{Text: name, Style: theme.Cluster(int(c.ID))},
		{Text: num.NS(float64(c.AoM))}, {Text: num.NS(float64(c.Mean)), Style: theme.Strong}, {Text: num.NS(float64(c.Peak))},
		lost, {Text: num.Count(c.Merged)}, {Text: num.Count(c.Dropped + c.Replaced)}, {Text: num.Count(c.Sent)}, {Text: num.Count(c.Delivered)},
	}}
}
