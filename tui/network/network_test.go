package network

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/pace"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
	"github.com/olafctl/olaf/tui/tuitest"
)

// still is a paused run with one snapshot.
type still struct {
	tuitest.Still
	snapshot *netsim.Snapshot
	history  *History
}

func (s *still) Snapshot() *netsim.Snapshot { return s.snapshot }
func (s *still) History() *History          { return s.history }

// glance stops a run at an instant and returns its snapshot and its history until then.
type glance struct {
	*Player
	at      olaf.Time
	picture *netsim.Snapshot
}

func (g *glance) Before(last, next olaf.Time, look func(at olaf.Time) *netsim.Snapshot) (olaf.Time, bool) {
	if next < g.at {
		until, on := g.Player.Before(last, next, look)
		return min(until, g.at), on
	}
	g.Remember(g.at, look)
	g.picture = look(g.at)
	return g.at, false
}

// at returns a source that shows a real run at an instant.
func at(topology *netsim.Topology, instant olaf.Time) *still {
	g := &glance{Player: NewPlayer(end(topology), pace.Pace{Speed: pace.Full}, &tuitest.Jumping{}), at: instant}
	if _, err := netsim.Run(context.Background(), topology, netsim.Options{Watcher: g}); err != nil {
		panic(err)
	}
	return &still{snapshot: g.picture, history: g.History(), Still: tuitest.Still{Holds: pace.Pace{Speed: 1}}}
}

// scenes are the runs for the pages, each created on first use.
var scenes = map[string]func() *still{
	"plain": sync.OnceValue(func() *still {
		return at(preset("multihop", netsim.Scale{}), olaf.Time(12*olaf.Second+345*olaf.Millisecond))
	}),
	"warmup": sync.OnceValue(func() *still {
		return at(preset("multihop", netsim.Scale{}),
			olaf.Time(800*olaf.Millisecond))
	}),
	"over": sync.OnceValue(func() *still {
		topology := preset("multihop", netsim.Scale{})
		return at(topology, end(topology))
	}),
	"failing": sync.OnceValue(func() *still {
		topology := preset("multihop", netsim.Scale{})
		topology.Control.Enabled, topology.Queue = true, "fifo"
		topology.Schedule = []netsim.Change{{At: 6 * olaf.Second, From: "sw1", To: "sw3", Link: netsim.LinkDown}}
		return at(topology, olaf.Time(10*olaf.Second))
	}),
	"waiting": sync.OnceValue(func() *still {
		topology := preset("multihop", netsim.Scale{})
		topology.Queue, topology.Waiting = "fifo", &netsim.Waiting{System: "switchml"}
		return at(topology, olaf.Time(12*olaf.Second+345*olaf.Millisecond))
	}),
	"adding": sync.OnceValue(func() *still {
		topology := preset("multihop", netsim.Scale{})
		topology.Queue, topology.Program, topology.H = "fifo", "iswitch", 3
		return at(topology, olaf.Time(12*olaf.Second+345*olaf.Millisecond))
	}),
	"many": sync.OnceValue(func() *still {
		return at(preset("multihop", netsim.Scale{Clusters: 200}),
			olaf.Time(6*olaf.Second))
	}),
	"rack": sync.OnceValue(func() *still {
		return at(preset("rack", netsim.Scale{}),
			olaf.Time(500*olaf.Millisecond))
	}),
	"nothing": func() *still { return &still{history: new(History), Still: tuitest.Still{Holds: pace.Pace{Speed: 1}}} },
}

// dash returns a dashboard of a given size that has watched its source for a second.
type dash struct {
	*tui.Frame
	clock   *tuitest.Clock
	session *session
	source  *still
	pages   []tui.Page
}

func shown(scene string, width, height int, edit func(*Options)) *dash {
	source := *scenes[scene]()
	o := Options{Source: &source}
	if edit != nil {
		edit(&o)
	}
	pages := New(o)
	d := &dash{clock: &tuitest.Clock{Now: time.Unix(1000, 0)}, session: pages.Subject.(*session), source: &source,
		pages: pages.Pages}
	d.Frame = tui.New(pages, tui.Options{Tick: d.clock.Tick, Theme: theme.New(theme.Options{})})
	tuitest.SendMessage(d.Frame, tea.WindowSizeMsg{Width: width, Height: height})
	now := source.snapshot
	if now != nil {
		earlier := *now
		earlier.Now -= min(earlier.Now, olaf.Time(olaf.Second))
		source.snapshot = &earlier
	}
	d.clock.Advance(d.Frame, 0)
	source.snapshot = now
	d.clock.Advance(d.Frame, time.Second)
	return d
}

// TestPages compares the bodies of the pages with the golden files.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		name, scene   string
		width, height int
		keys          []string
	}{
		{"run", "plain", 80, 21, nil}, {"run", "plain", 120, 37, nil}, {"run-failing", "failing", 100, 27, nil},
		{"run-rack", "rack", 120, 37, nil},
		{"run-waiting", "waiting", 80, 21, nil}, {"clusters-waiting", "waiting", 100, 27, []string{"2"}},
		{"ports-waiting", "waiting", 80, 21, []string{"3"}},
		{"clusters", "plain", 80, 21, []string{"2"}}, {"clusters", "plain", 120, 37, []string{"2"}},
		{"clusters-warmup", "warmup", 90, 27, []string{"2"}},
		{"clusters-many", "many", 80, 21, []string{"2", "end"}}, {"clusters-filtered", "many", 120, 37,
			[]string{"2", "/", "S2 19", "enter", "s"}},
		{"ports", "plain", 120, 37, []string{"3"}}, {"ports", "plain", 80, 21, []string{"3"}}, {"ports-rack", "rack",
			100, 27, []string{"3", "end"}},
		{"results", "plain", 120, 37, []string{"4"}}, {"results", "over", 80, 21, []string{"4"}},
	} {
		t.Run(fmt.Sprintf("%s-%dx%d", c.name, c.width, c.height), func(t *testing.T) {
			d := shown(c.scene, c.width, c.height+3, nil)
			tuitest.PressKeys(d.Frame, c.keys...)
			teatest.RequireEqualOutput(t, []byte(tuitest.DrawBody(d.Frame, &d.pages[d.Page()], c.width, c.height)))
		})
	}
}

// TestStatus checks the frame's text for runs in all states.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		scene string
		pace  pace.Pace
		seeds Seeds
		want  string
	}{
		{"nothing", pace.Pace{Speed: 1}, Seeds{0, 1}, "… starting"},
		{"plain", pace.Pace{Speed: 1}, Seeds{0, 1},
			"▶ running at 1.00 s/s | multihop queue olaf, tc off, seed 1  12.345 s of 20.0 s GAUGE 61.7 %, 0:08 left"},
		{"plain", pace.Pace{Speed: 1}, Seeds{2, 8},
			"▶ running at 1.00 s/s | multihop queue olaf, tc off, seed 1  12.345 s of 20.0 s GAUGE 61.7 %, 0:08 left, " +
				"2/8 seeds done"},
		{"plain", pace.Pace{Speed: pace.Full}, Seeds{0, 1},
			"▶ running at full speed, 1.00 s/s | multihop queue olaf, tc off, seed 1  12.345 s of 20.0 s GAUGE 61.7 %, " +
				"0:08 left"},
		{"plain", pace.Pace{Speed: 2, Paused: true}, Seeds{0, 1},
			"‖ PAUSED, speed 2.00 s/s | multihop queue olaf, tc off, seed 1  12.345 s of 20.0 s GAUGE 61.7 %"},
		{"warmup", pace.Pace{Speed: 1}, Seeds{0, 1},
			"▶ warm-up at 1.00 s/s | multihop queue olaf, tc off, seed 1  0.800 s of 20.0 s GAUGE 4.0 %, 0:24 left"},
		{"waiting", pace.Pace{Speed: 1}, Seeds{0, 1},
			"▶ running at 1.00 s/s | multihop switchml sync, ports fifo, seed 1  12.345 s of 20.0 s GAUGE 61.7 %, 0:08 left"},
		{"adding", pace.Pace{Speed: 1}, Seeds{0, 1},
			"▶ running at 1.00 s/s | multihop iswitch, sums of 3, queue fifo, tc off, seed 1  12.345 s of 20.0 s GAUGE " +
				"61.7 %, 0:08 left"},
		{"over", pace.Pace{Speed: 1}, Seeds{1, 1},
			"■ DONE | multihop queue olaf, tc off, seed 1  20.000 s of 20.0 s GAUGE 100.0 %"},
	} {
		d := shown(c.scene, 140, 20, func(o *Options) {
			o.Source.(*still).Holds = c.pace
			o.Seeds = func() Seeds { return c.seeds }
		})
		lines := strings.Split(d.Text(), "\n")
		head := strings.Join(strings.FieldsFunc(lines[1], func(r rune) bool { return r == '█' || r == '░' }), "GAUGE")
		_, state, _ := strings.Cut(lines[0], "4 Results")
		got := strings.TrimSpace(state)
		if words := strings.Fields(strings.ReplaceAll(head, "GAUGE", " GAUGE ")); len(words) > 0 {
			got += " | " + strings.Join(words, " ")
		}
		if got != strings.Join(strings.Fields(c.want), " ") {
			t.Errorf("%s: %q, want %q", c.scene, got, c.want)
		}
	}
}

// TestEverySize checks at many sizes that a frame has exactly as many rows and columns, and that there is no panic.
func TestEverySize(t *testing.T) {
	for _, scene := range []string{"plain", "rack", "nothing"} {
		for _, pressed := range [][]string{nil, {"?"}, {"2", "/"}, {"3", "end"}, {"4"}} {
			for width := 0; width <= 130; width += 13 {
				for height := 0; height <= 30; height += 3 {
					d := shown(scene, width, height, nil)
					tuitest.PressKeys(d.Frame, pressed...)
					lines := strings.Split(strings.TrimSuffix(d.Text(), "\n"), "\n")
					if height > 0 && len(lines) != height {
						t.Fatalf("%s %d×%d: %d lines", scene, width, height, len(lines))
					}
					for _, l := range lines {
						if n := screen.TextWidth(l); n > width {
							t.Fatalf("%s %d×%d: a line of %d", scene, width, height, n)
						}
					}
				}
			}
		}
	}
}

// TestPaceKeys checks the keys that change the pace.
func TestPaceKeys(t *testing.T) {
	for _, c := range []struct {
		keys string
		from pace.Pace
		want pace.Pace
	}{
		{" ", pace.Pace{Speed: 1}, pace.Pace{Speed: 1, Paused: true}}, {" ", pace.Pace{Speed: 1, Paused: true},
			pace.Pace{Speed: 1}},
		{"+", pace.Pace{Speed: 1}, pace.Pace{Speed: 2}}, {"+++", pace.Pace{Speed: 1}, pace.Pace{Speed: 10}},
		{"-", pace.Pace{Speed: 1}, pace.Pace{Speed: 0.5}},
		{"M", pace.Pace{Speed: 1}, pace.Pace{Speed: pace.Full}}, {"R", pace.Pace{Speed: 5}, pace.Pace{Speed: 1}},
		{".", pace.Pace{Speed: 5}, pace.Pace{Speed: 5, Paused: true}},
		{"-", pace.Pace{Speed: pace.Full}, pace.Pace{Speed: 0.5}}, // slower than the measured speed of one
	} {
		d := shown("plain", 80, 24, func(o *Options) { o.Source.(*still).Holds = c.from })
		tuitest.PressKeys(d.Frame, c.keys)
		got := d.source.Holds
		if math.Abs(float64(got.Speed/c.want.Speed)-1) > 1e-9 && got.Speed != c.want.Speed || got.Paused != c.want.Paused {
			t.Errorf("%q from %v gives %v, want %v", c.keys, c.from, got, c.want)
		}
	}
}

// TestEveryBinding checks that every action has a visible effect or shows why it has none.
func TestEveryBinding(t *testing.T) {
	before := map[keys.Action]string{
		keys.Tabs[0]: "2", keys.Up: "end", keys.PageUp: "end", keys.Top: "end", keys.Back: "/", keys.NextMark: "m",
		keys.Open: "down", keys.RealTime: "+",
	}
	for _, b := range keys.Default().Bindings() {
		if n, err := strconv.Atoi(b.Keys[0]); err == nil && n > 4 {
			continue // this page does not exist
		}
		d := shown("rack", 100, 30, nil)
		if tuitest.PressKeys(d.Frame, "2"); before[b.Action] == "/" {
			tuitest.PressKeys(d.Frame, "/", "x", "enter")
		} else if before[b.Action] != "" {
			tuitest.PressKeys(d.Frame, before[b.Action])
		}
		if b.Action == keys.Tabs[1] {
			tuitest.PressKeys(d.Frame, "1")
		}
		seen := d.View() + fmt.Sprint(d.source)
		if tuitest.PressKeys(d.Frame, b.Keys[0]); d.View()+fmt.Sprint(d.source) == seen {
			t.Errorf("%s (%q) does nothing and says nothing", b.Action, b.Keys[0])
		}
	}
}

// TestSeeks checks that seeks go only forward.
func TestSeeks(t *testing.T) {
	d := shown("plain", 100, 30, nil)
	tuitest.PressKeys(d.Frame, "right")
	if want := d.source.snapshot.Now + d.source.snapshot.End/50; d.source.Goal != want {
		t.Errorf("a step forward leads to %v, want %v", d.source.Goal, want)
	}
	for _, k := range []string{"left", "0", ","} {
		d := shown("plain", 100, 30, nil)
		if tuitest.PressKeys(d.Frame, k); d.source.Goal != 0 || !strings.Contains(d.Text(), "forward only") {
			t.Errorf("%q: goal %v, and it is not said why not", k, d.source.Goal)
		}
	}
	if tuitest.PressKeys(d.Frame, "."); d.source.Steps != 1 {
		t.Errorf("%d steps", d.source.Steps)
	}
}

// TestReport checks that the report on all seeds is shown when it is available, and how the user leaves.
func TestReport(t *testing.T) {
	var report *tui.Report
	d := shown("over", 100, 30, func(o *Options) {
		o.Seeds = func() Seeds { return Seeds{3, 3} }
		o.Report = func() *tui.Report { return report }
	})
	tuitest.PressKeys(d.Frame, "4")
	if text := d.Text(); !strings.Contains(text, "so far") || !strings.Contains(text, "quit prints the report") {
		t.Errorf("before the report:\n%s", text)
	}
	report = tui.NewReport(func(int) []string { return []string{"twelve chars and the report"} })
	d.clock.Advance(d.Frame, time.Second)
	if tuitest.PressKeys(d.Frame, "right"); !strings.Contains(d.Text(), "│ and the report") ||
		!strings.Contains(d.Text(), "Results of 3 seed(s)") {
		t.Errorf("the report:\n%s", d.Text())
	}
	if tuitest.PressKeys(d.Frame, "q"); !d.Quit() {
		t.Error("asked although all is simulated")
	}
}

// TestSortings checks that sorting by every column is in descending order and loses no cluster.
func TestSortings(t *testing.T) {
	d := shown("plain", 80, 24, nil)
	s := d.session
	missing := *s.snapshot
	missing.Clusters = append([]netsim.ClusterSnapshot(nil), missing.Clusters...)
	missing.Clusters[3].AoM[olaf.PerCluster] = -1
	d.source.snapshot = &missing
	d.clock.Advance(d.Frame, time.Second)
	tuitest.PressKeys(d.Frame, "2")
	for i := range sortings {
		places := s.places()
		if len(places) != len(s.snapshot.Clusters) || s.order != i {
			t.Fatalf("sorting %d is %d and has %d clusters", i, s.order, len(places))
		}
		if key := sortings[s.order].key; key != nil {
			for j := 1; j < len(places); j++ {
				if key(&s.snapshot.Clusters[places[j-1]], s.reading) < key(&s.snapshot.Clusters[places[j]], s.reading) {
					t.Errorf("sorting %d: row %d is above a larger one", i, j-1)
				}
			}
		}
		tuitest.PressKeys(d.Frame, "s")
	}
	if s.order != 0 {
		t.Error("sorting does not come round")
	}
}

// TestWatchedCluster checks that a cluster can be selected with enter and with the key for the next one, in any order.
func TestWatchedCluster(t *testing.T) {
	d := shown("plain", 100, 30, nil)
	tuitest.PressKeys(d.Frame, "2", "s", "s", "down", "enter")
	row := d.session.places()[1]
	if d.session.watched != row || !strings.Contains(d.Text(),
		fmt.Sprintf("%d ◎", d.session.snapshot.Clusters[row].Cluster)) {
		t.Errorf("watches %d, want %d", d.session.watched, row)
	}
	for range len(d.session.snapshot.Clusters) {
		tuitest.PressKeys(d.Frame, "c")
	}
	if d.session.watched != row {
		t.Error("the next clusters do not come round")
	}
}

// BenchmarkFrame draws two hundred clusters.
func BenchmarkFrame(b *testing.B) {
	d := shown("many", 120, 40, nil)
	tuitest.PressKeys(d.Frame, "2", "s")
	b.ReportAllocs()
	for b.Loop() {
		d.clock.Advance(d.Frame, tui.FrameInterval)
		_ = d.View()
	}
}

// TestLastFrameShowsTheDocumentsNumbers checks that at the end of a run the dashboard's Results page shows each group's
// numbers as the run's document does, under transmission control, which withholds updates.
func TestLastFrameShowsTheDocumentsNumbers(t *testing.T) {
	topology := preset("multihop", netsim.Scale{})
	topology.Control.Enabled = true
	player := NewPlayer(end(topology), pace.Pace{Speed: pace.Full}, &tuitest.Jumping{})
	g := &glance{Player: player, at: end(topology)}
	result, err := netsim.Run(t.Context(), topology, netsim.Options{Watcher: g})
	if err != nil {
		t.Fatal(err)
	}
	source := &still{snapshot: g.picture, history: g.History(), Still: tuitest.Still{Holds: pace.Pace{Speed: 1}}}
	var clock tuitest.Clock
	f := tui.New(New(Options{Source: source}), tui.Options{Tick: clock.Tick, Theme: theme.New(theme.Options{})})
	tuitest.SendMessage(f, tea.WindowSizeMsg{Width: 160, Height: 40})
	clock.Advance(f, time.Second)
	tuitest.PressKeys(f, "4")
	text := f.Text()
	for i := range result.Groups[:len(result.Groups)-1] { // the last is all of them
		r := &result.Groups[i]
		want := []string{r.Group, num.FormatCount(int64(r.Clusters)), num.FormatCount(int64(r.Workers))}
		for _, cell := range (&group{GroupResult: r}).cells(i).Cells[3:] {
			want = append(want, cell.Text)
		}
		if row := strings.Join(want, " "); !strings.Contains(strings.Join(strings.Fields(text), " "), row) {
			t.Errorf("the last frame must show %q of the document:\n%s", row, text)
		}
	}
}
