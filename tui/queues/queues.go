// Package queues contains the dashboard pages for one run on a testbed. They show the queue under test and, next to it,
// the other queue with the same input. Each page has a file in this package and an entry in pages.
package queues

import (
	"context"
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/form"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/life"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Source is the run that the pages show. slowmotion.Player implements it.
type Source interface {
	Snapshot() *slowmotion.Snapshot // returns the newest snapshot; never blocks
	Do(slowmotion.Command) bool     // never blocks
	Life(queue int, update int64) (slowmotion.Life, bool)
	Inspect(context.Context) (*slowmotion.Inspection, error)
}

// Bench contains the progress and the results of an experiment that runs in the background.
type Bench struct {
	Done, Total, Invalid int
	Finished             bool
	Err                  error
	Report               *tui.Report   // nil until there is one
	Rows                 []results.Row // results so far, with ages next to the twin's; nil if not requested
}

// Options configures the dashboard. Only Source is required. If a function is nil, the features that need it are
// disabled.
type Options struct {
	Source   Source
	Bench    func() *Bench // returns the newest state; never blocks
	Workbook func(context.Context) (path string, err error)
	Figures  func(context.Context) (folder string, err error)
	Demo     bool // play a one-minute tour
	// CompareTwin means that Bench compares ages with the twin's on the device Measured, which differs from the
	// Source's device.
	CompareTwin bool
	Measured    string
}

// session is the state of the pages: the most recent snapshot of the run, and the view settings.
type session struct {
	options  Options
	snapshot *slowmotion.Snapshot
	bench    *Bench
	looks    int

	reading  olaf.Reading
	wholeRun bool // time axes span the whole run
	order    int  // sort order of the clusters, an index into sortings
	run      panels
	inspects inspecting
}

// New returns a dashboard for a run on a testbed.
func New(o Options) tui.Dashboard {
	s := &session{options: o, snapshot: o.Source.Snapshot()}
	d := tui.Dashboard{
		Subject: s, Pages: s.pages(), Keys: s.keys(),
		Leaving: "Quitting stops the generator and gives the device back.",
		Instead: "'olafctl tui --plain' works anywhere",
	}
	if o.Demo {
		d.Story = s.demo()
	}
	return d
}

func (s *session) pages() []tui.Page {
	pages := []tui.Page{s.runPage(), s.clustersPage(), s.tablesPage(), s.registersPage(), s.devicesPage(), s.resultsPage()}
	if s.snapshot.Hosts {
		pages = append(pages, s.hostsPage())
	}
	if s.hasSums() {
		pages = append(pages, s.slotsPage())
	}
	if s.snapshot.Logs || s.options.CompareTwin {
		pages = append(pages, s.twinPage())
	}
	return pages
}

func (s *session) keys() tui.Acts {
	return tui.Acts{
		keys.Pause: s.ask(func(v *slowmotion.Snapshot) slowmotion.Command {
			return slowmotion.Pause{On: v.State == slowmotion.Running}
		}),
		keys.Faster: s.ask(func(v *slowmotion.Snapshot) slowmotion.Command {
			return slowmotion.SetSpeed{Speed: v.Speed.Faster()}
		}),
		keys.Slower: s.ask(func(v *slowmotion.Snapshot) slowmotion.Command {
			return slowmotion.SetSpeed{Speed: v.Speed.Slower()}
		}),
		keys.FullSpeed: s.ask(func(*slowmotion.Snapshot) slowmotion.Command {
			return slowmotion.SetSpeed{Speed: slowmotion.AsFastAsPossible}
		}),
		keys.RealTime: s.ask(func(*slowmotion.Snapshot) slowmotion.Command {
			return slowmotion.SetSpeed{Speed: slowmotion.RealTime}
		}),
		keys.Step:     s.ask(func(*slowmotion.Snapshot) slowmotion.Command { return slowmotion.Step{} }),
		keys.StepBack: s.ask(func(*slowmotion.Snapshot) slowmotion.Command { return slowmotion.Step{Back: true} }),
		keys.Watch: s.ask(func(v *slowmotion.Snapshot) slowmotion.Command {
			return slowmotion.Watch{Cluster: olaf.ClusterID((int(v.Watched) + 1) % max(v.Plan.Spec.Workload.Clusters, 1))}
		}),
		keys.Reading:  tui.AsAct(func(*tui.Frame) { s.reading = (s.reading + 1) % olaf.Readings }),
		keys.Window:   tui.AsAct(func(*tui.Frame) { s.wholeRun = !s.wholeRun }),
		keys.Stop:     tui.AsAct(s.stop),
		keys.Rerun:    tui.AsAct(s.askSettings),
		keys.Workbook: s.writeResults("workbook", s.options.Workbook),
		keys.Figures:  s.writeResults("figures", s.options.Figures),
	}
}

// ask returns a key function that sends the command built from the current snapshot.
func (s *session) ask(command func(*slowmotion.Snapshot) slowmotion.Command) func(*tui.Frame) tea.Cmd {
	return tui.AsAct(func(f *tui.Frame) {
		if s.snapshot != nil && !s.options.Source.Do(command(s.snapshot)) {
			f.ShowNote(busy)
		}
	})
}

const busy = "busy; try again"

// Look implements tui.Subject.
func (s *session) Look(time.Time) tea.Cmd {
	s.looks++
	if s.options.Bench != nil {
		s.bench = s.options.Bench()
	}
	s.snapshot = s.options.Source.Snapshot()
	return s.inspect()
}

// Seek implements tui.Subject.
func (s *session) Seek(to olaf.Time) string {
	if s.snapshot != nil && !s.options.Source.Do(slowmotion.Seek{To: to}) {
		return busy
	}
	return ""
}

// Status implements tui.Subject.
func (s *session) Status() tui.Status {
	v := s.snapshot
	if v == nil {
		return tui.Status{}
	}
	out := tui.Status{
		State: map[slowmotion.State]tui.State{
			slowmotion.Paused: tui.Paused, slowmotion.Running: tui.Running, slowmotion.Done: tui.Done, slowmotion.Failed: tui.Failed,
		}[v.State],
		Speed: speedText(v.Speed), Head: s.headPhrases(), Now: v.Now, End: v.End, Progress: "sent " +
			num.FormatPercent(sentPct(v)), Left: timeLeft(v), Err: v.Err,
		Busy: v.Now > 0 && (v.State == slowmotion.Running || v.State == slowmotion.Paused),
	}
	if b := s.bench; b != nil {
		out.Background = fmt.Sprintf("bench %d/%d", b.Done, b.Total)
		out.Busy = out.Busy || !b.Finished
		if b.Finished {
			out.Background += " ✓"
		}
	}
	return out
}

func speedText(s slowmotion.Speed) string {
	if s == slowmotion.AsFastAsPossible {
		return "full speed"
	}
	return num.FormatSpeed(olaf.Duration(s).Seconds())
}

// sentPct returns how much of the traffic has been sent, in per cent.
func sentPct(v *slowmotion.Snapshot) float64 {
	if v.Total <= 0 {
		return 100
	}
	return 100 * float64(v.Sent) / float64(v.Total)
}

// timeLeft returns the remaining time of the run at its current speed.
func timeLeft(v *slowmotion.Snapshot) time.Duration {
	if v.Speed <= 0 || v.End < v.Now {
		return -1
	}
	return time.Duration(float64(v.End-v.Now) / float64(v.Speed) * float64(time.Second))
}

// headPhrases returns a description of the run, its device and its validity for the head of the page.
func (s *session) headPhrases() []screen.Phrase {
	v := s.snapshot
	out := []screen.Phrase{
		{Text: v.Plan.Spec.Experiment, Style: theme.Strong}, {Text: "on", Style: theme.Dim}, {Text: v.Device.Address +
			" " + v.Device.Build, Style: theme.Text},
	}
	if on := s.options.Measured; on != "" {
		out[2].Text = on
		out = append(out, screen.Phrase{Text: "beside", Style: theme.Dim}, screen.Phrase{Text: v.Device.Address +
			" " + v.Device.Build, Style: theme.Text})
	}
	if v.Sampled {
		out = append(out, screen.Phrase{Text: "sampled", Style: theme.Warn})
	}
	word, style := s.validity()
	return append(out, screen.Phrase{Text: " " + word, Style: style})
}

func (s *session) validity() (string, screen.Style) {
	v := s.snapshot
	if v.Err != nil && v.State == slowmotion.Failed {
		return "✗ FAILED", theme.Bad
	}
	for i := range v.Queues {
		if v.Queues[i].Invalid != "" {
			return "✗ INVALID", theme.Bad
		}
	}
	if s.bench != nil && s.bench.Invalid > 0 {
		return fmt.Sprintf("✗ %d INVALID", s.bench.Invalid), theme.Bad
	}
	return "✓ valid", theme.Good
}

// viewCaption returns the caption for an exported view of the run.
func (s *session) viewCaption(what string) string {
	v := s.snapshot
	if v == nil {
		return what
	}
	w := &v.Plan.Spec.Workload
	return fmt.Sprintf("%s of %s on %s, seed %d, at %s of %s: %s in %s offer %v "+
		"to %s; ages %s.", what, v.Plan.Spec.Experiment,
		v.Device.Address, v.Seed, num.FormatInstant(v.Now, v.End), num.FormatEnd(v.End),
		olaf.Plural(w.Workers, "worker"), olaf.Plural(w.Clusters, "cluster"), w.MeanRate, olaf.Plural(v.Plan.Spec.Slots, "slot"), s.reading)
}

// stop ends the traffic if its key is pressed twice in a row.
func (s *session) stop(f *tui.Frame) {
	if !f.IsRepeat(keys.Stop) {
		f.ShowNote(f.Key(keys.Stop) + " again stops the generator")
		return
	}
	s.options.Source.Do(slowmotion.Stop{})
	f.ShowNote("the traffic is stopped; what is inside still leaves")
}

// writeResults returns a key function that writes the results of the experiment in some format.
func (s *session) writeResults(what string, write func(context.Context) (path string,
	err error)) func(*tui.Frame) tea.Cmd {
	return func(f *tui.Frame) tea.Cmd {
		if write == nil {
			f.ShowNote("no results to write: start with 'olafctl bench --tui'")
			return nil
		}
		f.ShowNote("writing the " + what + "…")
		return func() tea.Msg {
			path, err := write(context.Background())
			return tui.ReportSaved(what, path, err)
		}
	}
}

// askSettings opens the form for the settings of another run.
func (s *session) askSettings(f *tui.Frame) {
	if v := s.snapshot; v != nil {
		f.Open(&settings{s, form.New(v.Plan.Spec, v.Rate)})
	}
}

// settings is the overlay that shows the settings form.
type settings struct {
	session *session
	form    form.Form
}

// Size implements tui.Overlay.
func (o *settings) Size(*tui.Frame, int, int) (title string, w, h int) {
	return "run again", 58, form.Height
}

// Draw implements tui.Overlay.
func (o *settings) Draw(_ *tui.Frame, r screen.Region) { o.form.Draw(r) }

// Key implements tui.Overlay.
func (o *settings) Key(f *tui.Frame, msg tea.KeyMsg, _ keys.Action) tea.Cmd {
	switch msg.Type {
	case tea.KeyEsc:
		f.Close()
	case tea.KeyCtrlC:
		f.Close()
		return f.Leave()
	case tea.KeyEnter:
		spec, err := o.form.Spec()
		if err != nil {
			o.form.Err = err.Error()
			return nil
		}
		f.Close()
		f.Freeze(false)
		f.DropMarks()
		o.session.options.Source.Do(slowmotion.Rerun{Spec: spec})
	default:
		o.form = o.form.Update(msg)
		o.form.Err = ""
	}
	return nil
}

// showLife reads the life of an update and shows it.
func (s *session) showLife(queue int, update int64) tea.Cmd {
	source, end := s.options.Source, s.snapshot.End
	return func() tea.Msg {
		l, ok := source.Life(queue, update)
		return tui.Then(func(f *tui.Frame) {
			if !ok {
				f.ShowNote("that update is no longer remembered; go back in time to see it")
				return
			}
			f.Open(&tui.Reading{Title: "the life of an update", Lines: life.DescribeLife(&l, end)})
		})
	}
}

// queue returns the queue with index i, or nil if there is none.
func (s *session) queue(i int) *slowmotion.QueueSnapshot {
	if s.snapshot == nil || i < 0 || i >= len(s.snapshot.Queues) {
		return nil
	}
	return &s.snapshot.Queues[i]
}
