// Package sweep contains the dashboard pages for a running sweep. They show its progress and speed, its workers, and
// its failures.
package sweep

import (
	"fmt"
	"maps"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Options configures the dashboard. Progress is required and must not block.
type Options struct {
	ID       string
	What     string // the varied parameters, in words
	Progress func() sweep.Progress
	Report   func() *tui.Report // report on the finished sweep, nil until then; a nil function means that there is no report
}

// session is the state of the pages: the most recent progress of the sweep and its history.
type session struct {
	options  Options
	progress sweep.Progress
	history  []sample
	every    time.Duration // interval between two samples
	report   *tui.Report
	looked   bool
}

// sample is the number of results at one instant.
type sample struct {
	at   time.Time
	done int
}

const (
	// mostSamples is the maximum number of samples in the history. When it is reached, every second sample is removed.
	mostSamples = 512
	firstEvery  = 200 * time.Millisecond
	// recent is the period over which the speed is measured to estimate the remaining time.
	recent = 30 * time.Second
)

// New returns a dashboard for a sweep.
func New(o Options) tui.Dashboard {
	s := &session{options: o, every: firstEvery}
	const goes, panels, later = "a sweep goes as fast as it can", "no panels here; every page is one",
		"'olafctl sweep export last' writes the finished sweep"
	without := map[keys.Action]string{keys.Stop: "quit stops the sweep; 'olafctl sweep resume' goes on",
		keys.Rerun:     "'olafctl sweep run' begins another one",
		keys.NextPanel: panels, keys.LastPanel: panels, keys.Maximise: panels, keys.Workbook: later, keys.Figures: later,
		keys.Reading: "ages are in the report", keys.Window: "the whole sweep is shown",
		keys.Watch: "the whole sweep is shown"}
	for _, a := range []keys.Action{keys.Pause, keys.Step, keys.StepBack, keys.Faster, keys.Slower, keys.FullSpeed,
		keys.RealTime} {
		without[a] = goes
	}
	return tui.Dashboard{Subject: s, Pages: []tui.Page{s.progressPage(), s.workersPage(), s.failuresPage(),
		s.resultsPage()}, Without: without,
		Leaving: "Quitting stops the sweep; what is done is kept, and 'olafctl sweep resume' goes on.",
		Instead: "without --tui, a sweep prints its progress"}
}

// Look implements tui.Subject.
func (s *session) Look(wall time.Time) tea.Cmd {
	s.progress, s.looked = s.options.Progress(), true
	if s.options.Report != nil {
		s.report = s.options.Report()
	}
	if n := len(s.history); n == 0 || wall.Sub(s.history[n-1].at) >= s.every && !s.isDone() {
		s.history = append(s.history, sample{wall, s.progress.LotsDone})
	}
	if len(s.history) == mostSamples {
		kept := s.history[:0]
		for i := 0; i < mostSamples; i += 2 {
			kept = append(kept, s.history[i])
		}
		s.history, s.every = kept, 2*s.every
	}
	return nil
}

// Seek implements tui.Subject.
func (s *session) Seek(olaf.Time) string { return "a sweep goes forward only" }

// isDone reports whether all cells have ended.
func (s *session) isDone() bool { return s.progress.Done+s.progress.Failed >= s.progress.Cells }

// rate returns the recent number of results per second. known is false at first.
func (s *session) rate() (perSecond float64, known bool) {
	if len(s.history) < 2 {
		return 0, false
	}
	last := s.history[len(s.history)-1]
	first := s.history[0]
	for _, h := range s.history {
		if first = h; last.at.Sub(h.at) <= recent {
			break
		}
	}
	seconds := last.at.Sub(first.at).Seconds()
	return float64(last.done-first.done) / seconds, seconds > 0
}

// timeLeft returns the remaining time at the current rate. It is negative if unknown.
func (s *session) timeLeft() time.Duration {
	rate, known := s.rate()
	const ever = 1e9 // in seconds; more does not fit into a time.Duration and means never
	seconds := float64(s.progress.Lots-s.progress.LotsDone) / rate
	if !known || !(seconds < ever) {
		return -1
	}
	return time.Duration(seconds * float64(time.Second))
}

// speedText returns the rate as text.
func (s *session) speedText() string {
	rate, known := s.rate()
	if !known {
		return num.Unknown
	}
	return fmt.Sprintf("%.3g results/s", rate)
}

// watchedTime returns for how long the sweep has been watched.
func (s *session) watchedTime() time.Duration {
	if len(s.history) == 0 {
		return 0
	}
	return s.history[len(s.history)-1].at.Sub(s.history[0].at)
}

func deviceTime(d time.Duration) olaf.Time {
	return olaf.Time(d.Nanoseconds()) * olaf.Time(olaf.Nanosecond)
}

// Status implements tui.Subject.
func (s *session) Status() tui.Status {
	if !s.looked {
		return tui.Status{Busy: true}
	}
	p, left := &s.progress, s.timeLeft()
	out := tui.Status{State: tui.Running, Speed: s.speedText(), Now: deviceTime(s.watchedTime()),
		End: deviceTime(s.watchedTime() + max(left, 0)), Left: left, Busy: true,
		Progress: fmt.Sprintf("%d/%d cells", p.Done, p.Cells),
		Head:     []screen.Phrase{{Text: s.options.ID, Style: theme.Strong}}}
	if p.Failed > 0 {
		out.Background = fmt.Sprintf("%d failed", p.Failed)
	}
	if s.isDone() {
		out.State, out.Busy, out.Hint = tui.Done, s.options.Report != nil && s.report == nil,
			"all is done; quit prints the report"
	}
	return out
}

func (s *session) progressPage() tui.Page {
	return tui.Page{
		Title: "Progress", About: "How many cells are done, how many results are stored, how fast they come, and what " +
			"is left at the rate of the last half minute; below, results over the time of watching.",
		Draw: s.drawProgress,
	}
}

func (s *session) drawProgress(_ *tui.Frame, r screen.Region) {
	p := &s.progress
	left := num.FormatWait(s.timeLeft())
	if s.isDone() {
		left = "nothing"
	}
	lines := []struct{ name, value string }{
		{"of", s.options.What},
		{"cells done", fmt.Sprintf("%d of %d", p.Done, p.Cells)}, {"cells failed", fmt.Sprint(p.Failed)},
		{"results stored", fmt.Sprintf("%d of %d known to be needed, %d of them found", p.LotsDone, p.Lots, p.Found)},
		{"workers", fmt.Sprintf("%d have a job", len(p.Working))}, {"rate", s.speedText()}, {"left", left},
	}
	const name = 16
	inside := r.Sub(0, 0, r.W, min(len(lines)+3, r.H)).Box(screen.Thin, theme.Border, theme.Title, "progress")
	for i, l := range lines {
		inside.Text(1, i, theme.Dim, l.name)
		inside.Text(1+name, i, theme.Text, l.value)
	}
	chart.DrawGauge(inside.Sub(1, len(lines), max(inside.W-2, 0), 1), float64(p.LotsDone), float64(p.Lots), theme.Good)
	box := r.Sub(0, len(lines)+3, r.W, max(r.H-len(lines)-3, 0))
	if box.H < 4 || len(s.history) < 2 {
		return
	}
	points := make([]chart.Point, len(s.history))
	for i, h := range s.history {
		points[i] = chart.Point{X: h.at.Sub(s.history[0].at).Seconds(), Y: float64(h.done)}
	}
	chart.DrawLines(box.Box(screen.Thin, theme.Border, theme.Title, "results stored"),
		chart.Axes{X1: points[len(points)-1].X, Y1: float64(p.Lots),
			X: func(v float64) string { return num.FormatNS(1e9 * v) },
			Y: func(v float64) string { return num.FormatCount(int64(v)) }}, chart.Line{Points: points, Style: theme.Good})
}

func (s *session) workersPage() tui.Page {
	return s.listPage("Workers", "worker", "works on", "Who has a job at the moment, and of which cell.",
		func() list.Rows {
			names := slices.Sorted(maps.Keys(s.progress.Working))
			return list.Rows{Len: len(names), Row: func(i int) list.Row {
				return list.Row{ID: int64(i), Cells: []list.Cell{{Text: names[i]}, {Text: s.progress.Working[names[i]]}}}
			}}
		})
}

func (s *session) failuresPage() tui.Page {
	return s.listPage("Failures", "cell", "why",
		"Cells that ended with an error or crashed several workers. The others continue.",
		func() list.Rows {
			all := s.progress.Failures
			return list.Rows{Len: len(all), Row: func(i int) list.Row {
				return list.Row{ID: int64(i), Cells: []list.Cell{{Text: all[i].Cell}, {Text: all[i].Error}}}
			}}
		})
}

// listPage returns a page that shows a list with two columns.
func (s *session) listPage(title, first, second, about string, rows func() list.Rows) tui.Page {
	columns := []list.Column{{Name: first, Width: 28}, {Name: second, Least: 12, Drop: 1}}
	return tui.Page{Title: title, About: about, Rows: rows, Draw: func(f *tui.Frame, r screen.Region) {
		all := rows()
		f.DrawList(r, r.Box(screen.Thin, theme.Border, theme.Title, fmt.Sprintf("%s, %d", title, all.Len)),
			tui.Listing{Columns: columns, Rows: all, Focused: true})
	}}
}

func (s *session) resultsPage() tui.Page {
	rows := func() list.Rows {
		if s.report == nil {
			return list.FromTexts([]string{"the report appears here once all cells are done"})
		}
		return list.FromTexts(s.report.Lines())
	}
	return tui.Page{Title: "Results",
		About: "The report of the finished sweep, as quitting prints it. left and right shift long lines.", Rows: rows,
		Keys: tui.ShiftKeys(func() bool { return s.report != nil }),
		Draw: func(f *tui.Frame, r screen.Region) {
			inside := r.Box(screen.Thin, theme.Border, theme.Title, "Results")
			if s.report != nil {
				s.report.Fold(inside)
			}
			f.DrawList(r, inside, tui.Listing{Columns: []list.Column{{}}, Rows: rows()})
		}}
}
