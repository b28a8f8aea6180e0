// Package network contains the dashboard pages for a simulated network, whose run is played at a chosen pace. They show
// the ports, the fate of the updates, and the ages of the clusters. Each page has a file in this package and an entry
// in pages.
package network

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
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
	Snapshot() *netsim.Snapshot // nil before the first snapshot
	History() *History
}

// Seeds contains the progress of the runs for all seeds, including the run that is shown.
type Seeds struct{ Done, Total int }

// Options configures the dashboard. Only Source is required.
type Options struct {
	Source Source
	Seeds  func() Seeds       // nil if only the displayed run exists
	Report func() *tui.Report // returns nil until all runs have finished; a nil function means that there is no report
}

// session is the state of the pages: the most recent snapshot of the run, and the view settings.
type session struct {
	options  Options
	snapshot *netsim.Snapshot
	history  *History
	hand     pace.Hand
	seeds    Seeds
	report   *tui.Report

	reading  olaf.Reading
	wholeRun bool // time axes span the whole run
	watched  int  // index in the snapshot of the cluster whose age is drawn
	order    int  // sort order of the clusters, an index into sortings
	sorted   sorted
}

// New returns a dashboard for a simulated network.
func New(o Options) tui.Dashboard {
	s := &session{options: o, hand: pace.NewHand(o.Source, "a simulation"), seeds: Seeds{0, 1}, history: new(History)}
	const panels = "no panels here; every page is one"
	return tui.Dashboard{
		Subject: s, Keys: s.keys(),
		Pages: []tui.Page{s.runPage(), s.clustersPage(), s.portsPage(), s.resultsPage()},
		Without: map[keys.Action]string{
			keys.StepBack: s.hand.ForwardOnly(), keys.Rerun: "simulate again for other settings",
			keys.Stop:      "quit stops the simulation here",
			keys.NextPanel: panels, keys.LastPanel: panels, keys.Maximise: panels,
			keys.Workbook: "export a kept run as a workbook: 'olafctl export last --xlsx'",
			keys.Figures:  "export a kept run as figures: 'olafctl export last --svg'",
		},
		Leaving: "Quitting stops it here; the results so far are printed.",
		Instead: "without --tui, a simulation prints its progress",
	}
}

func (s *session) keys() tui.Acts {
	acts := s.hand.Acts()
	acts[keys.Watch] = tui.AsAct(func(*tui.Frame) {
		if v := s.snapshot; v != nil {
			s.watched = (s.watched + 1) % max(len(v.Clusters), 1)
		}
	})
	acts[keys.Reading] = tui.AsAct(func(*tui.Frame) { s.reading = (s.reading + 1) % olaf.Readings })
	acts[keys.Window] = tui.AsAct(func(*tui.Frame) { s.wholeRun = !s.wholeRun })
	return acts
}

// Look implements tui.Subject.
func (s *session) Look(wall time.Time) tea.Cmd {
	s.snapshot, s.history = s.options.Source.Snapshot(), s.options.Source.History()
	if s.options.Seeds != nil {
		s.seeds = s.options.Seeds()
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

// hasEnded reports whether the run that is shown has reached its end.
func (s *session) hasEnded() bool { return s.snapshot.Now >= s.snapshot.End }

// isDone reports whether all runs have finished.
func (s *session) isDone() bool {
	return s.hasEnded() && (s.options.Seeds == nil || s.seeds.Done >= s.seeds.Total)
}

// Status implements tui.Subject.
func (s *session) Status() tui.Status {
	v := s.snapshot
	if v == nil {
		return tui.Status{Busy: true}
	}
	out := s.hand.Status(v.End)
	out.Head, out.Busy = s.headPhrases(), !s.isDone()
	if v.Now < v.Warmup {
		out.Word = "warm-up"
	}
	if s.seeds.Total > 1 {
		out.Background = fmt.Sprintf("%d/%d seeds done", s.seeds.Done, s.seeds.Total)
	}
	switch {
	case s.isDone():
		out.State, out.Hint = tui.Done, "all is simulated; quit prints the report"
	case s.hasEnded():
		out.State = tui.Done
	}
	return out
}

// headPhrases returns a description of the network, the queue and the seed for the head of the page.
func (s *session) headPhrases() []screen.Phrase {
	v := s.snapshot
	control := "off"
	if v.Control {
		control = "on"
	}
	what := fmt.Sprintf("queue %s, tc %s, seed %d", v.Queue, control, v.Seed)
	switch {
	case v.Waits != "":
		what = fmt.Sprintf("%s, ports %s, seed %d", v.Waits, v.Queue, v.Seed)
	case v.Sums != "":
		what = v.Sums + ", " + what
	}
	return []screen.Phrase{{Text: cmp.Or(v.Topology, "network"), Style: theme.Strong}, {Text: what, Style: theme.Text}}
}

// viewCaption returns the caption for an exported view of the run.
func (s *session) viewCaption(what string) string {
	v := s.snapshot
	if v == nil {
		return what
	}
	of := "queue " + v.Queue
	switch {
	case v.Waits != "":
		of = v.Waits
	case v.Sums != "":
		of = v.Sums + ", " + of
	}
	return fmt.Sprintf("%s of %s, %s, seed %d, at %s of %s: %s in %s; ages %s.", what, v.Topology,
		of, v.Seed,
		num.FormatInstant(v.Now, v.End), num.FormatEnd(v.End), olaf.Plural(v.Workers, "worker"),
		olaf.Plural(len(v.Clusters), "cluster"), s.reading)
}

// span returns the time span that all charts show.
func (s *session) span() chart.Span {
	return chart.WindowSpan(s.snapshot.Now, s.snapshot.End, s.wholeRun)
}

// ageLine returns points for an age over time, up to the current instant. It is the age of a cluster or the mean over
// the clusters.
func (s *session) ageLine(span chart.Span, of func(*Instant) float64, now results.Float) []chart.Point {
	points := make([]chart.Point, 0, len(s.history.Instants)+1)
	for i := range s.history.Instants {
		if p := &s.history.Instants[i]; span.Contains(p.At) && p.At < s.snapshot.Now {
			points = append(points, chart.PointAt(p.At, of(p)))
		}
	}
	if now.Known() {
		points = append(points, chart.PointAt(s.snapshot.Now, float64(now)))
	}
	return points
}

// topAge returns the largest age of any cluster in a time span, rounded up.
func (s *session) topAge(span chart.Span) float64 {
	top := 0.0
	for i := range s.history.Instants {
		if p := &s.history.Instants[i]; span.Contains(p.At) && p.Oldest[s.reading] == p.Oldest[s.reading] {
			top = max(top, float64(p.Oldest[s.reading]))
		}
	}
	for i := range s.snapshot.Clusters {
		if age := s.snapshot.Clusters[i].AoM[s.reading]; age.Known() {
			top = max(top, float64(age))
		}
	}
	return chart.RoundUp(top)
}

// meanAge returns the mean of the current ages. It ignores clusters that have no age.
func meanAge(clusters iter.Seq[*netsim.ClusterSnapshot], reading olaf.Reading) results.Float {
	var ages metric.Series
	for c := range clusters {
		ages.Add(c.AoM[reading])
	}
	return ages.Mean()
}

// everyCluster returns an iterator over the clusters in a snapshot.
func everyCluster(v *netsim.Snapshot) iter.Seq[*netsim.ClusterSnapshot] {
	return func(yield func(*netsim.ClusterSnapshot) bool) {
		for i := range v.Clusters {
			if !yield(&v.Clusters[i]) {
				return
			}
		}
	}
}
