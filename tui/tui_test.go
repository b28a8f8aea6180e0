package tui_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
	"github.com/olafctl/olaf/tui/tuitest"
)

// toy is a run that counts looks.
type toy struct {
	status tui.Status
	looks  int
	sought []olaf.Time
	refuse string
	opened []int64
}

func newToy() *toy {
	us := func(n olaf.Duration) olaf.Time { return olaf.Time(n * olaf.Microsecond) }
	return &toy{status: tui.Status{
		State: tui.Running, Speed: "1.00 µs/s", Now: us(100), End: us(400), Progress: "sent 25.0 %",
		Left: 5 * time.Minute, Busy: true,
		Head: []screen.Phrase{{Text: "toy", Style: theme.Strong}, {Text: "on nothing", Style: theme.Dim}},
	}}
}

func (t *toy) Look(time.Time) tea.Cmd { t.looks++; return nil }
func (t *toy) Status() tui.Status     { return t.status }
func (t *toy) Seek(to olaf.Time) string {
	t.sought = append(t.sought, to)
	return t.refuse
}

// dashboard returns a dashboard with two pages, each one value.
func (t *toy) dashboard() tui.Dashboard {
	rows := func() list.Rows {
		return list.Rows{Len: 20, Row: func(i int) list.Row {
			return list.Row{ID: int64(100 + i), Cells: []list.Cell{{Text: fmt.Sprintf("row %d", i)},
				{Text: fmt.Sprint(1000 * i)}}}
		}}
	}
	columns := []list.Column{{Name: "name"}, {Name: "number", Width: 6, Right: true}}
	first := tui.Page{
		Title: "Rows", About: "Twenty rows of a toy.", Rows: rows, Caption: func() string { return "Twenty rows & <more>" },
		Draw: func(f *tui.Frame, r screen.Region) {
			f.DrawList(r, r.Box(screen.Thin, theme.Border, theme.Title, "rows"), tui.Listing{Columns: columns,
				Rows: rows(), Focused: true})
		},
		Open: func(f *tui.Frame, id int64) tea.Cmd {
			t.opened = append(t.opened, id)
			return func() tea.Msg {
				return tui.Then(func(f *tui.Frame) {
					f.Open(&tui.Reading{Title: "a row", Lines: []screen.Phrase{{Text: fmt.Sprintf("this is row %d", id)}}})
				})
			}
		},
	}
	second := tui.Page{
		Title: "Words", About: "Nothing but words.",
		Draw: func(_ *tui.Frame, r screen.Region) { r.Text(0, 0, theme.Text, "words") },
		Keys: tui.Acts{keys.SortBy: tui.AsAct(func(f *tui.Frame) { f.ShowNote("sorted") })},
	}
	return tui.Dashboard{
		Subject: t, Pages: []tui.Page{first, second},
		Keys:    tui.Acts{keys.Step: tui.AsAct(func(f *tui.Frame) { f.ShowNote("stepped") })},
		Without: map[keys.Action]string{keys.StepBack: "a toy goes forward only"},
		Leaving: "Quitting breaks the toy.", Instead: "paper works anywhere",
	}
}

// frame returns a frame of a given size for the toy, with its saved views.
func (t *toy) frame(width, height int) (f *tui.Frame, clock *tuitest.Clock, saved *[]string) {
	clock, saved = new(tuitest.Clock), new([]string)
	f = tui.New(t.dashboard(), tui.Options{Tick: clock.Tick, Theme: theme.New(theme.Options{}),
		Save: func(name string, data []byte) (string, error) {
			*saved = append(*saved, name+": "+string(data))
			return name, nil
		}})
	tuitest.SendMessage(f, tea.WindowSizeMsg{Width: width, Height: height})
	clock.Advance(f, tui.FrameInterval)
	return f, clock, saved
}

// TestFrame compares the tab bar, head, footer, help and the frame's own dialogues with the golden files.
func TestFrame(t *testing.T) {
	for _, c := range []struct {
		name          string
		width, height int
		keys          []string
	}{
		{"bar", 120, 18, nil}, {"bar", 80, 18, nil}, {"bar", 60, 16, []string{"2"}}, {"small", 59, 16, nil},
		{"small", 120, 15, nil},
		{"help", 80, 24, []string{"?"}}, {"help", 120, 40, []string{"2", "?"}}, {"quit", 80, 18, []string{"q"}},
		{"filter", 80, 18, []string{"/", "row 1"}},
		{"filtered", 80, 18, []string{"/", "row 1", "enter"}}, {"frozen", 80, 18, []string{"f"}},
		{"marked", 80, 18, []string{"m"}}, {"reading", 80, 18, []string{"down", "enter"}},
	} {
		t.Run(fmt.Sprintf("%s-%dx%d", c.name, c.width, c.height), func(t *testing.T) {
			f, _, _ := newToy().frame(c.width, c.height)
			tuitest.PressKeys(f, c.keys...)
			teatest.RequireEqualOutput(t, []byte(f.Text()))
		})
	}
}

// TestFrameInASCII checks that a frame for a terminal without UTF-8 sends only ASCII, and that its text for files keeps
// all characters.
func TestFrameInASCII(t *testing.T) {
	toy := newToy()
	f := tui.New(toy.dashboard(), tui.Options{ASCII: true, Tick: new(tuitest.Clock).Tick,
		Theme: theme.New(theme.Options{})})
	tuitest.SendMessage(f, tea.WindowSizeMsg{Width: 100, Height: 24})
	tuitest.PressKeys(f, "?")
	for i, c := range f.View() {
		if c > '~' {
			t.Fatalf("the frame sends %q at byte %d", c, i)
		}
	}
	if !strings.Contains(f.Text(), "─") {
		t.Error("the frame's text has no box, which files show everywhere")
	}
}

// TestStates checks that every state of a run has a word.
func TestStates(t *testing.T) {
	for state, want := range map[tui.State]string{
		tui.Starting: "… starting", tui.Running: "▶ running at 1.00 µs/s", tui.Paused: "‖ PAUSED, speed 1.00 µs/s",
		tui.Done: "■ DONE", tui.Failed: "✗ FAILED",
	} {
		y := newToy()
		y.status.State = state
		f, _, _ := y.frame(120, 20)
		if bar, _, _ := strings.Cut(f.Text(), "\n"); !strings.HasSuffix(bar, want) {
			t.Errorf("state %d: %q", state, bar)
		}
	}
}

// TestOwnBindings checks every key for the frame's own acts.
func TestOwnBindings(t *testing.T) {
	var y *toy
	var saved *[]string
	step := newToy().status.End / 50
	now := newToy().status.Now
	sought := func(want olaf.Time) func(*tui.Frame) bool {
		return func(*tui.Frame) bool { return len(y.sought) == 1 && y.sought[0] == want }
	}
	at := func(row int) func(*tui.Frame) bool {
		return func(f *tui.Frame) bool { return f.Cursor().Selected == row }
	}
	page := func(n int) func(*tui.Frame) bool { return func(f *tui.Frame) bool { return f.Page() == n } }
	says := func(text string) func(*tui.Frame) bool {
		return func(f *tui.Frame) bool { return strings.Contains(f.Text(), text) }
	}
	checks := map[keys.Action]struct {
		before []string
		holds  func(*tui.Frame) bool
	}{
		keys.Help: {nil, says("help: ↑↓")}, keys.Quit: {nil, says("quit?")},
		keys.NextTab: {nil, page(1)}, keys.PreviousTab: {nil, page(1)}, keys.Tabs[0]: {[]string{"2"}, page(0)},
		keys.Tabs[1]: {nil, page(1)},
		keys.Mouse:   {nil, says("mouse on")}, keys.Freeze: {nil, (*tui.Frame).Frozen},
		keys.Filter: {nil, says("!word leaves out")},
		keys.Up:     {[]string{"end"}, at(18)}, keys.Down: {nil, at(1)}, keys.PageUp: {[]string{"end"}, at(9)},
		keys.PageDown: {nil, at(10)},
		keys.Top:      {[]string{"end"}, at(0)}, keys.Bottom: {nil, at(19)}, keys.Open: {[]string{"down"},
			says("this is row 101")},
		keys.Back:        {[]string{"/", "x", "enter"}, func(f *tui.Frame) bool { return f.Cursor().Filter == "" }},
		keys.SeekForward: {nil, sought(now + step)}, keys.SeekBackward: {nil, sought(now - step)},
		keys.Rewind: {nil, sought(0)},
		keys.Mark:   {nil, says("1 marked")}, keys.NextMark: {[]string{"m"}, sought(now)},
		keys.ExportText: {nil, func(*tui.Frame) bool {
			return len(*saved) == 1 && strings.HasPrefix((*saved)[0], "olafctl-Rows.txt:") &&
				strings.Contains((*saved)[0], "\nTwenty rows & <more>\n")
		}},
		keys.ExportSVG: {nil, func(*tui.Frame) bool {
			return len(*saved) == 1 && strings.Contains((*saved)[0], "<title>Twenty rows &amp; &lt;more&gt;</title>")
		}},
	}
	for _, b := range keys.Default().Bindings() {
		check, ok := checks[b.Action]
		for _, k := range b.Keys {
			y = newToy()
			var f *tui.Frame
			f, _, saved = y.frame(100, 20)
			tuitest.PressKeys(f, check.before...)
			if ok {
				if tuitest.PressKeys(f, k); !check.holds(f) {
					t.Errorf("%s by %q does not:\n%s", b.Action, k, f.Text())
				}
			}
		}
	}
}

// TestUnusedKeysShowAMessage checks the message for keys that this dashboard or page does not use.
func TestUnusedKeysShowAMessage(t *testing.T) {
	f, _, _ := newToy().frame(100, 20)
	for key, want := range map[string]string{",": "a toy goes forward only", "s": "s works on Words", ".": "stepped"} {
		if tuitest.PressKeys(f, key); !strings.Contains(f.Text(), want) {
			t.Errorf("%q does not say %q", key, want)
		}
	}
	tuitest.PressKeys(f, "?")
	if text := f.Text(); strings.Contains(text, "step back") || !strings.Contains(text, "Twenty rows of a toy.") {
		t.Errorf("the help lists what does not work, or says nothing of the page:\n%s", text)
	}
}

// TestQuitAsksDuringARun checks that the frame quits at once only if no work would be interrupted.
func TestQuitAsksDuringARun(t *testing.T) {
	y := newToy()
	f, _, _ := y.frame(80, 20)
	tuitest.PressKeys(f, "q")
	if f.Quit() {
		t.Fatal("quit without asking")
	}
	if tuitest.PressKeys(f, "n"); f.Quit() || strings.Contains(f.Text(), "quit?") {
		t.Fatal("no does not stay")
	}
	if tuitest.PressKeys(f, "qy"); !f.Quit() {
		t.Error("yes, typed at once, does not quit")
	}
	f, _, _ = y.frame(80, 20)
	y.status.Busy = false // ended after the last look
	if tuitest.PressKeys(f, "q"); !f.Quit() {
		t.Error("asked although the run is over")
	}
}

// TestFreezeHoldsTheViewOnly checks that the run is not looked at while the view is frozen.
func TestFreezeHoldsTheViewOnly(t *testing.T) {
	y := newToy()
	f, clock, _ := y.frame(80, 20)
	tuitest.PressKeys(f, "f")
	frozen, looks := f.Text(), y.looks
	y.status.Now++
	clock.Advance(f, time.Second)
	if f.Text() != frozen || y.looks != looks {
		t.Error("a frozen view changed")
	}
	tuitest.PressKeys(f, "f")
	if clock.Advance(f, time.Second); y.looks == looks {
		t.Error("the view does not go on")
	}
}

// TestMouse checks a click on a tab, two clicks on a row, and the wheel.
func TestMouse(t *testing.T) {
	y := newToy()
	f, _, _ := y.frame(80, 20)
	f.View()
	if tuitest.ClickAt(f, 10, 0); f.Page() != 1 {
		t.Fatal("a click on the second tab does not lead there")
	}
	tuitest.PressKeys(f, "1")
	f.View()
	tuitest.ClickAt(f, 5, 6)
	if f.Cursor().Selected != 2 || len(y.opened) > 0 {
		t.Fatalf("a click on the third row selects %d, opens %v", f.Cursor().Selected, y.opened)
	}
	f.View()
	if tuitest.ClickAt(f, 5, 6); len(y.opened) != 1 || y.opened[0] != 102 {
		t.Errorf("a second click opens %v", y.opened)
	}
	tuitest.ClickAt(f, 5, 6) // closes
	tuitest.SendMessage(f, tea.MouseMsg{Button: tea.MouseButtonWheelDown, Action: tea.MouseActionPress})
	if f.Cursor().Selected != 5 {
		t.Errorf("the wheel leads to %d", f.Cursor().Selected)
	}
}

// TestTour checks a tour scene by scene, with the remaining time, and that a key ends it.
func TestTour(t *testing.T) {
	y := newToy()
	begun := 0
	d := y.dashboard()
	for _, seconds := range []int{2, 3} {
		d.Story = append(d.Story, tui.Scene{Length: time.Duration(seconds) * time.Second,
			Caption: fmt.Sprintf("scene of %d", seconds), Begin: func() { begun++ }})
	}
	play := func() (*tui.Frame, *tuitest.Clock) {
		clock := new(tuitest.Clock)
		f := tui.New(d, tui.Options{Tick: clock.Tick})
		tuitest.SendMessage(f, tea.WindowSizeMsg{Width: 100, Height: 20})
		return f, clock
	}
	f, clock := play()
	var told []string
	for n := range 80 {
		clock.Advance(f, tui.FrameInterval)
		text := f.Text()
		for _, caption := range []string{"scene of 2", "scene of 3"} {
			if strings.Contains(text, caption) && (len(told) == 0 || told[len(told)-1] != caption) {
				told = append(told, caption)
			}
		}
		if n == 0 && !strings.Contains(text, "0:05 of the tour left") || n == 45 && !strings.Contains(text,
			"0:02 of the tour left") {
			t.Errorf("after %d frames:\n%s", n, text)
		}
	}
	if text := f.Text(); len(told) != 2 || begun != 2 || strings.Contains(text, "scene") || !strings.Contains(text,
		"5:00 left") {
		t.Errorf("told %v, begun %d, at the end:\n%s", told, begun, text)
	}
	f, clock = play()
	clock.Advance(f, tui.FrameInterval)
	if tuitest.PressKeys(f, "2"); strings.Contains(f.Text(), "scene") {
		t.Error("a key does not end the tour")
	}
}

// TestColourIsNeverTheOnlySignal checks that the characters are the same with and without colours, and that without
// colours there is no colour sequence.
func TestColourIsNeverTheOnlySignal(t *testing.T) {
	var texts []string
	for _, o := range []theme.Options{{}, {Colour: true}, {Colour: true, Light: true}} {
		f := tui.New(newToy().dashboard(), tui.Options{Theme: theme.New(o)})
		tuitest.SendMessage(f, tea.WindowSizeMsg{Width: 100, Height: 20})
		texts = append(texts, f.Text())
		for _, n := range []string{"\x1b[3", "\x1b[9", "\x1b[4", ";3", ";9"} {
			if !o.Colour && strings.Contains(f.View(), n) {
				t.Errorf("without colours the frame holds %q", n)
			}
		}
	}
	if texts[0] != texts[1] || texts[0] != texts[2] {
		t.Error("themes differ in their characters")
	}
}

// terminal is a program's output; drawn is closed with the first frame.
type terminal struct {
	mu    sync.Mutex
	text  strings.Builder
	drawn chan struct{}
	once  sync.Once
}

func (w *terminal) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(string(b), "Rows") {
		w.once.Do(func() { close(w.drawn) })
	}
	return w.text.Write(b)
}

// program runs the frame on a terminal.
func (w *terminal) program(ctx context.Context, f *tui.Frame) error {
	_, err := tea.NewProgram(f, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(w), tea.WithAltScreen(),
		tea.WithoutSignalHandler()).Run()
	return err
}

// given reports whether the terminal was restored: alternate screen left, cursor shown.
func (w *terminal) given() bool {
	text := w.text.String()
	return strings.Contains(text, "\x1b[?1049l") && strings.Contains(text, "\x1b[?25h")
}

// TestPanicRestoresTheTerminal checks that the terminal is restored if the program panics within a frame.
func TestPanicRestoresTheTerminal(t *testing.T) {
	d := newToy().dashboard()
	d.Pages[0].Draw = func(*tui.Frame, screen.Region) { panic("a fault in the middle of a frame") }
	f := tui.New(d, tui.Options{})
	f.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	w := &terminal{drawn: make(chan struct{})}
	if err := w.program(t.Context(), f); !errors.Is(err, tea.ErrProgramPanic) || !w.given() {
		t.Errorf("the program ended with %v", err)
	}
}

// TestEndOfContextRestoresTheTerminal checks that the terminal is restored if the program is ended from outside, as by
// a signal.
func TestEndOfContextRestoresTheTerminal(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	w := &terminal{drawn: make(chan struct{})}
	go func() {
		<-w.drawn
		stop()
	}()
	f, _, _ := newToy().frame(80, 24)
	if err := w.program(ctx, f); !errors.Is(err, context.Canceled) || !w.given() {
		t.Errorf("the program ended with %v", err)
	}
}
