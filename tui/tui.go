// Package tui is the frame of every dashboard: tab bar, head and footer, the keys of time, help, filter, cursor, marks,
// export, and the guided tour. It knows pages only as values, and what they show only as a Subject, so that a page costs
// its file and a row in the list of its dashboard. The frame pulls the newest picture when it draws: a slow terminal skips
// frames and never slows a run.
//
// Package queues has the pages of a run on a testbed, package network those of a simulated network. What pages share
// lives in one folder a component and draws values that it is given.
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

// Options say how a dashboard looks and what it may do. The zero value is a dark ground, the default keys, no mouse.
type Options struct {
	Keys  *keys.Map
	Theme *theme.Theme
	Save  func(name string, data []byte) (path string, err error) // nil: views are not written
	Mouse bool
	ASCII bool // the terminal shows no other characters
	// Tick is the clock that frames are drawn by; nil is the wall clock.
	Tick func(time.Duration, func(time.Time) tea.Msg) tea.Cmd
}

// FrameInterval is how often the newest picture is pulled.
const FrameInterval = time.Second / 15

// Frame is a dashboard on the terminal, a tea.Model.
type Frame struct {
	dashboard Dashboard
	options   Options
	own       Acts

	width, height int
	status        Status
	page          int
	lists         []list.State // by page
	over          Overlay      // nil for none
	filter        edit.Line
	filtering     bool
	marks         []olaf.Time
	frozen        bool
	mouse         bool
	said          string // in the footer, until the next key
	last          keys.Action
	ticks         int
	scene         int
	touched       bool // a person has pressed a key: the tour is over
	quit          bool

	grid  screen.Screen
	hits  []hit
	view  string
	fresh bool // view is of the present state
}

// New makes a frame around a dashboard, which has at least one page.
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
	return &Frame{dashboard: d, options: o, own: ownActs(), lists: make([]list.State, len(d.Pages)), mouse: o.Mouse, status: d.Subject.Status()}
}

// tickMsg is the time to look again.
type tickMsg time.Time

// Then is a message that is carried out when it arrives: how a command answers.
type Then func(*Frame)

// Init starts the ticking.
func (f *Frame) Init() tea.Cmd { return f.tick() }

func (f *Frame) tick() tea.Cmd {
	return f.options.Tick(FrameInterval, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// Update is one message's effect.
func (f *Frame) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	f.fresh = false
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		f.width, f.height = msg.Width, msg.Height
	case tickMsg:
		return f, tea.Batch(f.look(time.Time(msg)), f.tick())
	case tea.KeyMsg:
		return f, f.key(msg)
	case tea.MouseMsg:
		return f, f.mouseEvent(msg)
	case Then:
		msg(f)
	}
	return f, nil
}

// look takes what is new.
func (f *Frame) look(wall time.Time) tea.Cmd {
	f.ticks++
	f.tell()
	if f.frozen {
		return nil
	}
	cmd := f.dashboard.Subject.Look(wall)
	f.status = f.dashboard.Subject.Status()
	return cmd
}

// Quit says that the person has left.
func (f *Frame) Quit() bool { return f.quit }

// Page is the page that is shown, by its place.
func (f *Frame) Page() int { return f.page }

// Status is what the frame shows of the run; while the view is frozen, of then.
func (f *Frame) Status() Status { return f.status }

// Say shows a text in the footer until the next key.
func (f *Frame) Say(text string) { f.said = text }

// Key is how an action's first key is called.
func (f *Frame) Key(a keys.Action) string { return f.options.Keys.Key(a) }

// Cursor is where the list of the shown page stands.
func (f *Frame) Cursor() *list.State { return &f.lists[f.page] }

// Frozen says that the view holds still while the run goes on.
func (f *Frame) Frozen() bool { return f.frozen }

// Freeze holds the view still, or lets it go on.
func (f *Frame) Freeze(on bool) { f.frozen = on }

// Forget drops the marks: they are of another run.
func (f *Frame) Forget() { f.marks = nil }

func (f *Frame) shown() *Page { return &f.dashboard.Pages[f.page] }
