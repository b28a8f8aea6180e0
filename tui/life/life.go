// Package life describes the life of an update: when it was created, queued, merged, and delivered or dropped, and how
// it affected the age of its cluster.
package life

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// company is the maximum number of other updates in the same frame that are listed.
const company = 12

// story builds a description line by line.
type story struct {
	lines []screen.Phrase
	end   olaf.Time // end of the run, which sets the format of instants
}

func (s *story) addLine(style screen.Style, format string, args ...any) {
	s.lines = append(s.lines, screen.Phrase{Text: fmt.Sprintf(format, args...), Style: style})
}

// addAt adds a line about an event at an instant.
func (s *story) addAt(t olaf.Time, style screen.Style, format string, args ...any) {
	s.addLine(style, "%14s "+format, append([]any{num.FormatInstant(t, s.end)}, args...)...)
}

// DescribeLife returns a description of an update's life in a run that ends at end.
func DescribeLife(l *slowmotion.Life, end olaf.Time) []screen.Phrase {
	s := &story{end: end}
	s.addLine(theme.Strong, "update %d of worker %d, cluster %d, through %s", l.Seq, l.Worker, l.Cluster, l.Queue)
	s.addLine(theme.Text, "")
	s.addAt(l.Created, theme.Text, "created and sent by the worker")
	words, style := describeArrival(l)
	s.addAt(l.Arrived, style, "%s", words)
	if l.Frame < 0 {
		s.addLine(theme.Text, "")
		s.addLine(theme.Bad, "It never reached the parameter server; the cluster's age went on growing.")
		return s.lines
	}
	s.addCompany(l)
	if by := l.ReplacedBy; by != nil {
		s.addAt(by.Arrived, theme.Warn, "replaced by update %d of worker %d, which is newer", by.Seq, by.Worker)
		s.addLine(theme.Text, "")
		s.addLine(theme.Warn, "Its gradients were superseded; the newer update went on in its place.")
		return s.lines
	}
	s.addLeaving(l)
	return s.lines
}

// addCompany lists the other updates in the same frame.
func (s *story) addCompany(l *slowmotion.Life) {
	if len(l.With) == 0 {
		return
	}
	s.addLine(theme.Text, "               together with %d more:", len(l.With))
	for i, m := range l.With {
		if i == company {
			s.addLine(theme.Dim, "                 … and %d more", len(l.With)-i)
			return
		}
		s.addLine(theme.ClusterStyle(int(l.Cluster)), "                 worker %d, update %d, arrived %s", m.Worker,
			m.Seq, num.FormatInstant(m.Arrived, s.end))
	}
}

func (s *story) addLeaving(l *slowmotion.Life) {
	if l.Started >= 0 {
		s.addAt(l.Started, theme.Text, "the frame began to leave, %s after the update came",
			num.FormatDuration(l.Started.Sub(l.Arrived)))
	}
	if l.Delivered < 0 {
		s.addLine(theme.Text, "")
		s.addLine(theme.Dim, "It is still in the queue.")
	} else {
		s.addAt(l.Delivered, theme.Good, "delivered, %s old", num.FormatDuration(l.Delivered.Sub(l.Created)))
		s.addLine(theme.Text, "")
		s.addLine(theme.Good, "%s", describeEffect(l))
	}
	if l.Forgotten {
		s.addLine(theme.Dim, "(older members of its frame are no longer remembered)")
	}
}

func describeEffect(l *slowmotion.Life) string {
	switch {
	case l.AoMBefore < 0:
		return fmt.Sprintf("The cluster's first delivery: its Age of Model starts at %s.", num.FormatDuration(l.AoMAfter))
	case l.AoMBefore == l.AoMAfter:
		return "Something newer had been delivered before: the Age of Model did not change."
	}
	return fmt.Sprintf("The cluster's Age of Model fell from %s to %s.", num.FormatDuration(l.AoMBefore),
		num.FormatDuration(l.AoMAfter))
}

func describeArrival(l *slowmotion.Life) (string, screen.Style) {
	switch {
	case l.Kind.IsDrop():
		return "arrived at the queue: " + l.Kind.String(), theme.Bad
	case l.Kind.String() == "appended":
		return fmt.Sprintf("entered the queue, as frame #%d", l.Frame), theme.Text
	case l.Kind.String() == "aggregated":
		return fmt.Sprintf("merged into frame #%d, which was waiting", l.Frame), theme.Good
	}
	return fmt.Sprintf("took the place of what was in frame #%d (%s)", l.Frame, l.Kind), theme.Text
}
