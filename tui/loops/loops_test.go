package loops

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/pace"
	"github.com/olafctl/olaf/tui/theme"
	"github.com/olafctl/olaf/tui/tuitest"
)

// loop is a closed loop of a system: jobs with some workers on links of 10 Gbps.
type loop struct {
	of                   string
	jobs, workers, racks int
	o                    system.Options
	loss                 float64
}

// play runs the loop.
func (l loop) play(follow closedloop.Follow) *closedloop.Result {
	found, err := system.All().Find(l.of)
	if err != nil {
		panic(err) // fails the test with a stack trace
	}
	l.o.Jobs = l.jobs
	net := closedloop.Network{Workers: l.workers, Jobs: l.jobs, Cycle: olaf.Cycle,
		Link: closedloop.Link{Rate: 10 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Overhead: 24, Loss: l.loss}}
	if l.racks > 1 {
		net.PerRack = l.workers / l.racks
		l.o.PerRack = net.PerRack
	}
	parts, err := found.Modes[0].Parts(&l.o)
	if err != nil {
		panic(err)
	}
	job := closedloop.Job{Updates: 5, Compute: 20 * olaf.Microsecond, Jitter: 0.5, Limit: olaf.Second, Follow: follow}
	job.Layout.Values, job.PerPacket = 20_000, parts.PerPacket
	r, err := closedloop.Run(context.Background(), net, job, parts, true, 1)
	if err != nil {
		panic(err)
	}
	return r
}

func (l loop) end() olaf.Time {
	return olaf.Time(math.Round(float64(l.play(nil).Duration) * float64(olaf.Nanosecond)))
}

// glance stops a run at an instant and returns its snapshot and its history until then.
type glance struct {
	*Player
	at      olaf.Time
	picture *closedloop.Snapshot
}

func (g *glance) Follow(last, next olaf.Time, look *closedloop.Look) (olaf.Time, bool) {
	if next < g.at {
		until, on := g.Player.Follow(last, next, look)
		return min(until, g.at), on
	}
	g.Remember(g.at, look.Snapshot)
	g.picture = look.Snapshot(g.at)
	return g.at, false
}

// still is a paused run with one snapshot.
type still struct {
	tuitest.Still
	snapshot *closedloop.Snapshot
	history  *History
	end      olaf.Time
}

func (s *still) Snapshot() *closedloop.Snapshot { return s.snapshot }
func (s *still) History() *History              { return s.history }
func (s *still) End() olaf.Time                 { return s.end }

// at returns a source that shows a loop after a given part of its time.
func (l loop) at(part float64) *still {
	end := l.end()
	if part == 1 {
		p := NewPlayer(end, pace.Pace{Speed: pace.Full}, &tuitest.Jumping{})
		l.play(p.Follow)
		return &still{snapshot: p.Snapshot(), history: p.History(), end: end,
			Still: tuitest.Still{Holds: pace.Pace{Speed: 1e-5}}}
	}
	g := &glance{Player: NewPlayer(end, pace.Pace{Speed: pace.Full}, &tuitest.Jumping{}),
		at: olaf.Time(part * float64(end))}
	l.play(g.Follow)
	return &still{snapshot: g.picture, history: g.History(), end: end, Still: tuitest.Still{Holds: pace.Pace{Speed: 1e-5}}}
}

// scenes are the runs for the pages, each created on first use.
var scenes = map[string]func() *still{
	"pool": sync.OnceValue(func() *still { return loop{of: "switchml", jobs: 1, workers: 8}.at(0.13) }),
	"over": sync.OnceValue(func() *still { return loop{of: "switchml", jobs: 1, workers: 8}.at(1) }),
	"racks": sync.OnceValue(func() *still {
		return loop{of: "atp", jobs: 2, workers: 6, racks: 2, o: system.Options{Profile: "paper", Slots: 150},
			loss: 0.002}.at(0.003)
	}),
	"forward": sync.OnceValue(func() *still { return loop{of: "ring", jobs: 1, workers: 4}.at(0.5) }),
	"nothing": func() *still { return &still{history: new(History), Still: tuitest.Still{Holds: pace.Pace{Speed: 1}}} },
}

// dash returns a dashboard of a given size that has watched its source for a second.
type dash struct {
	*tui.Frame
	source *still
	pages  []tui.Page
}

func shown(scene string, width, height int, edit func(*Options)) *dash {
	source := *scenes[scene]()
	o := Options{Source: &source, System: scene, About: "at 10Gbps, some jobs", Seed: 7, Work: "bench"}
	if edit != nil {
		edit(&o)
	}
	pages := New(o)
	clock := &tuitest.Clock{Now: time.Unix(1000, 0)}
	d := &dash{source: &source, pages: pages.Pages, Frame: tui.New(pages, tui.Options{Tick: clock.Tick,
		Theme: theme.New(theme.Options{})})}
	tuitest.SendMessage(d.Frame, tea.WindowSizeMsg{Width: width, Height: height})
	clock.Advance(d.Frame, 0)
	clock.Advance(d.Frame, time.Second)
	return d
}

// TestPages compares the bodies of the pages with the golden files.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		name, scene   string
		width, height int
		keys          []string
	}{
		{"run", "pool", 80, 21, nil}, {"run", "pool", 120, 37, []string{"w"}}, {"run-racks", "racks", 100, 27,
			[]string{"w"}}, {"run-forward", "forward", 80, 21, nil},
		{"hosts", "racks", 120, 37, []string{"2"}}, {"hosts", "pool", 80, 21, []string{"2"}},
		{"hosts-sorted", "racks", 80, 21, []string{"2", "s"}},
		{"hosts-filtered", "racks", 80, 21, []string{"2", "/", "server", "enter"}},
		{"slots", "pool", 80, 21, []string{"3"}}, {"slots-racks", "racks", 100, 27, []string{"3"}},
		{"slots-forward", "forward", 80, 21, []string{"3"}},
		{"results", "pool", 80, 21, []string{"4"}}, {"results", "over", 120, 37, []string{"4"}},
	} {
		t.Run(fmt.Sprintf("%s-%dx%d", c.name, c.width, c.height), func(t *testing.T) {
			d := shown(c.scene, c.width, c.height+3, nil)
			tuitest.PressKeys(d.Frame, c.keys...)
			teatest.RequireEqualOutput(t, []byte(tuitest.DrawBody(d.Frame, &d.pages[d.Page()], c.width, c.height)))
		})
	}
}

// TestEveryPageFits checks every page on the smallest terminal and on larger ones, also before the first snapshot.
func TestEveryPageFits(t *testing.T) {
	for scene := range scenes {
		for _, size := range [][2]int{{60, 16}, {61, 17}, {80, 24}, {200, 60}} {
			d := shown(scene, size[0], size[1], nil)
			for page := range d.pages {
				tuitest.PressKeys(d.Frame, fmt.Sprint(page+1))
				lines := strings.Split(strings.TrimRight(d.Frame.Text(), "\n"), "\n")
				if len(lines) > size[1] {
					t.Errorf("%s, page %d: %d lines in %d", scene, page+1, len(lines), size[1])
				}
			}
			tuitest.PressKeys(d.Frame, "?", "esc")
		}
	}
}

// TestStatus checks the frame's text for runs in all states.
func TestStatus(t *testing.T) {
	report := tui.NewReport(func(int) []string { return []string{"a report"} })
	for _, c := range []struct {
		scene string
		pace  pace.Pace
		edit  func(*Options)
		state tui.State
		busy  bool
		say   string
	}{
		{"nothing", pace.Pace{Speed: 1}, nil, tui.Starting, true, ""},
		{"pool", pace.Pace{Speed: 1e-5}, nil, tui.Running, true, "10.0 µs/s"},
		{"pool", pace.Pace{Speed: pace.Full, Paused: true}, nil, tui.Paused, true, "full speed"},
		{"pool", pace.Pace{Speed: 1}, func(o *Options) { o.Runs = func() Runs { return Runs{2, 5} } }, tui.Running,
			true, "bench 2/5"},
		{"over", pace.Pace{Speed: 1}, nil, tui.Done, true, ""},
		{"over", pace.Pace{Speed: 1}, func(o *Options) {
			o.Runs, o.Report = func() Runs { return Runs{5, 5} }, func() *tui.Report { return report }
		}, tui.Done, false, "bench 5/5 ✓"},
	} {
		source := *scenes[c.scene]()
		source.Holds = c.pace
		o := Options{Source: &source, Work: "bench"}
		if c.edit != nil {
			c.edit(&o)
		}
		subject := New(o).Subject
		subject.Look(time.Unix(1, 0))
		got := subject.Status()
		if got.State != c.state || got.Busy != c.busy || !strings.Contains(got.Speed+" "+got.Background, c.say) {
			t.Errorf("%s %+v: %+v", c.scene, c.pace, got)
		}
	}
}

// TestKeys checks the keys that change the pace or seek.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		keys string
		want pace.Pace
	}{
		{" ", pace.Pace{Speed: 1e-5, Paused: true}}, {"+", pace.Pace{Speed: 2e-5}}, {"-", pace.Pace{Speed: 5e-6}},
		{"M", pace.Pace{Speed: pace.Full}},
		{"R", pace.Pace{Speed: 1}}, {".", pace.Pace{Speed: 1e-5, Paused: true}},
	} {
		d := shown("pool", 80, 24, nil)
		tuitest.PressKeys(d.Frame, c.keys)
		got := d.source.Holds
		if got.Paused != c.want.Paused || math.Abs(float64(got.Speed/c.want.Speed)-1) > 1e-3 &&
			got.Speed != c.want.Speed || (d.source.Steps > 0) != (c.keys == ".") {
			t.Errorf("%q: %+v, %d steps; want %+v", c.keys, got, d.source.Steps, c.want)
		}
	}
	subject := New(Options{Source: scenes["pool"]()}).Subject
	subject.Look(time.Unix(1, 0))
	if refusal := subject.Seek(0); !strings.Contains(refusal, "forward only") {
		t.Errorf("back: %q", refusal)
	}
}

// TestEveryActionIsKnown checks that every key has an effect or shows why it has none.
func TestEveryActionIsKnown(t *testing.T) {
	pages := New(Options{Source: scenes["nothing"]()})
	for action := range pages.Without {
		if pages.Keys[action] != nil {
			t.Errorf("%s does something, and says why it doesn't", action)
		}
	}
	if pages.Without[keys.StepBack] == "" {
		t.Error("nothing is said of going back")
	}
}

// TestPlayerChangesNothing checks that hurrying, stepping and looking do not change a loop's result, and that snapshots
// go forward.
func TestPlayerChangesNothing(t *testing.T) {
	for _, l := range []loop{{of: "switchml", jobs: 2, workers: 3, loss: 0.01}, {of: "atp", jobs: 1, workers: 4,
		racks: 2, o: system.Options{Profile: "paper"}}} {
		alone := fmt.Sprintf("%+v", *l.play(nil))
		p := NewPlayer(l.end(), pace.Pace{Speed: 1e-3}, &tuitest.Jumping{})
		var meddler sync.WaitGroup
		meddler.Go(func() {
			before := olaf.Time(0)
			for n := range 500 {
				if v := p.Snapshot(); v != nil {
					if v.Now < before {
						t.Errorf("time went back from %v to %v", before, v.Now)
					}
					before = v.Now
				}
				p.SetPace(pace.Pace{Speed: []pace.Speed{1e-6, 1e-3, pace.Full}[n%3], Paused: n%5 == 0})
				p.Step()
			}
			p.SetPace(pace.Pace{Speed: pace.Full})
		})
		if watched := fmt.Sprintf("%+v", *l.play(p.Follow)); watched != alone {
			t.Errorf("%s: watched\n%s\nalone\n%s", l.of, watched, alone)
		}
		meddler.Wait()
		if v := p.Snapshot(); v == nil || v.Now != p.End() || !v.Jobs[0].Done || v.Jobs[0].Rounds != 5 {
			t.Errorf("%s: the last picture is %+v", l.of, v)
		}
		if n := len(p.History().Instants); n < pace.MostInstants/4 {
			t.Errorf("%d instants are remembered", n)
		}
	}
}

// TestLastFrameShowsTheResultsNumbers checks that at the end of a loop the dashboard shows the same counters as the
// run's result, including the frames and packets sent again on the Run page.
func TestLastFrameShowsTheResultsNumbers(t *testing.T) {
	l := loop{of: "switchml", jobs: 2, workers: 3, loss: 0.01}
	p := NewPlayer(l.end(), pace.Pace{Speed: pace.Full}, &tuitest.Jumping{})
	r := l.play(p.Follow)
	source := &still{snapshot: p.Snapshot(), history: p.History(), end: l.end(), Still: tuitest.Still{Holds: pace.Pace{Speed: 1}}}
	scenes["counted"] = func() *still { return source }
	defer delete(scenes, "counted")
	d := shown("counted", 120, 120, nil)
	line := func(name, between string, count int64) {
		t.Helper()
		want := regexp.QuoteMeta(name) + between + regexp.QuoteMeta(num.FormatCount(count)) + " "
		if !regexp.MustCompile(want).MatchString(d.Frame.Text()) {
			t.Errorf("the last frame must show %s of the result, as %q:\n%s", name, want, d.Frame.Text())
		}
	}
	line("fate of", " ", int64(r.Frames))
	line("✗ lost", "[ ▁-▏█]+", int64(r.Lost)) // the number follows a bar
	if again := r.Endpoints.Of("packets_resent"); again == 0 {
		t.Error("nothing was sent again: the loss tests nothing")
	}
	tuitest.PressKeys(d.Frame, "4")
	for _, counts := range []olaf.Counts{r.Endpoints, r.Program} {
		for i := range counts.Names() {
			line(counts.Ledger().Counters[i].Title, " +", counts.At(i))
		}
	}
}

// TestLine checks the one-line description of a run.
func TestLine(t *testing.T) {
	s := scenes["pool"]()
	if line := FormatLine(s.snapshot, s.end); !strings.Contains(line, "of 5 rounds") || !strings.Contains(line, "held") {
		t.Error(line)
	}
}
