// Package life tells the story of one update: created, queued, merged with whom, delivered or dropped, and what that did
// to its cluster's age.
package life

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Line is one sentence of a story with its look.
type Line struct {
	Text  string
	Style screen.Style
}

// Story is the life in sentences.
func Story(l *live.Life) []Line {
	out := []Line{
		{fmt.Sprintf("update %d of worker %d, cluster %d, through %s", l.Seq, l.Worker, l.Cluster, l.Queue), theme.Strong},
		{"", 0},
		{at(l.Created) + "created and sent by the worker", theme.Text},
		{at(l.Arrived) + arrival(l), arrivalStyle(l)},
	}
	if l.Frame < 0 {
		return append(out, Line{"", 0}, Line{"It never reached the parameter server; the cluster's age went on growing.", theme.Bad})
	}
	if len(l.With) > 0 {
		out = append(out, Line{fmt.Sprintf("               together with %d more:", len(l.With)), theme.Text})
		for i, m := range l.With {
			if i == 12 {
				out = append(out, Line{fmt.Sprintf("                 … and %d more", len(l.With)-i), theme.Dim})
				break
			}
			out = append(out, Line{fmt.Sprintf("                 worker %d, update %d, arrived %s", m.Worker, m.Seq, num.Time(m.Arrived)), theme.Cluster(int(l.Cluster))})
		}
	}
	if by := l.ReplacedBy; by != nil {
		return append(out,
			Line{at(by.Arrived) + fmt.Sprintf("replaced by update %d of worker %d, which is newer", by.Seq, by.Worker), theme.Warn},
			Line{"", 0}, Line{"Its gradients were superseded; the newer update went on in its place.", theme.Warn})
	}
	return append(out, leaving(l)...)
}

func leaving(l *live.Life) []Line {
	var out []Line
	if l.Started >= 0 {
		out = append(out, Line{at(l.Started) + fmt.Sprintf("the frame began to leave, %s after the update came", num.Duration(l.Started.Sub(l.Arrived))), theme.Text})
	}
	switch {
	case l.Delivered < 0:
		out = append(out, Line{"", 0}, Line{"It is still in the queue.", theme.Dim})
	default:
		out = append(out, Line{at(l.Delivered) + fmt.Sprintf("delivered, %s old", num.Duration(l.Delivered.Sub(l.Created))), theme.Good}, Line{"", 0}, Line{effect(l), theme.Good})
	}
	if l.Forgotten {
		out = append(out, Line{"(older members of its frame are no longer remembered)", theme.Dim})
	}
	return out
}

func effect(l *live.Life) string {
	switch {
	case l.AoMBefore < 0:
		return fmt.Sprintf("The cluster's first delivery: its Age of Model starts at %s.", num.Duration(l.AoMAfter))
	case l.AoMBefore == l.AoMAfter:
		return "Something newer had been delivered before: the Age of Model did not change."
	}
	return fmt.Sprintf("The cluster's Age of Model fell from %s to %s.", num.Duration(l.AoMBefore), num.Duration(l.AoMAfter))
}

func at(t olaf.Time) string { return fmt.Sprintf("%14s ", num.Time(t)) }

func arrival(l *live.Life) string {
	switch {
	case l.Kind.Dropped():
		return "arrived at the queue: " + l.Kind.String()
	case l.Kind.String() == "appended":
		return fmt.Sprintf("entered the queue, as frame #%d", l.Frame)
	case l.Kind.String() == "aggregated":
		return fmt.Sprintf("merged into frame #%d, which was waiting", l.Frame)
	}
	return fmt.Sprintf("took the place of what was in frame #%d (%s)", l.Frame, l.Kind)
}

func arrivalStyle(l *live.Life) screen.Style {
	if l.Kind.Dropped() {
		return theme.Bad
	}
	if l.Kind.String() == "aggregated" {
		return theme.Good
	}
	return theme.Text
}

// Draw draws a story.
func Draw(r screen.Region, story []Line) {
	for y, l := range story {
		r.Text(1, y, l.Style, l.Text)
	}
}
