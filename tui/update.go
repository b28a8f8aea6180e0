package tui

import (
	"context"
	"fmt"
	"slices"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/clusters"
	"github.com/olafctl/olaf/tui/edit"
	"github.com/olafctl/olaf/tui/form"
	"github.com/olafctl/olaf/tui/help"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
)

// key is one key's effect: on what lies above the page first, then by the bindings.
func (m Model) key(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	m.touched = true
	action, bound := m.options.Keys.Action(msg)
	switch m.over {
	case typeFilter:
		m.typed(msg)
		return m, nil
	case showForm:
		return m, m.filled(msg)
	case askQuit:
		return m.answered(msg, action)
	case showHelp, showLife:
		if action == keys.Quit {
			break
		}
		if step, ok := scrolls[action]; ok && m.over == showHelp {
			m.helpTop = min(max(m.helpTop+step, 0), help.Lines(m.options.Keys)-1)
			return m, nil
		}
		m.over, m.helpTop = none, 0
		return m, nil
	}
	if !bound {
		return m, nil
	}
	m.status = ""
	cmd := m.act(action)
	m.last = action
	return m, cmd
}

// scrolls are the actions that move the help, in lines.
var scrolls = map[keys.Action]int{keys.Up: -1, keys.Down: 1, keys.PageUp: -12, keys.PageDown: 12, keys.Top: -1 << 20, keys.Bottom: 1 << 20}

// panStep is how far lines of the Results page are shifted at once.
const panStep = 12

// act carries an action out.
func (m *Model) act(a keys.Action) tea.Cmd {
	if pan, ok := map[keys.Action]int{keys.SeekForward: panStep, keys.SeekBackward: -panStep}[a]; ok && m.tab == tabResults {
		m.lists[m.tab].Pan = min(max(m.lists[m.tab].Pan+pan, 0), 20*panStep)
		return nil
	}
	if do, ok := moves[a]; ok {
		do(m)
		return nil
	}
	if do, ok := commands[a]; ok {
		return do(m)
	}
	if c := m.command(a); c != nil {
		if !m.options.Source.Do(c) {
			m.status = "busy; try again"
		}
	}
	return nil
}

// moves are actions that change the view alone.
var moves = map[keys.Action]func(*Model){
	keys.Help:        func(m *Model) { m.over = showHelp },
	keys.NextTab:     func(m *Model) { m.turn(m.tab + 1) },
	keys.PreviousTab: func(m *Model) { m.turn(m.tab + tabs - 1) },
	keys.Tab1:        func(m *Model) { m.turn(tabRun) },
	keys.Tab2:        func(m *Model) { m.turn(tabClusters) },
	keys.Tab3:        func(m *Model) { m.turn(tabTables) },
	keys.Tab4:        func(m *Model) { m.turn(tabRegisters) },
	keys.Tab5:        func(m *Model) { m.turn(tabTestbed) },
	keys.Tab6:        func(m *Model) { m.turn(tabResults) },
	keys.NextPanel:   func(m *Model) { m.focusOn(m.focus + 1) },
	keys.LastPanel:   func(m *Model) { m.focusOn(m.focus - 1) },
	keys.Maximise:    func(m *Model) { m.zoom = !m.zoom },
	keys.Freeze:      func(m *Model) { m.frozen = !m.frozen },
	keys.Window:      func(m *Model) { m.whole = !m.whole },
	keys.SortBy:      func(m *Model) { m.sortBy = (m.sortBy + 1) % len(clusters.Sorts) },
	keys.Filter:      func(m *Model) { m.over, m.filter = typeFilter, edit.New(m.lists[m.tab].Filter) },
	keys.Up:          func(m *Model) { m.move(-1) },
	keys.Down:        func(m *Model) { m.move(1) },
	keys.PageUp:      func(m *Model) { m.move(-m.page()) },
	keys.PageDown:    func(m *Model) { m.move(m.page()) },
	keys.Top:         func(m *Model) { m.move(-1 << 30) },
	keys.Bottom:      func(m *Model) { m.move(1 << 30) },
	keys.Back:        func(m *Model) { m.lists[m.tab].Filter, m.zoom = "", false },
	keys.Stop:        (*Model).stop,
	keys.Mark:        (*Model).mark,
	keys.Rerun:       (*Model).askSettings,
}

// commands are actions that need the world outside.
var commands = map[keys.Action]func(*Model) tea.Cmd{
	keys.Quit:       (*Model).leave,
	keys.Open:       (*Model).open,
	keys.ExportText: func(m *Model) tea.Cmd { return m.export("txt") },
	keys.ExportSVG:  func(m *Model) tea.Cmd { return m.export("svg") },
	keys.Workbook:   (*Model).workbook,
	keys.Mouse:      (*Model).toggleMouse,
}

// command is what an action asks of the session; nil for nothing.
func (m *Model) command(a keys.Action) live.Command {
	s := m.snapshot
	if s == nil {
		return nil
	}
	switch a {
	case keys.Pause:
		return live.Pause{On: s.State == live.Running}
	case keys.Faster:
		return live.SetSpeed{Speed: s.Speed.Faster()}
	case keys.Slower:
		return live.SetSpeed{Speed: s.Speed.Slower()}
	case keys.FullSpeed:
		return live.SetSpeed{Speed: live.AsFastAsPossible}
	case keys.RealTime:
		return live.SetSpeed{Speed: live.RealTime}
	case keys.Step:
		return live.Step{}
	case keys.StepBack:
		return live.Step{Back: true}
	case keys.SeekForward:
		return live.Seek{To: s.Now + max(s.End/50, 1)}
	case keys.SeekBackward:
		return live.Seek{To: s.Now - max(s.End/50, 1)}
	case keys.Rewind:
		return live.Seek{To: 0}
	case keys.NextMark:
		return m.nextMark()
	case keys.Watch:
		return live.Watch{Cluster: olaf.ClusterID((int(s.Watched) + 1) % max(s.Plan.Spec.Workload.Clusters, 1))}
	}
	return nil
}

func (m *Model) turn(to tab) {
	m.tab = to % tabs
	m.zoom = false
}

// stop ends the traffic when it is asked for twice in a row.
func (m *Model) stop() {
	if m.last != keys.Stop {
		m.status = m.options.Keys.Key(keys.Stop) + " again stops the generator"
		return
	}
	m.options.Source.Do(live.Stop{})
	m.status = "the traffic is stopped; what is inside still leaves"
}

func (m *Model) mark() {
	if m.snapshot == nil {
		return
	}
	if at := m.snapshot.Now; !slices.Contains(m.marks, at) {
		m.marks = append(slices.Clone(m.marks), at)
		slices.Sort(m.marks)
	}
	m.status = fmt.Sprintf("%d marked; %s goes to the next mark", len(m.marks), m.options.Keys.Key(keys.NextMark))
}

func (m *Model) nextMark() live.Command {
	if len(m.marks) == 0 {
		m.status = "no marks; " + m.options.Keys.Key(keys.Mark) + " sets one"
		return nil
	}
	for _, at := range m.marks {
		if at > m.snapshot.Now {
			return live.Seek{To: at}
		}
	}
	return live.Seek{To: m.marks[0]}
}

func (m *Model) askSettings() {
	if m.snapshot != nil {
		m.over, m.form = showForm, form.New(m.snapshot.Plan.Spec, m.snapshot.Rate)
	}
}

// filled takes a key of the form.
func (m *Model) filled(msg tea.KeyMsg) tea.Cmd {
	switch msg.Type {
	case tea.KeyEsc:
		m.over = none
	case tea.KeyCtrlC:
		m.over = none
		return m.leave()
	case tea.KeyEnter:
		spec, err := m.form.Spec()
		if err != nil {
			m.form.Err = err.Error()
			return nil
		}
		m.over, m.frozen, m.marks = none, false, nil
		m.options.Source.Do(live.Rerun{Spec: spec})
	default:
		m.form = m.form.Update(msg)
		m.form.Err = ""
	}
	return nil
}

// typed takes a key of the filter; the list follows every key.
func (m *Model) typed(msg tea.KeyMsg) {
	state := &m.lists[m.tab]
	switch msg.Type {
	case tea.KeyEnter:
		m.over = none
	case tea.KeyEsc, tea.KeyCtrlC:
		m.over, state.Filter = none, ""
	default:
		m.filter = m.filter.Update(msg)
		state.Filter, state.Selected = m.filter.Value(), 0
	}
}

func (m *Model) leave() tea.Cmd {
	if m.running() && m.over != askQuit {
		m.over = askQuit
		return nil
	}
	m.quit = true
	return tea.Quit
}

// answered takes the answer to whether to quit.
func (m Model) answered(msg tea.KeyMsg, action keys.Action) (tea.Model, tea.Cmd) {
	if action == keys.Quit || msg.Type == tea.KeyEnter || len(msg.Runes) == 1 && unicode.ToLower(msg.Runes[0]) == 'y' {
		m.quit = true
		return m, tea.Quit
	}
	m.over = none
	return m, nil
}

// move changes the selection of the page's list. A log that grows is frozen first, so that its lines hold still.
func (m *Model) move(n int) {
	if p := m.focused().panel; m.tab == tabRun && p != panelQueue && p != panelLog {
		m.focusLog()
	}
	rows := m.rows()
	state := &m.lists[m.tab]
	if m.tab == tabRun && m.snapshot != nil && m.snapshot.State == live.Running && !m.frozen {
		m.frozen = true
		m.status = "view frozen so that lines hold still; " + m.options.Keys.Key(keys.Freeze) + " goes on"
	}
	state.Move(n, len(rows))
}

// focusLog moves the focus to the log of the focused queue, where there is one.
func (m *Model) focusLog() {
	queue := m.focused().queue
	for i, s := range m.slots() {
		if s.panel == panelLog && s.queue == queue {
			m.focus = i
		}
	}
}

// page is how many rows a page key moves.
func (m *Model) page() int { return max(m.height/2, 1) }

// rows are the lines of the list that keys move in, as filtered.
func (m *Model) rows() []list.Row {
	if m.tab == tabRun && m.focused().panel == panelQueue {
		q := m.queue(m.focused().queue)
		if q == nil {
			return nil
		}
		rows := make([]list.Row, len(q.Items))
		for i := range q.Items {
			rows[i].ID = q.Items[i].Update
		}
		return rows
	}
	return m.lists[m.tab].Filtered(m.allRows(m.tab, m.focused().queue))
}

// open shows the life of the selected update, or watches the selected cluster.
func (m *Model) open() tea.Cmd {
	rows := m.rows()
	state := m.lists[m.tab]
	if len(rows) == 0 {
		return nil
	}
	state.Move(0, len(rows))
	id := rows[state.Selected].ID
	switch m.tab {
	case tabRun:
		source, queue := m.options.Source, m.focused().queue
		return func() tea.Msg {
			life, ok := source.Life(queue, id)
			return lifeMsg{life, ok}
		}
	case tabClusters:
		m.options.Source.Do(live.Watch{Cluster: olaf.ClusterID(id)})
		m.status = fmt.Sprintf("the Run page shows the sawtooth of cluster %d", id)
	}
	return nil
}

// export writes what is to be seen.
func (m *Model) export(kind string) tea.Cmd {
	if m.options.Save == nil {
		m.status = "nowhere to write to"
		return nil
	}
	data := []byte(m.Text())
	if kind == "svg" {
		data = []byte(m.SVG())
	}
	save := m.options.Save
	name := "olafctl-" + tabNames[m.tab] + "." + kind
	return func() tea.Msg {
		path, err := save(name, data)
		return savedMsg{"view", path, err}
	}
}

func (m *Model) workbook() tea.Cmd {
	if m.options.Workbook == nil {
		m.status = "no results to write: start with 'olafctl bench --tui'"
		return nil
	}
	m.status = "writing the workbook…"
	write := m.options.Workbook
	return func() tea.Msg {
		path, err := write(context.Background())
		return savedMsg{"workbook", path, err}
	}
}

func (m *Model) toggleMouse() tea.Cmd {
	m.mouse = !m.mouse
	if m.mouse {
		m.status = "mouse on"
		return tea.EnableMouseCellMotion
	}
	m.status = "mouse off: the terminal selects text"
	return tea.DisableMouse
}

// mouseEvent focuses, selects, opens and scrolls.
func (m *Model) mouseEvent(msg tea.MouseMsg) tea.Cmd {
	if m.over != none {
		if msg.Action == tea.MouseActionPress && m.over != askQuit {
			m.over = none
		}
		return nil
	}
	switch msg.Button {
	case tea.MouseButtonWheelUp:
		m.move(-3)
	case tea.MouseButtonWheelDown:
		m.move(3)
	case tea.MouseButtonLeft:
		if msg.Action == tea.MouseActionPress {
			return m.click(msg.X, msg.Y)
		}
	}
	return nil
}

func (m *Model) click(x, y int) tea.Cmd {
	for _, h := range m.cache.hits {
		if !h.region.Contains(x, y) {
			continue
		}
		if h.tab != m.tab {
			m.turn(h.tab)
			return nil
		}
		m.focus = h.focus
		if h.rows.Contains(x, y) {
			state := &m.lists[m.tab]
			row := h.top + y - h.rows.Y
			again := row == state.Selected
			state.Selected = row
			m.move(0)
			if again {
				return m.open()
			}
		}
		return nil
	}
	return nil
}
