// Package queue draws the slots of a queue in departure order, starting with the slot that departs first.
package queue

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Sizes of a slot drawn as a box.
const (
	boxHeight = 4
	boxWidth  = 7
	boxWidest = 11
	cellWidth = 7 // width of a slot without a box
)

// Draw draws q. selected is the slot under the cursor in departure order, or -1.
func Draw(r screen.Region, q *slowmotion.QueueSnapshot, sampled bool, selected int) {
	if r.H < 1 {
		return
	}
	slots := r.Sub(0, 0, r.W, r.H-1)
	switch {
	case sampled:
		sampledSlots(slots, q)
	case slots.H >= boxHeight && q.Slots*boxWidth <= r.W:
		drawBoxes(slots, q, selected)
	default:
		drawCells(slots, q, selected)
	}
	drawSummary(r.Sub(0, r.H-1, r.W, 1), q)
}

// sampledSlots draws a queue for which only counters are known.
func sampledSlots(r screen.Region, q *slowmotion.QueueSnapshot) {
	r.Text(0, 0, theme.Dim, "sampled: counters only, single slots unknown")
	chart.DrawGauge(r.Sub(0, 1, r.W, 1), float64(q.Occupancy), float64(q.Slots), theme.Subject)
}

func drawBoxes(r screen.Region, q *slowmotion.QueueSnapshot, selected int) {
	w := min(r.W/q.Slots, boxWidest)
	y := (r.H - boxHeight) / 2
	for i := range q.Slots {
		box := r.Sub(i*w, y, w, boxHeight)
		if i >= len(q.Items) {
			inside := box.Box(screen.Dotted, theme.Border, theme.Border, "")
			inside.Text(max((inside.W-4)/2, 0), 0, theme.Dim, "free")
			continue
		}
		s := &q.Items[i]
		frame, border := screen.Thin, theme.ClusterStyle(int(s.Cluster))
		if s.Locked {
			frame, border = screen.Heavy, theme.Locked
		}
		inside := box.Box(frame, border, border, "")
		inside.Text(0, 0, theme.ClusterStyle(int(s.Cluster)), slotLabel(s))
		inside.Text(0, 1, theme.Text, slotAge(s))
		if s.Locked {
			box.Text(1, 0, theme.Locked, "◀out")
			drawProgress(box.Sub(1, boxHeight-1, w-2, 1), s.Sent)
		}
		if i == selected {
			inside.Restyle(theme.Selected)
		}
	}
}

// drawProgress marks on the lower border how much of a frame has been sent.
func drawProgress(r screen.Region, sent float64) {
	for x := range int(sent*float64(r.W) + 0.5) {
		r.Set(x, 0, '▀', theme.Locked)
	}
}

func drawCells(r screen.Region, q *slowmotion.QueueSnapshot, selected int) {
	perRow := max(r.W/(cellWidth+1), 1)
	lines := 1
	if rows := (q.Slots + perRow - 1) / perRow; r.H >= 2*rows {
		lines = 2
	}
	for i := range q.Slots {
		x, y := i%perRow*(cellWidth+1), i/perRow*lines
		if y+lines > r.H {
			r.TextRight(r.W, r.H-1, theme.Warn, fmt.Sprintf(" +%d slots ", q.Slots-i))
			return
		}
		cell := r.Sub(x, y, cellWidth, lines)
		if i >= len(q.Items) {
			cell.Text(0, 0, theme.Dim, "·······")
			continue
		}
		s := &q.Items[i]
		mark := " "
		if s.Locked {
			mark = "◀"
		}
		next := cell.Text(0, 0, theme.Locked, mark)
		cell.Text(next, 0, theme.ClusterStyle(int(s.Cluster)), slotLabel(s))
		cell.Text(1, 1, theme.Dim, slotAge(s))
		if i == selected {
			cell.Restyle(theme.Selected)
		}
	}
}

// slotLabel returns a label with the cluster and the number of merged updates.
func slotLabel(s *slowmotion.SlotSnapshot) string {
	if s.Count == 1 {
		return fmt.Sprintf("c%d", s.Cluster)
	}
	return fmt.Sprintf("c%d×%d", s.Cluster, s.Count)
}

func slotAge(s *slowmotion.SlotSnapshot) string { return num.FormatShort(s.Age) }

// drawSummary draws a line with the fill level and the last event. If the text needs the space, it omits the bar.
func drawSummary(r screen.Region, q *slowmotion.QueueSnapshot) {
	style, full := theme.Good, ""
	if q.Occupancy >= q.Slots {
		style, full = theme.Bad, " FULL"
	}
	level := fmt.Sprintf("%d/%d", q.Occupancy, q.Slots)
	text, look := latestFate(q)
	bar := min(max(q.Slots, 1), 16)
	if screen.TextWidth(level+full+text)+bar+3 > r.W {
		bar = 0
	}
	x := 0
	if bar > 0 {
		filled := (q.Occupancy*bar + q.Slots/2) / max(q.Slots, 1)
		x = r.Text(0, 0, style, strings.Repeat("▮", min(filled, bar))+strings.Repeat("▯", max(bar-filled, 0))) + 1
	}
	x = r.Text(x, 0, theme.Text, level)
	x = r.Text(x, 0, theme.Bad, full)
	rest := r.Sub(x+2, 0, r.W-x-2, 1)
	rest.Text(0, 0, look, screen.CutText(text, rest.W))
}

// latestFate describes the outcome of the last arrival. The text is empty before the first arrival.
func latestFate(q *slowmotion.QueueSnapshot) (string, screen.Style) {
	for i := len(q.Log) - 1; i >= 0; i-- {
		if e := &q.Log[i]; e.Kind < slowmotion.Started {
			return DescribeFate(e)
		}
	}
	return "", theme.Text
}

// DescribeFate describes the outcome of an arrival with a symbol and words.
func DescribeFate(e *slowmotion.Event) (string, screen.Style) {
	who := fmt.Sprintf("c%d/w%d", e.Cluster, e.Worker)
	switch {
	case e.Kind.IsDrop():
		return "✗ " + who + " " + strings.ReplaceAll(e.Kind.String(), "_", " "), theme.Bad
	case e.Kind == slowmotion.Delivered:
		return fmt.Sprintf("◀ c%d ×%d delivered", e.Cluster, e.Count), theme.Strong
	case e.Kind == slowmotion.Started:
		return fmt.Sprintf("▶ c%d ×%d leaves", e.Cluster, e.Count), theme.Dim
	case e.Count > 1:
		return fmt.Sprintf("⊕ %s merged, ×%d", who, e.Count), theme.Good
	case e.Kind.String() == "appended":
		return "+ " + who + " appended", theme.Text
	}
	return "↻ " + who + " " + strings.ReplaceAll(e.Kind.String(), "_", " "), theme.Warn
}
