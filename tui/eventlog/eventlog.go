// Package eventlog lists what happened in a queue, newest first.
package eventlog

import (
	"fmt"
	"strconv"

	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/queue"
	"github.com/olafctl/olaf/tui/theme"
)

// wideEnough is how wide a log must be for all columns.
const wideEnough = 48

// Columns of a log of a width: where room is short, the time and what happened.
func Columns(width int) []list.Column {
	if width < wideEnough {
		return columns[:2]
	}
	return columns
}

var columns = []list.Column{{Name: "time", Width: 12, Right: true}, {Name: "what"}, {Name: "seq", Width: 5, Right: true}, {Name: "frame", Width: 6, Right: true}}

// Rows are the log's lines, newest first; a row's id is the update's number.
func Rows(q *live.QueueSnapshot) []list.Row {
	rows := make([]list.Row, 0, len(q.Log))
	for i := len(q.Log) - 1; i >= 0; i-- {
		rows = append(rows, row(&q.Log[i]))
	}
	return rows
}

func row(e *live.Event) list.Row {
	text, style := queue.Fate(e)
	frame := num.Unknown
	if e.Frame >= 0 {
		frame = "#" + strconv.FormatInt(e.Frame, 10)
	}
	return list.Row{ID: e.Update, Cells: []list.Cell{
		{Text: num.Time(e.At), Style: theme.Dim}, {Text: text, Style: style}, {Text: fmt.Sprint(e.Seq)}, {Text: frame, Style: theme.Dim},
	}}
}

// Line is one event for the linear stream: time, queue, and what happened in words.
func Line(name string, e *live.Event) string {
	line := fmt.Sprintf("%s %s: %s, cluster %d, worker %d, update %d", num.Time(e.At), name, e.Kind, e.Cluster, e.Worker, e.Seq)
	if e.Frame >= 0 {
		line += fmt.Sprintf(", frame %d holds %d", e.Frame, e.Count)
	}
	return line
}
