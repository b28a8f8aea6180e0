// Package tui implements the frame of every dashboard: tab bar, head and footer, keys for time, help, filter, cursor,
// marks, export, and the guided tour. Pages are values, and their content is a Subject. A new page therefore needs only
// its file and an entry in the list of its dashboard. The frame reads the newest snapshot when it draws. A slow
// terminal therefore skips frames and never slows down a run.
//
// Package queues contains the pages for a run on a testbed, and package network those for a simulated network. Each
// shared component has its own folder and draws the values that are passed to it.
package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/edit"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Options configures a dashboard. The zero value selects a dark background, the default keys and no mouse.
type Options struct {
	Keys  *keys.Map
	Theme *theme.Theme
	Save  func(name string, data []byte) (path string, err error) // nil disables saving views
	Mouse bool
	ASCII bool // the terminal can show only ASCII
	// Tick is the clock that triggers drawing; nil uses the wall clock.
	Tick func(time.Duration, func(time.Time) tea.Msg) tea.Cmd
}

// FrameInterval is the interval at which the frame reads a new snapshot.
const FrameInterval = time.Second / 15

// Frame is a dashboard on the terminal. It implements tea.Model.
type Frame struct {
	dashboard Dashboard
	options   Options
	own       Acts

	width, height int
	status        Status
	page          int
	lists         []list.State // state of the list on each page
	over          Overlay      // may be nil
	filter        edit.Line
	filtering     bool
	marks         []olaf.Time
	frozen        bool
	mouse         bool
	message       string // shown in the footer until the next key
	last          keys.Action
	ticks         int
	scene         int
	touched       bool // the user has pressed a key, so the tour is over
	quit          bool

	grid  screen.Screen
	hits  []hit
	view  string
	fresh bool // view is up to date
}

// New returns a frame for a dashboard. The dashboard must have at least one page.
func New(d Dashboard, o Options) *Frame {
	if o.Keys == nil {
		o.Keys = keys.Default()
	}
	if o.Theme == nil {
		o.Theme = theme.New(theme.Options{Colour: true})
	}
	if o.Tick == nil {
		o.Tick = tea.Tick
	}
	return &Frame{dashboard: d, options: o, own: ownActs(), lists: make([]list.State, len(d.Pages)),
		mouse: o.Mouse, status: d.Subject.Status()}
}

// tickMsg is the message that makes the frame read the next snapshot.
type tickMsg time.Time

// Then is a message with the result of a command. The frame calls it when it arrives.
type Then func(*Frame)

// Init starts the ticks at which snapshots are read.
func (f *Frame) Init() tea.Cmd { return f.tick() }

func (f *Frame) tick() tea.Cmd {
	return f.options.Tick(FrameInterval, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// Update handles a message from Bubble Tea.
func (f *Frame) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	f.fresh = false
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		f.width, f.height = msg.Width, msg.Height
	case tickMsg:
		return f, tea.Batch(f.look(time.Time(msg)), f.tick())
	case tea.KeyMsg:
		return f, f.pressKey(msg)
	case tea.MouseMsg:
		return f, f.mouseEvent(msg)
	case Then:
		msg(f)
	}
	return f, nil
}

// look reads the newest snapshot, unless the view is frozen.
func (f *Frame) look(wall time.Time) tea.Cmd {
	f.ticks++
	f.advanceTour()
	if f.frozen {
		return nil
	}
	cmd := f.dashboard.Subject.Look(wall)
	f.status = f.dashboard.Subject.Status()
	return cmd
}

// Quit reports whether the user has quit.
func (f *Frame) Quit() bool { return f.quit }

// Page returns the index of the current page.
func (f *Frame) Page() int { return f.page }

// Status returns the status that is shown. It does not change while the view is frozen.
func (f *Frame) Status() Status { return f.status }

// ShowNote shows a text in the footer until the next key press.
func (f *Frame) ShowNote(text string) { f.message = text }

// Key returns the name of the first key for an action.
func (f *Frame) Key(a keys.Action) string { return f.options.Keys.Key(a) }

// Cursor returns the list state of the current page.
func (f *Frame) Cursor() *list.State { return &f.lists[f.page] }

// Frozen reports whether the view is frozen.
func (f *Frame) Frozen() bool { return f.frozen }

// Freeze freezes or unfreezes the view. The run continues in both cases.
func (f *Frame) Freeze(on bool) { f.frozen = on }

// DropMarks removes the marks, for example before another run.
func (f *Frame) DropMarks() { f.marks = nil }

func (f *Frame) shownPage() *Page { return &f.dashboard.Pages[f.page] }
