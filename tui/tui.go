// Package tui is the dashboard: a view of a live session that owns no logic of the experiment. The model is a function of
// snapshots and messages; it pulls the newest snapshot when it draws, so that a slow terminal skips frames and never
// slows a run. Panels live in one folder each and draw values that they are given.
package tui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/edit"
	"github.com/olafctl/olaf/tui/form"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/life"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/registers"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Source is what the dashboard looks at; live.Player is one.
type Source interface {
	Snapshot() *live.Snapshot // the newest; never waits
	Do(live.Command) bool     // never waits
	Life(queue int, update int64) (live.Life, bool)
	Inspect(context.Context) (*live.Inspection, error)
}

// Bench is how far a whole experiment is that runs beside the live view, and what came out.
type Bench struct {
	Done, Total, Invalid int
	Finished             bool
	Err                  error
	Lines                []string // the report, as text
}

// Options wire a dashboard. Source is needed; nil functions switch off what needs them.
type Options struct {
	Source   Source
	Bench    func() *Bench // newest state; never waits
	Keys     *keys.Map
	Theme    *theme.Theme
	Save     func(name string, data []byte) (path string, err error)
	Workbook func(context.Context) (path string, err error)
	Story    []Scene // a guided tour; nil for none
	Mouse    bool
}

// FrameInterval is how often the newest snapshot is pulled.
const FrameInterval = time.Second / 15

// tab is one page.
type tab int

const (
	tabRun tab = iota
	tabClusters
	tabTables
	tabRegisters
	tabTestbed
	tabResults
	tabs
)

var tabNames = [tabs]string{"Run", "Clusters", "Tables", "Registers", "Testbed", "Results"}

// overlay is what lies above the page.
type overlay int

const (
	none overlay = iota
	showHelp
	showLife
	showForm
	askQuit
	typeFilter
)

// Model is the dashboard's state.
type Model struct {
	options Options
	width   int
	height  int

	snapshot   *live.Snapshot
	bench      *Bench
	frozen     bool
	inspection *live.Inspection
	changed    map[uint32]bool
	inspecting bool
	inspectErr string

	tab     tab
	focus   int // index into focusable panels
	zoom    bool
	whole   bool // the time axis shows the whole run
	sortBy  int
	lists   [tabs]list.State
	over    overlay
	helpTop int
	form    form.Form
	story   []life.Line
	filter  edit.Line
	marks   []olaf.Time
	mouse   bool
	status  string
	last    keys.Action
	ticks   int
	scene   int
	quit    bool
	touched bool // a person has pressed a key: the tour is over

	cache *cache
}

// cache keeps what drawing reuses: the grid, the frame, and where panels are for the mouse.
type cache struct {
	grid  screen.Screen
	frame string
	fresh bool
	hits  []hit
}

// hit is where a panel was drawn.
type hit struct {
	region screen.Region
	focus  int
	tab    tab
	rows   screen.Region // of its list, below the headings
	top    int
}

// New makes the model.
func New(o Options) Model {
	if o.Keys == nil {
		o.Keys = keys.Default()
	}
	if o.Theme == nil {
		o.Theme = theme.New(theme.Options{Colour: true})
	}
	return Model{options: o, cache: new(cache), snapshot: o.Source.Snapshot(), mouse: o.Mouse}
}

// Messages of the dashboard's own.
type (
	tickMsg    struct{}
	inspectMsg struct {
		in  *live.Inspection
		err error
	}
	lifeMsg struct {
		life live.Life
		ok   bool
	}
	savedMsg struct {
		what, path string
		err        error
	}
)

// Init starts the ticking.
func (m Model) Init() tea.Cmd { return tick() }

func tick() tea.Cmd {
	return tea.Tick(FrameInterval, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update is one message's effect.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.cache.fresh = false
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		cmd := m.tick()
		return m, tea.Batch(cmd, tick())
	case tea.KeyMsg:
		return m.key(msg)
	case tea.MouseMsg:
		return m, m.mouseEvent(msg)
	case inspectMsg:
		m.inspected(msg)
	case lifeMsg:
		m.story, m.over = life.Story(&msg.life), showLife
		if !msg.ok {
			m.story, m.over, m.status = nil, none, "that update is no longer remembered; go back in time to see it"
		}
	case savedMsg:
		m.status = msg.what + ": " + msg.path
		if msg.err != nil {
			m.status = msg.what + " failed: " + msg.err.Error()
		}
	}
	return m, nil
}

// tick pulls what is new.
func (m *Model) tick() tea.Cmd {
	m.ticks++
	m.tell()
	if m.options.Bench != nil {
		m.bench = m.options.Bench()
	}
	if !m.frozen {
		m.snapshot = m.options.Source.Snapshot()
	}
	return m.inspect()
}

// inspectEvery is how many ticks lie between two looks at tables, registers and devices.
const inspectEvery = 8

// inspect asks for tables, registers and devices while a page shows them.
func (m *Model) inspect() tea.Cmd {
	needed := m.tab == tabTables || m.tab == tabRegisters || m.tab == tabTestbed
	if !needed || m.inspecting || m.frozen || (m.inspection != nil && m.ticks%inspectEvery != 0) {
		return nil
	}
	m.inspecting = true
	source := m.options.Source
	return func() tea.Msg {
		in, err := source.Inspect(context.Background())
		return inspectMsg{in, err}
	}
}

func (m *Model) inspected(msg inspectMsg) {
	m.inspecting = false
	if msg.err != nil {
		m.inspectErr = msg.err.Error()
		return
	}
	m.inspectErr = ""
	m.changed = registers.Changed(m.inspection, msg.in)
	m.inspection = msg.in
}

// running says that quitting would end something.
func (m *Model) running() bool {
	if m.bench != nil && !m.bench.Finished {
		return true
	}
	s := m.snapshot
	return s != nil && s.Now > 0 && (s.State == live.Running || s.State == live.Paused)
}

// Quit says that the person has left.
func (m Model) Quit() bool { return m.quit }
