package network

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/tui/theme"
)

// still is a run that stands at one picture.
type still struct {
	snapshot *netsim.Snapshot
	pace     Pace
}

func (s *still) Snapshot() *netsim.Snapshot { return s.snapshot }
func (s *still) Pace() Pace                 { return s.pace }
func (s *still) SetPace(p Pace)             { s.pace = p }

// glance ends a run at an instant with a picture of it.
type glance struct {
	at      olaf.Time
	picture *netsim.Snapshot
}

func (g *glance) Before(_, next olaf.Time, look func(at olaf.Time) *netsim.Snapshot) (olaf.Time, bool) {
	if next < g.at {
		return g.at, true
	}
	g.picture = look(g.at)
	return g.at, false
}

// at is a source that shows a real run at an instant.
func at(t testing.TB, topology *netsim.Topology, instant olaf.Time) *still {
	t.Helper()
	g := &glance{at: instant}
	if _, err := netsim.Run(context.Background(), topology, netsim.Options{Watcher: g}); err != nil {
		t.Fatal(err)
	}
	return &still{g.picture, Pace{Speed: 1}}
}

var start = time.Unix(1000, 0)

// shown is a model of a size that has watched its source for a second.
func shown(s *still, width, height int) Model {
	m := New(Options{Source: s, Theme: theme.New(theme.Options{})})
	m = send(m, tea.WindowSizeMsg{Width: width, Height: height})
	if s.snapshot == nil {
		return send(m, tickMsg(start))
	}
	earlier := *s.snapshot
	earlier.Now -= min(earlier.Now, olaf.Time(olaf.Second))
	now := s.snapshot
	s.snapshot = &earlier
	m = send(m, tickMsg(start))
	s.snapshot = now
	return send(m, tickMsg(start.Add(time.Second)))
}

func send(m Model, msg tea.Msg) Model {
	next, _ := m.Update(msg)
	return next.(Model)
}

var special = map[string]tea.KeyType{
	"tab": tea.KeyTab, "enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown,
	"end": tea.KeyEnd, "home": tea.KeyHome, "ctrl+c": tea.KeyCtrlC, "space": tea.KeySpace,
}

func keyMsg(name string) tea.KeyMsg {
	if t, ok := special[name]; ok {
		if t == tea.KeySpace {
			return tea.KeyMsg{Type: t, Runes: []rune{' '}}
		}
		return tea.KeyMsg{Type: t}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

func press(m Model, names ...string) Model {
	for _, name := range names {
		m = send(m, keyMsg(name))
	}
	return m
}

// scenes are the runs that frames are of.
func scenes(t testing.TB) map[string]*still {
	out := map[string]*still{}
	plain := multihop(t, netsim.Scale{})
	out["plain"] = at(t, plain, olaf.Time(12*olaf.Second+345*olaf.Millisecond))
	out["warmup"] = at(t, plain, olaf.Time(800*olaf.Millisecond))
	out["over"] = at(t, plain, end(plain))
	failing := multihop(t, netsim.Scale{})
	failing.Control.Enabled, failing.Queue = true, "fifo"
	failing.Schedule = []netsim.Change{{At: 6 * olaf.Second, From: "sw1", To: "sw3", Link: netsim.LinkDown}}
	out["failing"] = at(t, failing, olaf.Time(10*olaf.Second))
	out["thousand"] = at(t, multihop(t, netsim.Scale{Clusters: 1000}), olaf.Time(6*olaf.Second))
	rack, err := netsim.Preset("rack", netsim.Scale{})
	if err != nil {
		t.Fatal(err)
	}
	out["rack"] = at(t, rack, olaf.Time(500*olaf.Millisecond))
	out["nothing"] = &still{}
	return out
}

// TestFrames holds whole frames against the golden files.
func TestFrames(t *testing.T) {
	all := scenes(t)
	for _, c := range []struct {
		name, scene   string
		width, height int
		keys          []string
	}{
		{"run", "plain", 80, 24, nil}, {"run", "plain", 120, 40, nil}, {"small", "plain", 40, 12, nil},
		{"warmup", "warmup", 80, 24, nil}, {"done", "over", 80, 24, nil}, {"starting", "nothing", 80, 24, nil},
		{"failing", "failing", 80, 24, nil}, {"paused", "plain", 80, 24, []string{"space"}}, {"full", "plain", 80, 24, []string{"M"}},
		{"rack", "rack", 80, 24, []string{"tab", "end"}}, {"rack", "rack", 120, 40, nil},
		{"thousand", "thousand", 80, 24, []string{"end"}}, {"filtered", "thousand", 120, 40, []string{"/", "S2 99", "enter", "s"}},
		{"help", "plain", 80, 24, []string{"?"}}, {"filtering", "plain", 80, 24, []string{"/", "nope"}},
	} {
		t.Run(fmt.Sprintf("%s-%dx%d", c.name, c.width, c.height), func(t *testing.T) {
			s := *all[c.scene]
			m := press(shown(&s, c.width, c.height), c.keys...)
			teatest.RequireEqualOutput(t, []byte(m.Text()))
		})
	}
}

// TestEverySize draws at all sorts of sizes: exactly that many rows and columns, and no panic.
func TestEverySize(t *testing.T) {
	all := scenes(t)
	for _, scene := range []string{"plain", "rack", "nothing"} {
		for _, keys := range [][]string{nil, {"?"}, {"/"}, {"tab", "end"}} {
			for width := 0; width <= 130; width += 13 {
				for height := range 31 {
					s := *all[scene]
					m := press(shown(&s, width, height), keys...)
					lines := strings.Split(strings.TrimSuffix(m.Text(), "\n"), "\n")
					if height > 0 && len(lines) != height {
						t.Fatalf("%s %d×%d: %d lines", scene, width, height, len(lines))
					}
					for _, l := range lines {
						if n := utf8.RuneCountInString(l); n > width {
							t.Fatalf("%s %d×%d: a line of %d", scene, width, height, n)
						}
					}
				}
			}
		}
	}
}

// TestColourIsNeverTheOnlySignal has the same characters with and without colours, and no colour sequence without.
func TestColourIsNeverTheOnlySignal(t *testing.T) {
	s := scenes(t)["failing"]
	m := shown(s, 120, 40)
	plain := m.Text()
	for _, n := range []string{"\x1b[3", "\x1b[9", ";3", ";9"} {
		if strings.Contains(m.View(), n) {
			t.Errorf("without colours the frame holds %q", n)
		}
	}
	m.options.Theme = theme.New(theme.Options{Colour: true})
	if m.Text() != plain || !strings.Contains(m.View(), "\x1b[9") {
		t.Error("colours change the characters, or are missing")
	}
}

// TestPaceKeys presses what changes the pace.
func TestPaceKeys(t *testing.T) {
	for _, c := range []struct {
		keys string
		from Pace
		want Pace
	}{
		{" ", Pace{Speed: 1}, Pace{Speed: 1, Paused: true}}, {" ", Pace{1, true}, Pace{Speed: 1}},
		{"+", Pace{Speed: 1}, Pace{Speed: 2}}, {"+++", Pace{Speed: 1}, Pace{Speed: 10}}, {"-", Pace{Speed: 1}, Pace{Speed: 0.5}},
		{"M", Pace{Speed: 1}, Pace{Speed: Full}}, {"R", Pace{Speed: 5}, Pace{Speed: 1}},
		{"-", Pace{Speed: Full}, Pace{Speed: 0.5}}, // slower than the simulated second a second that was seen
	} {
		s := *scenes(t)["plain"]
		s.pace = c.from
		press(shown(&s, 80, 24), c.keys)
		if math.Abs(float64(s.pace.Speed/c.want.Speed)-1) > 1e-9 && s.pace.Speed != c.want.Speed || s.pace.Paused != c.want.Paused {
			t.Errorf("%q from %v gives %v, want %v", c.keys, c.from, s.pace, c.want)
		}
	}
}

// TestQuit leaves at once, and not while a filter is typed.
func TestQuit(t *testing.T) {
	s := scenes(t)["plain"]
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"?", "q"}, {"+q"}} {
		m := press(shown(s, 80, 24), keys[:len(keys)-1]...)
		_, cmd := m.Update(keyMsg(keys[len(keys)-1]))
		if cmd == nil {
			t.Fatalf("%q does not quit", keys)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%q does not quit", keys)
		}
	}
	m := press(shown(s, 80, 24), "/")
	if next, cmd := m.Update(keyMsg("q")); cmd != nil || next.(Model).filter.Value() != "q" {
		t.Error("q in the filter quits")
	}
}

// TestSortings sorts by every column, the largest first, and loses no cluster.
func TestSortings(t *testing.T) {
	m := shown(scenes(t)["plain"], 80, 24)
	m.snapshot.Clusters[3].AoM = -1
	for i := range sortings {
		shown := m.shownClusters()
		if len(shown) != len(m.snapshot.Clusters) {
			t.Fatalf("sorting %d loses clusters", i)
		}
		if key := sortings[m.sort].key; key != nil {
			for j := 1; j < len(shown); j++ {
				if key(&m.snapshot.Clusters[shown[j-1]]) < key(&m.snapshot.Clusters[shown[j]]) {
					t.Errorf("sorting %d: row %d is above a larger one", i, j-1)
				}
			}
		}
		m = press(m, "s")
	}
	if m.sort != 0 {
		t.Error("sorting does not come round")
	}
}

// BenchmarkFrame draws a thousand clusters.
func BenchmarkFrame(b *testing.B) {
	m := press(shown(scenes(b)["thousand"], 120, 40), "s")
	b.ReportAllocs()
	for b.Loop() {
		_ = m.View()
	}
}
