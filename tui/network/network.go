// Package network is the dashboard of a simulated network: its ports, what becomes of its updates, and the ages of its
// clusters, while one run goes on at the pace that a person chooses.
package network

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui/edit"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// FrameInterval is the time between two looks at the run.
const FrameInterval = 50 * time.Millisecond

// Source is the run that is shown. Nothing in it waits; Player is one.
type Source interface {
	Snapshot() *netsim.Snapshot // nil before the first
	Pace() Pace
	SetPace(Pace)
}

// Seeds is how far the runs of all seeds are, the one shown among them.
type Seeds struct{ Done, Total int }

// Options say what to show and how.
type Options struct {
	Source Source
	Seeds  func() Seeds // nil: the run shown is the only one
	Keys   *keys.Map    // nil: the default bindings
	Theme  *theme.Theme // nil: colours on a dark ground
}

type focus int

const (
	onClusters focus = iota
	onPorts
	places
)

type overlay int

const (
	nothing overlay = iota
	showHelp
	typeFilter
)

// Model is the state of the dashboard, a tea.Model.
type Model struct {
	options       Options
	width, height int
	snapshot      *netsim.Snapshot
	pace          Pace
	seeds         Seeds
	speed         meter

	focus  focus
	lists  [places]list.State
	sort   int // of sortings
	over   overlay
	filter edit.Line
	grid   *screen.Screen
}

// New makes the model.
func New(o Options) Model {
	if o.Keys == nil {
		o.Keys = keys.Default()
	}
	if o.Theme == nil {
		o.Theme = theme.New(theme.Options{Colour: true})
	}
	return Model{options: o, pace: o.Source.Pace(), seeds: Seeds{0, 1}, grid: new(screen.Screen)}
}

// tickMsg is the time at which to look again.
type tickMsg time.Time

func tick() tea.Cmd { return tea.Tick(FrameInterval, func(t time.Time) tea.Msg { return tickMsg(t) }) }

// Init starts the ticking.
func (m Model) Init() tea.Cmd { return tick() }

// Update is one message's effect.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		m.look(time.Time(msg))
		return m, tick()
	case tea.KeyMsg:
		return m.key(msg)
	}
	return m, nil
}

func (m *Model) look(wall time.Time) {
	m.snapshot, m.pace = m.options.Source.Snapshot(), m.options.Source.Pace()
	if m.options.Seeds != nil {
		m.seeds = m.options.Seeds()
	}
	if m.snapshot != nil {
		m.speed.note(wall, m.snapshot.Now, m.pace)
	}
}

// ended says that the run shown has reached its end.
func (m *Model) ended() bool { return m.snapshot != nil && m.snapshot.Now >= m.snapshot.End }

// done says that nothing is left to be simulated.
func (m *Model) done() bool {
	return m.ended() && (m.options.Seeds == nil || m.seeds.Done >= m.seeds.Total)
}

func (m Model) key(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	if m.over == typeFilter {
		m.typed(msg)
		return m, nil
	}
	if len(msg.Runes) > 1 && !msg.Paste { // keys that were pressed fast come together
		return m.each(msg)
	}
	action, bound := m.options.Keys.Action(msg)
	if action == keys.Quit {
		return m, tea.Quit
	}
	if m.over == showHelp {
		m.over = nothing
		return m, nil
	}
	if bound {
		m.act(action)
	}
	return m, nil
}

// each takes the keys of a message one by one.
func (m Model) each(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	for _, r := range msg.Runes {
		one := msg
		one.Runes = []rune{r}
		next, cmd := m.key(one)
		if cmd != nil {
			return next, cmd
		}
		m = next.(Model)
	}
	return m, nil
}

// typed takes a key of the filter; what is typed holds at once.
func (m *Model) typed(msg tea.KeyMsg) {
	state := &m.lists[onClusters]
	switch msg.Type {
	case tea.KeyEnter:
		m.over = nothing
		return
	case tea.KeyEsc, tea.KeyCtrlC:
		m.over, m.filter = nothing, edit.Line{}
	default:
		m.filter = m.filter.Update(msg)
	}
	state.Filter, state.Selected = m.filter.Value(), 0
}

// act carries an action out.
func (m *Model) act(a keys.Action) {
	if n, ok := m.steps()[a]; ok {
		m.lists[m.focus].Move(n, m.rows())
		return
	}
	switch a {
	case keys.Help:
		m.over = showHelp
	case keys.NextTab, keys.PreviousTab, keys.NextPanel, keys.LastPanel:
		m.focus = (m.focus + 1) % places
	case keys.Filter:
		m.focus, m.over, m.filter = onClusters, typeFilter, edit.New(m.lists[onClusters].Filter)
	case keys.Back:
		m.lists[onClusters].Filter = ""
	case keys.SortBy:
		m.sort = (m.sort + 1) % len(sortings)
		m.lists[onClusters].Selected = 0
	default:
		m.hasten(a)
	}
}

// hasten changes the pace.
func (m *Model) hasten(a keys.Action) {
	p := m.options.Source.Pace()
	switch a {
	case keys.Pause:
		p.Paused = !p.Paused
	case keys.Faster:
		p.Speed = p.Speed.faster()
	case keys.Slower:
		if now, known := m.speed.rate(); p.Speed == Full && known {
			p.Speed = now // what the machine can is where slowing down begins
		}
		p.Speed = p.Speed.slower()
	case keys.FullSpeed:
		p.Speed = Full
	case keys.RealTime:
		p.Speed = 1
	default:
		return
	}
	m.options.Source.SetPace(p)
	m.pace = p
	m.speed = meter{}
}

// steps are the actions that move in a list, in rows.
func (m *Model) steps() map[keys.Action]int {
	page := max(m.height/2, 1)
	return map[keys.Action]int{
		keys.Up: -1, keys.Down: 1, keys.PageUp: -page, keys.PageDown: page, keys.Top: math.MinInt32, keys.Bottom: math.MaxInt32,
	}
}

// rows is how many the list in focus has.
func (m *Model) rows() int {
	switch {
	case m.snapshot == nil:
		return 0
	case m.focus == onPorts:
		return len(m.snapshot.Ports)
	}
	return len(m.shownClusters())
}

// sortings are the orders of the clusters, each with the column that it follows.
var sortings = []struct {
	column int
	key    func(*netsim.ClusterSnapshot) float64 // largest first; nil is the order of ids
}{
	{columnID, nil},
	{columnNow, func(c *netsim.ClusterSnapshot) float64 { return known(c.AoM) }},
	{columnMean, func(c *netsim.ClusterSnapshot) float64 { return known(c.MeanAoM) }},
	{columnLoss, func(c *netsim.ClusterSnapshot) float64 { return known(c.Loss.Updates) }},
	{columnSent, func(c *netsim.ClusterSnapshot) float64 { return float64(c.Sent) }},
}

// known puts what is missing last.
func known(f results.Float) float64 {
	if !f.Known() {
		return math.Inf(-1)
	}
	return float64(f)
}

// shownClusters is the clusters that pass the filter, in order, as indices.
func (m *Model) shownClusters() []int {
	all := m.snapshot.Clusters
	state := &m.lists[onClusters]
	shown := make([]int, 0, len(all))
	for i := range all {
		row := list.Row{Cells: []list.Cell{{Text: strconv.Itoa(all[i].Cluster)}, {Text: all[i].Group}}}
		if state.Filter == "" || state.Passes(&row) {
			shown = append(shown, i)
		}
	}
	if key := sortings[m.sort].key; key != nil {
		slices.SortStableFunc(shown, func(a, b int) int { return cmp.Compare(key(&all[b]), key(&all[a])) })
	}
	return shown
}

// meter measures the speed of a run over the last seconds.
type meter struct {
	marks []mark
	pace  Pace
}

type mark struct {
	wall time.Time
	sim  olaf.Time
}

const meterSpan = 2 * time.Second

// note takes where the run is; a change of pace begins anew.
func (s *meter) note(wall time.Time, sim olaf.Time, p Pace) {
	if p != s.pace {
		*s = meter{pace: p}
	}
	if n := len(s.marks); n > 0 && s.marks[n-1].sim == sim && !p.Paused {
		return // nothing new yet, or over: the speed that was stays
	}
	marks := append(slices.Clone(s.marks), mark{wall, sim})
	for len(marks) > 2 && wall.Sub(marks[0].wall) > meterSpan {
		marks = marks[1:]
	}
	s.marks = marks
}

// rate is the speed, if enough was seen of it.
func (s *meter) rate() (Speed, bool) {
	if len(s.marks) < 2 || s.pace.Paused {
		return 0, false
	}
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	seconds := last.wall.Sub(first.wall).Seconds()
	if seconds <= 0 || last.sim <= first.sim {
		return 0, false
	}
	return Speed(float64(last.sim-first.sim) / float64(olaf.Second) / seconds), true
}
