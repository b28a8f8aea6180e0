package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/edit"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
)

// pressKey handles one key: first for the overlay, then by the bindings.
func (f *Frame) key(msg tea.KeyMsg) tea.Cmd {
	f.touched = true
	if f.filtering {
		f.typed(msg)
		return nil
	}
	action, bound := f.options.Keys.Action(msg)
	if f.over != nil {
		return f.over.Key(f, msg, action)
	}
	if !bound && len(msg.Runes) > 1 && !msg.Paste { // keys pressed in quick succession arrive together
		return f.each(msg)
	}
	if !bound {
		return nil
	}
	f.said = ""
	cmd := f.act(action)
	f.last = action
	return cmd
}

// pressEach handles the keys of a message one by one.
func (f *Frame) each(msg tea.KeyMsg) tea.Cmd {
	var cmds []tea.Cmd
	for _, r := range msg.Runes {
		one := msg
		one.Runes = []rune{r}
		cmds = append(cmds, f.key(one))
	}
	return tea.Batch(cmds...)
}

// perform runs an action or shows why it does nothing.
func (f *Frame) act(a keys.Action) tea.Cmd {
	if do := f.handler(a); do != nil {
		return do(f)
	}
	why, known := f.dashboard.Without[a]
	switch titles := f.pagesWith(a); {
	case len(titles) > 0:
		f.Say(fmt.Sprintf("%s works on %s", f.Key(a), strings.Join(titles, ", ")))
	case known:
		f.Say(why)
	}
	return nil
}

// actFor returns what an action does now, from the page, the dashboard or the frame; nil if nothing.
func (f *Frame) handler(a keys.Action) func(*Frame) tea.Cmd {
	for _, acts := range []Acts{f.shown().Keys, f.dashboard.Keys, f.own} {
		if do := acts[a]; do != nil {
			return do
		}
	}
	if n := slices.Index(keys.Tabs, a); n >= 0 && n < len(f.dashboard.Pages) {
		return func(f *Frame) tea.Cmd { f.turn(n); return nil }
	}
	return nil
}

// Columns by which long lines shift at once, and at most.
const (
	panStep = 12
	panMost = 20 * panStep
)

// ShiftKeys returns the keys of a page whose list may be a report. While report is true they shift its long lines,
// otherwise they seek.
func Shifting(report func() bool) Acts {
	shift := func(a keys.Action, by int) func(*Frame) tea.Cmd {
		return func(f *Frame) tea.Cmd {
			if !report() {
				return f.Own(a)
			}
			f.Cursor().Pan = min(max(f.Cursor().Pan+by, 0), panMost)
			return nil
		}
	}
	return Acts{keys.SeekForward: shift(keys.SeekForward, panStep), keys.SeekBackward: shift(keys.SeekBackward, -panStep)}
}

// RunDefault runs the frame's own act for an action whose key the page has overridden.
func (f *Frame) Own(a keys.Action) tea.Cmd {
	if do := f.own[a]; do != nil {
		return do(f)
	}
	return nil
}

// pagesWith returns the titles of pages with their own act for an action.
func (f *Frame) pagesWith(a keys.Action) []string {
	var out []string
	for i := range f.dashboard.Pages {
		if p := &f.dashboard.Pages[i]; p.Keys[a] != nil {
			out = append(out, p.Title)
		}
	}
	return out
}

// hasAct reports whether an action does something, here or on another page.
func (f *Frame) works(a keys.Action) bool {
	return f.handler(a) != nil || len(f.pagesWith(a)) > 0
}

// AsAct wraps a function without a command as an act.
func Do(do func(*Frame)) func(*Frame) tea.Cmd {
	return func(f *Frame) tea.Cmd { do(f); return nil }
}

// ownActs returns the frame's own acts.
func ownActs() Acts {
	return Acts{
		keys.Help:         Do(func(f *Frame) { f.Open(new(helpText)) }),
		keys.Quit:         (*Frame).Leave,
		keys.NextTab:      Do(func(f *Frame) { f.turn(f.page + 1) }),
		keys.PreviousTab:  Do(func(f *Frame) { f.turn(f.page - 1) }),
		keys.Mouse:        (*Frame).toggleMouse,
		keys.Freeze:       Do(func(f *Frame) { f.frozen = !f.frozen }),
		keys.Filter:       Do((*Frame).startFilter),
		keys.Up:           Do(func(f *Frame) { f.Move(-1) }),
		keys.Down:         Do(func(f *Frame) { f.Move(1) }),
		keys.PageUp:       Do(func(f *Frame) { f.Move(-f.screenful()) }),
		keys.PageDown:     Do(func(f *Frame) { f.Move(f.screenful()) }),
		keys.Top:          Do(func(f *Frame) { f.Move(-1 << 30) }),
		keys.Bottom:       Do(func(f *Frame) { f.Move(1 << 30) }),
		keys.Open:         (*Frame).enter,
		keys.Back:         Do(func(f *Frame) { f.Cursor().Filter = "" }),
		keys.SeekForward:  Do(func(f *Frame) { f.seekBy(1) }),
		keys.SeekBackward: Do(func(f *Frame) { f.seekBy(-1) }),
		keys.Rewind:       Do(func(f *Frame) { f.seek(0) }),
		keys.Mark:         Do((*Frame).mark),
		keys.NextMark:     Do((*Frame).nextMark),
		keys.ExportText:   func(f *Frame) tea.Cmd { return f.export("txt") },
		keys.ExportSVG:    func(f *Frame) tea.Cmd { return f.export("svg") },
	}
}

// seekParts is the number of seek steps per run.
const seekParts = 50

func (f *Frame) seek(to olaf.Time) {
	if refusal := f.dashboard.Subject.Seek(to); refusal != "" {
		f.Say(refusal)
	}
}

func (f *Frame) seekBy(sign olaf.Time) {
	f.seek(f.status.Now + sign*max(f.status.End/seekParts, 1))
}

func (f *Frame) turn(to int) {
	n := len(f.dashboard.Pages)
	f.page = ((to % n) + n) % n
}

func (f *Frame) mark() {
	if at := f.status.Now; !slices.Contains(f.marks, at) {
		f.marks = append(f.marks, at)
		slices.Sort(f.marks)
	}
	f.Say(fmt.Sprintf("%d marked; %s goes to the next mark", len(f.marks), f.Key(keys.NextMark)))
}

func (f *Frame) nextMark() {
	if len(f.marks) == 0 {
		f.Say("no marks; " + f.Key(keys.Mark) + " sets one")
		return
	}
	to := f.marks[0]
	for _, at := range f.marks {
		if at > f.status.Now {
			to = at
			break
		}
	}
	f.seek(to)
}

// IsRepeat reports whether the key before had the same action.
func (f *Frame) Again(a keys.Action) bool { return f.last == a }

// Leave quits, after a question if a run is in progress.
func (f *Frame) Leave() tea.Cmd {
	if f.dashboard.Subject.Status().Busy {
		f.Open(&question{})
		return nil
	}
	return f.exit()
}

func (f *Frame) exit() tea.Cmd {
	f.quit = true
	return tea.Quit
}

// filteredRows returns the shown page's rows that match the filter.
func (f *Frame) rows() list.Rows {
	if p := f.shown(); p.Rows != nil {
		return f.Cursor().Filtered(p.Rows())
	}
	return list.Rows{}
}

// Move moves the shown page's cursor by n rows.
func (f *Frame) Move(n int) {
	if settle := f.shown().Settle; settle != nil {
		settle(f)
	}
	f.Cursor().Move(n, f.rows().Len)
}

// pageRows returns how many rows a page key moves.
func (f *Frame) screenful() int { return max(f.height/2, 1) }

// SelectedRow returns the row under the cursor, or false if there is none.
func (f *Frame) Selected() (list.Row, bool) {
	rows := f.rows()
	if rows.Len == 0 {
		return list.Row{}, false
	}
	state := *f.Cursor()
	state.Move(0, rows.Len)
	return rows.Row(state.Selected), true
}

// openRow runs the page's act for the row under the cursor.
func (f *Frame) enter() tea.Cmd {
	row, ok := f.Selected()
	if open := f.shown().Open; ok && open != nil {
		return open(f, row.ID)
	}
	return nil
}

// startFilter opens the filter input.
func (f *Frame) startFilter() {
	if f.shown().Rows == nil {
		f.Say("there is no list on this page")
		return
	}
	f.filtering, f.filter = true, edit.New(f.Cursor().Filter)
}

// typeFilter handles a key of the filter input; the list follows every key.
func (f *Frame) typed(msg tea.KeyMsg) {
	state := f.Cursor()
	switch msg.Type {
	case tea.KeyEnter:
		f.filtering = false
	case tea.KeyEsc, tea.KeyCtrlC:
		f.filtering, state.Filter = false, ""
	default:
		f.filter = f.filter.Update(msg)
		state.Filter, state.Selected = f.filter.Value(), 0
	}
}

func (f *Frame) toggleMouse() tea.Cmd {
	f.mouse = !f.mouse
	if f.mouse {
		f.Say("mouse on")
		return tea.EnableMouseCellMotion
	}
	f.Say("mouse off: the terminal selects text")
	return tea.DisableMouse
}
