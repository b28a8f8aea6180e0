package tui

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"
	"github.com/mattn/go-runewidth"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/theme"
)

// still is a source that stands at one instant and notes what it is asked.
type still struct {
	mu       sync.Mutex
	snapshot *live.Snapshot
	life     map[int64]live.Life
	in       *live.Inspection
	asked    []live.Command
	busy     bool
}

func (s *still) Snapshot() *live.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot
}

func (s *still) Do(c live.Command) bool {
	s.asked = append(s.asked, c)
	return !s.busy
}

func (s *still) Life(_ int, update int64) (live.Life, bool) {
	l, ok := s.life[update]
	return l, ok
}

func (s *still) Inspect(context.Context) (*live.Inspection, error) {
	if s.in == nil {
		return nil, errors.New("the device does not answer")
	}
	return s.in, nil
}

// at opens a real session of a specification and stands it at an instant.
func at(t testing.TB, now olaf.Time, edit func(*bench.Spec)) *still {
	t.Helper()
	spec := bench.DefaultSpec()
	spec.Experiment = "table1"
	spec.OutRates = []olaf.Rate{20 * olaf.Gbps}
	if edit != nil {
		edit(&spec)
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		t.Fatal(err)
	}
	session, err := live.Open(context.Background(), plan, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Seek(context.Background(), now); err != nil {
		t.Fatal(err)
	}
	s := &still{life: map[int64]live.Life{}}
	if s.snapshot, err = session.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.snapshot.State, s.snapshot.Speed = live.Running, live.Speed(10*olaf.Microsecond)
	for n := range s.snapshot.Queues[0].Counters.In {
		s.life[n], _ = session.Life(0, n)
	}
	if s.in, err = session.Inspect(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.in.Target, s.in.ElectionID = "unix:/run/p4rt.sock", "1:1"
	return s
}

const instant = olaf.Time(14 * olaf.Microsecond)

// shown is a model of a size that has seen its source.
func shown(s *still, width, height int, edit func(*Options)) Model {
	o := Options{Source: s}
	if edit != nil {
		edit(&o)
	}
	m := send(New(o), tea.WindowSizeMsg{Width: width, Height: height})
	return send(m, tickMsg{})
}

// send carries a message out, and what it asks for but the next tick.
func send(m Model, msg tea.Msg) Model {
	next, cmd := m.Update(msg)
	m = next.(Model)
	if cmd == nil {
		return m
	}
	if _, ticking := msg.(tickMsg); ticking {
		return m
	}
	if answer := cmd(); answer != nil {
		if _, quit := answer.(tea.QuitMsg); !quit {
			next, _ = m.Update(answer)
			m = next.(Model)
		}
	}
	return m
}

func press(m Model, names ...string) Model {
	for _, name := range names {
		m = send(m, keyMsg(name))
	}
	return m
}

var special = map[string]tea.KeyType{
	"tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp, "down": tea.KeyDown,
	"left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
	"ctrl+c": tea.KeyCtrlC, "ctrl+b": tea.KeyCtrlB, "ctrl+f": tea.KeyCtrlF, "backspace": tea.KeyBackspace, "space": tea.KeySpace, " ": tea.KeySpace,
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

// TestFrames holds whole frames of the program, as teatest's terminal gets them, against the golden files.
func TestFrames(t *testing.T) {
	source := at(t, instant, nil)
	for _, c := range []struct {
		name          string
		width, height int
		keys          []string
	}{
		{"run", 80, 24, nil}, {"run", 120, 40, nil}, {"run", 200, 60, nil}, {"run", 40, 12, nil},
		{"clusters", 80, 24, []string{"2"}}, {"clusters", 120, 40, []string{"2"}},
		{"tables", 120, 40, []string{"3"}}, {"registers", 120, 40, []string{"4"}}, {"testbed", 120, 40, []string{"5"}},
		{"results", 80, 24, []string{"6"}},
		{"help", 80, 24, []string{"?"}}, {"help", 120, 40, []string{"?"}},
		{"form", 80, 24, []string{"r"}}, {"quit", 80, 24, []string{"q"}},
		{"maximised", 80, 24, []string{"p", "z"}},
	} {
		t.Run(fmt.Sprintf("%s-%dx%d", c.name, c.width, c.height), func(t *testing.T) {
			program := teatest.NewTestModel(t, shown(source, c.width, c.height, nil), teatest.WithInitialTermSize(c.width, c.height))
			for _, k := range c.keys {
				program.Send(keyMsg(k))
			}
			if c.name == "tables" || c.name == "registers" || c.name == "testbed" {
				program.Send(inspectMsg{source.in, nil})
			}
			if err := program.Quit(); err != nil {
				t.Fatal(err)
			}
			final := program.FinalModel(t, teatest.WithFinalTimeout(5*time.Second)).(Model)
			final.changed = nil
			teatest.RequireEqualOutput(t, []byte(final.Text()))
		})
	}
}

// TestColourIsNeverTheOnlySignal draws with and without colours: the characters must be the same, and without there must
// be no colour sequence at all.
func TestColourIsNeverTheOnlySignal(t *testing.T) {
	source := at(t, instant, nil)
	var texts []string
	for _, o := range []theme.Options{{}, {Colour: true}, {Colour: true, Light: true}} {
		m := shown(source, 120, 40, func(p *Options) { p.Theme = theme.New(o) })
		texts = append(texts, m.Text())
		for _, n := range []string{"\x1b[3", "\x1b[9", "\x1b[4", ";3", ";9"} {
			if found := strings.Contains(m.View(), n); !o.Colour && found {
				t.Errorf("without colours the frame holds %q", n)
			}
		}
	}
	if texts[0] != texts[1] || texts[0] != texts[2] {
		t.Error("themes differ in their characters")
	}
}

// TestEveryBinding presses every key of every binding and checks what it did.
func TestEveryBinding(t *testing.T) {
	source := at(t, instant, nil)
	var saved []string
	plain := func() Model {
		source.asked = nil
		saved = nil
		return shown(source, 120, 40, func(o *Options) {
			o.Save = func(name string, data []byte) (string, error) {
				saved = append(saved, name+": "+string(data))
				return name, nil
			}
			o.Workbook = func(context.Context) (string, error) { return "book.xlsx", nil }
		})
	}
	asked := func(want live.Command) func(Model) bool {
		return func(Model) bool { return len(source.asked) == 1 && source.asked[0] == want }
	}
	page := func(want tab) func(Model) bool { return func(m Model) bool { return m.tab == want } }
	s := source.snapshot
	step := s.End / 50
	checks := map[keys.Action]struct {
		before []string
		holds  func(Model) bool
	}{
		keys.Help:         {nil, func(m Model) bool { return m.over == showHelp }},
		keys.Quit:         {nil, func(m Model) bool { return m.over == askQuit }},
		keys.NextTab:      {nil, page(tabClusters)},
		keys.PreviousTab:  {nil, page(tabResults)},
		keys.Tab1:         {[]string{"3"}, page(tabRun)},
		keys.Tab2:         {nil, page(tabClusters)},
		keys.Tab3:         {nil, page(tabTables)},
		keys.Tab4:         {nil, page(tabRegisters)},
		keys.Tab5:         {nil, page(tabTestbed)},
		keys.Tab6:         {nil, page(tabResults)},
		keys.NextPanel:    {nil, func(m Model) bool { return m.focused().panel == panelAoM }},
		keys.LastPanel:    {nil, func(m Model) bool { return m.focused().queue == 1 }},
		keys.Maximise:     {nil, func(m Model) bool { return m.zoom }},
		keys.Freeze:       {nil, func(m Model) bool { return m.frozen }},
		keys.Filter:       {nil, func(m Model) bool { return m.over == typeFilter }},
		keys.Up:           {[]string{"2", "end"}, func(m Model) bool { return m.lists[tabClusters].Selected == 7 }},
		keys.Down:         {[]string{"2"}, func(m Model) bool { return m.lists[tabClusters].Selected == 1 }},
		keys.PageUp:       {[]string{"3", "end"}, func(m Model) bool { return m.lists[tabTables].Selected == 45-20 }},
		keys.PageDown:     {[]string{"3"}, func(m Model) bool { return m.lists[tabTables].Selected == 20 }},
		keys.Top:          {[]string{"2", "down"}, func(m Model) bool { return m.lists[tabClusters].Selected == 0 }},
		keys.Bottom:       {[]string{"2"}, func(m Model) bool { return m.lists[tabClusters].Selected == 8 }},
		keys.Open:         {nil, func(m Model) bool { return m.over == showLife }},
		keys.Back:         {[]string{"2", "/", "c", "3", "enter"}, func(m Model) bool { return m.lists[tabClusters].Filter == "" }},
		keys.SortBy:       {nil, func(m Model) bool { return m.sortBy == 1 }},
		keys.Watch:        {nil, asked(live.Watch{Cluster: 1})},
		keys.Window:       {nil, func(m Model) bool { return m.whole }},
		keys.Pause:        {nil, asked(live.Pause{On: true})},
		keys.Faster:       {nil, asked(live.SetSpeed{Speed: live.Speed(20 * olaf.Microsecond)})},
		keys.Slower:       {nil, asked(live.SetSpeed{Speed: live.Speed(5 * olaf.Microsecond)})},
		keys.FullSpeed:    {nil, asked(live.SetSpeed{})},
		keys.RealTime:     {nil, asked(live.SetSpeed{Speed: live.RealTime})},
		keys.Step:         {nil, asked(live.Step{})},
		keys.StepBack:     {nil, asked(live.Step{Back: true})},
		keys.SeekForward:  {nil, asked(live.Seek{To: s.Now + step})},
		keys.SeekBackward: {nil, asked(live.Seek{To: s.Now - step})},
		keys.Rewind:       {nil, asked(live.Seek{})},
		keys.Mark:         {nil, func(m Model) bool { return len(m.marks) == 1 && m.marks[0] == s.Now }},
		keys.NextMark:     {[]string{"m"}, asked(live.Seek{To: s.Now})},
		keys.Stop:         {[]string{"S"}, asked(live.Stop{})},
		keys.Rerun:        {nil, func(m Model) bool { return m.over == showForm }},
		keys.ExportText:   {nil, func(Model) bool { return len(saved) == 1 && strings.HasPrefix(saved[0], "olafctl-Run.txt:") }},
		keys.ExportSVG:    {nil, func(Model) bool { return len(saved) == 1 && strings.Contains(saved[0], "<svg") }},
		keys.Workbook:     {nil, func(m Model) bool { return strings.Contains(m.status, "book.xlsx") }},
		keys.Mouse:        {nil, func(m Model) bool { return m.mouse }},
	}
	for _, b := range keys.Default().Bindings() {
		check, ok := checks[b.Action]
		if !ok {
			t.Errorf("nobody checks %s", b.Action)
			continue
		}
		for _, k := range b.Keys {
			m := plain()
			for _, before := range check.before {
				m = press(m, before)
				m = send(m, inspectMsg{source.in, nil})
			}
			source.asked = nil
			if b.Action == keys.PageDown || b.Action == keys.Rerun {
				m = send(m, inspectMsg{source.in, nil})
			}
			if m = press(m, k); !check.holds(m) {
				t.Errorf("%s by %q: tab %v, overlay %v, asked %v, status %q, lists %+v", b.Action, k, m.tab, m.over, source.asked, m.status, m.lists[m.tab])
			}
		}
	}
}

func TestRerunByForm(t *testing.T) {
	source := at(t, instant, nil)
	m := press(shown(source, 120, 40, nil), "r", "down", "down", "backspace", "1", "6", "down", "down", "down", "backspace", "7", "enter")
	if m.over != none || len(source.asked) != 1 {
		t.Fatalf("overlay %v, asked %v, error %q", m.over, source.asked, m.form.Err)
	}
	rerun := source.asked[0].(live.Rerun)
	if rerun.Spec.Slots != 16 || rerun.Spec.Seed != 7 || rerun.Spec.Queue != "olaf" {
		t.Errorf("slots %d, seed %d, queue %q", rerun.Spec.Slots, rerun.Spec.Seed, rerun.Spec.Queue)
	}
	m = press(shown(source, 120, 40, nil), "r", "backspace", "enter")
	if m.over != showForm || m.form.Err == "" {
		t.Errorf("a rate without its unit was taken: overlay %v, %q", m.over, m.form.Err)
	}
	if m = press(m, "esc"); m.over != none {
		t.Error("escape does not close the form")
	}
}

func TestQuitAsksWhileARunIsOn(t *testing.T) {
	source := at(t, instant, nil)
	m := press(shown(source, 80, 24, nil), "q")
	if m.Quit() {
		t.Fatal("quit without asking")
	}
	if m = press(m, "n"); m.Quit() || m.over != none {
		t.Fatal("no does not stay")
	}
	if m = press(m, "q", "y"); !m.Quit() {
		t.Error("yes does not quit")
	}
	done := *source.snapshot
	done.State = live.Done
	if m = press(shown(&still{snapshot: &done}, 80, 24, nil), "q"); !m.Quit() {
		t.Error("asked although the run is over")
	}
}

func TestFreezeHoldsTheViewOnly(t *testing.T) {
	source := at(t, instant, nil)
	m := press(shown(source, 120, 40, nil), "f")
	frozen := m.Text()
	later := *source.snapshot
	later.Now += olaf.Time(olaf.Microsecond)
	source.snapshot = &later
	m = send(m, tickMsg{})
	if m.Text() != frozen {
		t.Error("a frozen view changed")
	}
	if m = send(press(m, "f"), tickMsg{}); m.snapshot != &later {
		t.Error("the view does not go on")
	}
}

func TestFilterAndLife(t *testing.T) {
	source := at(t, instant, nil)
	m := shown(source, 120, 40, nil)
	m.focusLog()
	m = press(m, "/", "m", "e", "r", "g", "e", "enter", "enter")
	if m.over != showLife {
		t.Fatalf("overlay %v, status %q", m.over, m.status)
	}
	if text := m.Text(); !strings.Contains(text, "together with") {
		t.Errorf("no company in the life of a merged update:\n%s", text)
	}
}

func TestMouse(t *testing.T) {
	m := shown(at(t, instant, nil), 120, 40, nil)
	m.View()
	click := func(m Model, x, y int) Model {
		return send(m, tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	}
	if m = click(m, 14, 0); m.tab != tabClusters {
		t.Fatalf("a click on Clusters leads to %v", m.tab)
	}
	m.View()
	if m = click(m, 10, 6); m.lists[tabClusters].Selected != 2 {
		t.Errorf("a click on the third row selects %d", m.lists[tabClusters].Selected)
	}
	m.View()
	if m = send(m, tea.MouseMsg{Button: tea.MouseButtonWheelDown, Action: tea.MouseActionPress}); m.lists[tabClusters].Selected != 5 {
		t.Errorf("the wheel leads to %d", m.lists[tabClusters].Selected)
	}
}

// TestTour plays the demo's scenes and checks that a key ends it.
func TestTour(t *testing.T) {
	source := at(t, instant, nil)
	m := shown(source, 120, 40, func(o *Options) { o.Story = Demo() })
	if m.caption() == "" || len(source.asked) == 0 {
		t.Fatal("the tour does not begin")
	}
	ticks := 0
	for _, s := range Demo() {
		ticks += s.Ticks
	}
	if ticks != 60*second {
		t.Errorf("the tour takes %d ticks, not a minute", ticks)
	}
	seen := map[string]bool{}
	for range ticks {
		seen[m.caption()] = true
		m = send(m, tickMsg{})
	}
	if len(seen) != len(Demo()) || m.caption() != "" {
		t.Errorf("%d captions of %d; at the end %q", len(seen), len(Demo()), m.caption())
	}
	m = press(shown(source, 120, 40, func(o *Options) { o.Story = Demo() }), "p")
	if m.caption() != "" {
		t.Error("a key does not end the tour")
	}
}

func TestPlainTellsTheSame(t *testing.T) {
	var out strings.Builder
	p := NewPlain(&out)
	s := at(t, instant, nil).snapshot
	for range 2 {
		if err := p.Show(s); err != nil {
			t.Fatal(err)
		}
	}
	text := out.String()
	for _, want := range []string{"table1 on twin:", "27 workers in 9 clusters", "olaf out at 20Gbps", "fifo out at 20Gbps", "merged", "age of model now"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Count(text, "27 workers") != 1 || strings.Contains(text, "\x1b") {
		t.Errorf("the heading repeats, or there are control sequences:\n%s", text)
	}
}

// wrong makes a snapshot that no session would: numbers that are none, and lists that do not fit.
func wrong(s *live.Snapshot, b byte) *live.Snapshot {
	c := *s
	c.Queues = append([]live.QueueSnapshot(nil), s.Queues...)
	for i := range c.Queues {
		q := &c.Queues[i]
		switch b % 8 {
		case 0:
			q.MeanAoM, q.AoMNow, q.InRate, q.OutputRate = results.Float(math.NaN()), results.Float(math.Inf(1)), math.Inf(-1), math.NaN()
		case 1:
			q.Items, q.Log, q.Series, q.Teeth, q.Merges = nil, nil, nil, nil, nil
		case 2:
			q.Slots, q.Occupancy = 65536, 70000
		case 3:
			c.Now, c.End = -5, 0
		case 4:
			c.Sampled = true
		case 5:
			q.Series = []live.SeriesPoint{{At: c.Now, AoM: math.Inf(1)}, {At: c.Now, AoM: math.NaN()}, {At: math.MaxInt64, AoM: -1e308}}
		case 6:
			q.Clusters, c.Err = nil, errors.New("a very long error "+strings.Repeat("of many words ", 50))
		case 7:
			q.Counters = results.Counters{Sent: -1, Delivered: math.MaxInt64}
			c.State = live.Failed
		}
	}
	if b%16 == 9 {
		c.Queues = c.Queues[:1]
	}
	return &c
}

// FuzzModel feeds sizes, keys, clicks and odd snapshots: nothing may panic, and every frame has the terminal's size.
func FuzzModel(f *testing.F) {
	source := at(f, instant, nil)
	var all []string
	for _, b := range keys.Default().Bindings() {
		all = append(all, b.Keys...)
	}
	all = append(all, "x", "enter", "esc", "é", "漢", "backspace")
	f.Add([]byte{0, 80, 24, 1, 3, 2, 1, 1, 9})
	f.Add([]byte{0, 200, 60, 3, 5, 0, 1, 30, 4, 20, 20, 1, 41})
	f.Add([]byte{0, 10, 1, 1, 0, 0, 255, 255, 3, 6})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := shown(&still{snapshot: source.snapshot, life: source.life, in: source.in}, 100, 30, nil)
		for len(data) >= 3 {
			op, a, b := data[0], data[1], data[2]
			data = data[3:]
			switch op % 5 {
			case 0:
				m = send(m, tea.WindowSizeMsg{Width: int(a), Height: int(b)})
			case 1:
				m = press(m, all[int(a)%len(all)], all[int(b)%len(all)])
			case 2:
				m = send(m, tickMsg{})
			case 3:
				m.options.Source = &still{snapshot: wrong(source.snapshot, a), life: source.life, in: source.in}
				m = send(m, tickMsg{})
			case 4:
				m = send(m, tea.MouseMsg{X: int(a), Y: int(b), Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
			}
			sized(t, m)
		}
	})
}

func sized(t *testing.T, m Model) {
	t.Helper()
	m.View()
	lines := strings.Split(strings.TrimSuffix(m.Text(), "\n"), "\n")
	if m.height > 0 && m.width > 0 && len(lines) != m.height {
		t.Fatalf("%d lines on a terminal of %d", len(lines), m.height)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > m.width && runewidth.StringWidth(l) > m.width {
			t.Fatalf("%d columns on a terminal of %d: %q", n, m.width, l)
		}
	}
}

// BenchmarkFrame draws the full Run page at 200 × 60 with 100 clusters.
func BenchmarkFrame(b *testing.B) {
	source := at(b, olaf.Time(60*olaf.Microsecond), func(s *bench.Spec) {
		s.Workload.Clusters, s.Workload.Workers, s.Slots = 100, 300, 32
	})
	m := shown(source, 200, 60, nil)
	b.ReportAllocs()
	for b.Loop() {
		m = send(m, tickMsg{})
		m.View()
	}
}

// BenchmarkBench runs the whole of Table 1 alone, and beside a dashboard that draws fifteen frames a second.
func BenchmarkBench(b *testing.B) {
	spec := bench.DefaultSpec()
	spec.Experiment = "table1"
	spec.Runs = 60
	run := func(b *testing.B) {
		if _, err := bench.Measure(context.Background(), spec, bench.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			run(b)
		}
	})
	b.Run("beside", func(b *testing.B) {
		plan, err := bench.NewPlan(spec)
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		player, err := live.NewPlayer(ctx, plan, live.Options{}, live.Speed(olaf.Microsecond), false, wall{})
		if err != nil {
			b.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { player.Run(ctx) })
		wg.Go(func() {
			m := send(New(Options{Source: player}), tea.WindowSizeMsg{Width: 200, Height: 60})
			ticker := time.NewTicker(FrameInterval)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					m = send(m, tickMsg{})
					m.View()
				}
			}
		})
		for b.Loop() {
			run(b)
		}
		stop()
		wg.Wait()
		if err := player.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }
func (wall) Tick(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// broken is a source that fails in the middle of a frame.
type broken struct{ still }

func (*broken) Snapshot() *live.Snapshot { panic("a fault in the middle of a frame") }

// TestPanicRestoresTheTerminal lets the program panic: the alternate screen must be left and the cursor shown.
func TestPanicRestoresTheTerminal(t *testing.T) {
	source := at(t, instant, nil)
	m := shown(source, 80, 24, nil)
	m.options.Source = new(broken)
	var out strings.Builder
	_, err := tea.NewProgram(m, tea.WithInput(nil), tea.WithOutput(&out), tea.WithAltScreen(), tea.WithoutSignalHandler()).Run()
	if !errors.Is(err, tea.ErrProgramPanic) {
		t.Errorf("the program ended with %v", err)
	}
	for _, want := range []string{"\x1b[?1049l", "\x1b[?25h"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q was not sent", want)
		}
	}
}

// TestEndOfContextRestoresTheTerminal ends the program from outside, as a signal does.
func TestEndOfContextRestoresTheTerminal(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	var out strings.Builder
	_, err := tea.NewProgram(shown(at(t, instant, nil), 80, 24, nil), tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(&out), tea.WithAltScreen(), tea.WithoutSignalHandler()).Run()
	if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "\x1b[?1049l") {
		t.Errorf("the program ended with %v", err)
	}
}
