// Package loops contains the dashboard pages for a closed-loop run, which is played at a chosen pace. They show the
// progress of the jobs, the state of every host, and the slots in the switches. Each page has a file in this package
// and an entry in New.
package loops

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/pace"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Source is the run that the pages show. None of its methods blocks. Player implements it.
type Source interface {
	pace.Run
	Snapshot() *closedloop.Snapshot // nil before the first snapshot
	History() *History
	End() olaf.Time
}

// Runs contains the progress of all runs, which are measured while one of them is shown.
type Runs struct{ Done, Total int }

// Options configures the dashboard. Only Source is required.
type Options struct {
	Source Source
	System string // system under test
	About  string // a few words about the run
	Seed   uint64
	// Work names the measurement in the background. Leaving is a sentence that describes how quitting affects it.
	Work, Leaving string
	Runs          func() Runs
	Report        func() *tui.Report // report on all runs; nil until they have finished
}

// session is the state of the pages: the most recent snapshot of the run, and the view settings.
type session struct {
	options  Options
	snapshot *closedloop.Snapshot
	history  *History
	hand     pace.Hand
	runs     Runs
	report   *tui.Report
	wholeRun bool // time axes span the whole run
	order    int  // sort order of the hosts, an index into sortings
}

// New returns a dashboard for a closed-loop run.
func New(o Options) tui.Dashboard {
	s := &session{options: o, hand: pace.NewHand(o.Source, "a loop"), history: new(History)}
	const panels, all = "no panels here; every page is one", "every job and every host is shown"
	return tui.Dashboard{
		Subject: s, Pages: []tui.Page{s.runPage(), s.hostsPage(), s.slotsPage(), s.resultsPage()}, Keys: s.keys(),
		Without: map[keys.Action]string{
			keys.StepBack: s.hand.ForwardOnly(), keys.Rerun: "start again for other settings",
			keys.Stop:      "quit stops it here",
			keys.NextPanel: panels, keys.LastPanel: panels, keys.Maximise: panels, keys.Watch: all,
			keys.Reading:  "ages are in the results",
			keys.Workbook: "export a kept run as a workbook: 'olafctl export last --xlsx'",
			keys.Figures:  "export a kept run as figures: 'olafctl export last --svg'",
		},
		Leaving: "Quitting stops it here. " + o.Leaving,
		Instead: "without --tui, it prints its progress",
	}
}

func (s *session) keys() tui.Acts {
	acts := s.hand.Acts()
	acts[keys.Window] = tui.AsAct(func(*tui.Frame) { s.wholeRun = !s.wholeRun })
	return acts
}

// Look implements tui.Subject.
func (s *session) Look(wall time.Time) tea.Cmd {
	s.snapshot, s.history = s.options.Source.Snapshot(), s.options.Source.History()
	if s.options.Runs != nil {
		s.runs = s.options.Runs()
	}
	if s.options.Report != nil {
		s.report = s.options.Report()
	}
	if s.snapshot != nil {
		s.hand.Look(wall, s.snapshot.Now)
	}
	return nil
}

// Seek implements tui.Subject.
func (s *session) Seek(to olaf.Time) string { return s.hand.Seek(to) }

func (s *session) end() olaf.Time { return s.options.Source.End() }

// Status implements tui.Subject.
func (s *session) Status() tui.Status {
	v := s.snapshot
	if v == nil {
		return tui.Status{Busy: true}
	}
	end := s.end()
	ended, done := v.Now >= end, s.report != nil
	out := s.hand.Status(end)
	out.Head = []screen.Phrase{{Text: s.options.System, Style: theme.Strong}, {Text: s.options.About, Style: theme.Text}}
	out.Busy = !ended || !done
	if s.runs.Total > 0 {
		out.Background = fmt.Sprintf("%s %d/%d", s.options.Work, s.runs.Done, s.runs.Total)
		if done {
			out.Background += " ✓"
		}
	}
	switch {
	case ended && done:
		out.State, out.Hint = tui.Done, "all is measured; quit prints the report"
	case ended:
		out.State = tui.Done
	}
	return out
}

// viewCaption returns the caption for an exported view of the run.
func (s *session) viewCaption(what string) string {
	if s.snapshot == nil {
		return what
	}
	return fmt.Sprintf("%s of %s, %s, seed %d, at %s of %s.", what, s.options.System, s.options.About, s.options.Seed,
		num.FormatInstant(s.snapshot.Now, s.end()), num.FormatEnd(s.end()))
}

// span returns the time span that all charts show.
func (s *session) span() chart.Span { return chart.WindowSpan(s.snapshot.Now, s.end(), s.wholeRun) }

// line returns points for a value of the run over time, up to the current instant, and the maximum of the value.
func (s *session) line(span chart.Span, of func(*Instant) float64, now float64) (points []chart.Point, top float64) {
	for i := range s.history.Instants {
		if p := &s.history.Instants[i]; span.Contains(p.At) && p.At < s.snapshot.Now {
			points = append(points, chart.PointAt(p.At, of(p)))
			top = max(top, of(p))
		}
	}
	return append(points, chart.PointAt(s.snapshot.Now, now)), max(top, now)
}

// FormatLine describes the state of a run that ends at end in one line, for output without a dashboard.
func FormatLine(v *closedloop.Snapshot, end olaf.Time) string {
	rounds, held := uint32(0), 0
	for i := range v.Jobs {
		rounds += v.Jobs[i].Rounds
	}
	for i := range v.Switches {
		held += v.Switches[i].Occupied
	}
	return fmt.Sprintf("%s of %s: %d of %d rounds, %s held, %s sent, %d lost, %s sent again",
		num.FormatInstant(v.Now, end), num.FormatEnd(end),
		rounds, v.Rounds*uint32(len(v.Jobs)), olaf.Plural(held, "slot"), olaf.Plural(int(v.Frames), "frame"), v.Lost,
		olaf.Plural(int(v.Endpoints.Of("packets_resent")), "packet"))
}
