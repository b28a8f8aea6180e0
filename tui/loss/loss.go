// Package loss shows where updates went: merged, delivered, or lost and why.
package loss

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

type line struct {
	mark, name string
	count      int64
	style      screen.Style
	always     bool
}

// Draw draws one bar a fate, as shares of what was sent; fates that did not happen are left out where room is short.
func Draw(r screen.Region, q *live.QueueSnapshot) {
	c := &q.Counters
	lines := []line{
		{"✗", "lost", c.Lost() - c.Queued, theme.Bad, true},
		{"⊕", "merged", c.Aggregated, theme.Good, true},
		{"◀", "delivered", c.Delivered, theme.Strong, true},
		{"▮", "in queue", c.Queued, theme.Dim, true},
	}
	for _, p := range c.LostParts() {
		if p.Name != "queued" && p.Count > 0 {
			lines = append(lines, line{" ", p.Name, p.Count, theme.Bad, false})
		}
	}
	for y, l := range lines[:min(len(lines), r.H)] {
		row := r.Sub(0, y, r.W, 1)
		x := row.Text(0, 0, l.style, l.mark+" ")
		row.Sub(x, 0, 16, 1).Text(0, 0, theme.Text, l.name)
		share := 0.0
		if c.Sent > 0 {
			share = float64(l.count) / float64(c.Sent)
		}
		name := 12
		if !l.always {
			name = 18
		}
		bar := row.Sub(name, 0, row.W-name-15, 1)
		if bar.W > 2 {
			chart.Bar(bar, share, l.style)
		}
		row.Right(row.W-8, 0, theme.Text, " "+num.Count(l.count))
		row.Right(row.W, 0, l.style, " "+num.Percent(100*share))
	}
}

// Drops is how many updates were dropped in each of n equal parts of a span.
func Drops(q *live.QueueSnapshot, from, to olaf.Time, n int) []float64 {
	out := make([]float64, max(n, 0))
	for _, p := range q.Series {
		if p.At > from && p.At <= to && n > 0 {
			part := int(float64(p.At-from) / float64(to-from) * float64(n))
			out[min(part, n-1)] += float64(p.Dropped)
		}
	}
	return out
}

// Counters draws the queue's counters by their register names, in columns.
func Counters(r screen.Region, q *live.QueueSnapshot) {
	c := &q.Counters
	entries := []struct {
		name  string
		value int64
	}{
		{"sent", c.Sent}, {"in", c.In}, {"appended", c.Appended}, {"aggregated", c.Aggregated},
		{"replaced", c.Replaced}, {"replaced_reward", c.ReplacedReward}, {"dropped_full", c.DroppedFull},
		{"dropped_reward", c.DroppedReward}, {"dropped_mismatch", c.DroppedMismatch}, {"delivered_frames", c.Delivered},
		{"delivered_updates", c.CountDelivered}, {"queued_frames", c.Queued}, {"bypassed", c.Bypassed}, {"malformed", c.Malformed},
		{"lost_before_engine", c.LostBeforeEngine}, {"misidentified", c.Misidentified}, {"lane_saturations", c.LaneSaturations}, {"capture_lost", c.CaptureLost},
	}
	const width = 28
	for i, e := range entries {
		x, y := i/max(r.H, 1)*(width+2), i%max(r.H, 1)
		if x+width > r.W {
			return
		}
		cell := r.Sub(x, y, width, 1)
		style := theme.Text
		if e.value == 0 {
			style = theme.Dim
		}
		cell.Text(0, 0, style, e.name)
		cell.Right(cell.W, 0, style, num.Count(e.value))
	}
}
