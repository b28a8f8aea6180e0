// Package eventlog lists the events of a queue, newest first.
package eventlog

import (
	"fmt"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/queue"
	"github.com/olafctl/olaf/tui/theme"
)

// LogColumns returns the columns for a log of the given height. If the height is one line, the columns have no
// headings.
func LogColumns(height int) []list.Column {
	if height > 1 {
		return columns
	}
	return []list.Column{{Width: columns[0].Width, Right: true}, {}}
}

var columns = []list.Column{
	{Name: "time", Width: 11, Right: true}, {Name: "what", Least: 20}, {Name: "seq", Width: 5, Right: true,
		Drop: 2}, {Name: "frame", Width: 6, Right: true, Drop: 1},
}

// LogRows returns the events of a run that ends at end, newest first. The ID of a row is the number of the update.
func LogRows(q *slowmotion.QueueSnapshot, end olaf.Time) list.Rows {
	n := len(q.Log)
	rows := list.Rows{Len: n, Row: func(i int) list.Row { return eventRow(&q.Log[n-1-i], end) }}
	if q.Events > int64(n) {
		rows.Of = fmt.Sprintf("the newest %d events", n)
	}
	return rows
}

func eventRow(e *slowmotion.Event, end olaf.Time) list.Row {
	text, style := queue.DescribeFate(e)
	frame := num.Unknown
	if e.Frame >= 0 {
		frame = "#" + strconv.FormatInt(e.Frame, 10)
	}
	return list.Row{ID: e.Update, Cells: []list.Cell{
		{Text: num.FormatInstant(e.At, end), Style: theme.Dim}, {Text: text, Style: style}, {Text: fmt.Sprint(e.Seq)},
		{Text: frame, Style: theme.Dim},
	}}
}
