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

// pressKey handles a key press. The overlay handles it first, then the key bindings.
func (f *Frame) pressKey(msg tea.KeyMsg) tea.Cmd {
	f.touched = true
	if f.filtering {
		f.typeFilter(msg)
		return nil
	}
	action, bound := f.options.Keys.Action(msg)
	if f.over != nil {
		return f.over.Key(f, msg, action)
	}
	if !bound && len(msg.Runes) > 1 && !msg.Paste { // keys pressed in quick succession arrive together
		return f.pressEach(msg)
	}
	if !bound {
		return nil
	}
	f.message = ""
	cmd := f.perform(action)
	f.last = action
	return cmd
}

// pressEach handles the keys in a message one by one.
func (f *Frame) pressEach(msg tea.KeyMsg) tea.Cmd {
	var cmds []tea.Cmd
	for _, r := range msg.Runes {
		one := msg
		one.Runes = []rune{r}
		cmds = append(cmds, f.pressKey(one))
	}
	return tea.Batch(cmds...)
}

// perform runs an action, or shows the reason why the action has no effect.
func (f *Frame) perform(a keys.Action) tea.Cmd {
	if do := f.actFor(a); do != nil {
		return do(f)
	}
	why, known := f.dashboard.Without[a]
	switch titles := f.pagesWith(a); {
	case len(titles) > 0:
		f.ShowNote(fmt.Sprintf("%s works on %s", f.Key(a), strings.Join(titles, ", ")))
	case known:
		f.ShowNote(why)
	}
	return nil
}

// actFor returns the function that currently performs an action. It comes from the page, the dashboard or the frame.
// actFor returns nil if there is none.
func (f *Frame) actFor(a keys.Action) func(*Frame) tea.Cmd {
	for _, acts := range []Acts{f.shownPage().Keys, f.dashboard.Keys, f.own} {
		if do := acts[a]; do != nil {
			return do
		}
	}
	if n := slices.Index(keys.Tabs, a); n >= 0 && n < len(f.dashboard.Pages) {
		return func(f *Frame) tea.Cmd { f.turnPage(n); return nil }
	}
	return nil
}

// Number of columns by which a key shifts long lines, and its maximum.
const (
	panStep = 12
	panMost = 20 * panStep
)

// ShiftKeys returns the key functions for a page whose list may be a report. While report returns true, the keys shift
// long lines; otherwise they seek in time.
func ShiftKeys(report func() bool) Acts {
	shift := func(a keys.Action, by int) func(*Frame) tea.Cmd {
		return func(f *Frame) tea.Cmd {
			if !report() {
				return f.RunDefault(a)
			}
			f.Cursor().Pan = min(max(f.Cursor().Pan+by, 0), panMost)
			return nil
		}
	}
	return Acts{keys.SeekForward: shift(keys.SeekForward, panStep), keys.SeekBackward: shift(keys.SeekBackward, -panStep)}
}

// RunDefault runs the frame's own function for an action that the page has overridden.
func (f *Frame) RunDefault(a keys.Action) tea.Cmd {
	if do := f.own[a]; do != nil {
		return do(f)
	}
	return nil
}

// pagesWith returns the titles of the pages that have their own function for an action.
func (f *Frame) pagesWith(a keys.Action) []string {
	var out []string
	for i := range f.dashboard.Pages {
		if p := &f.dashboard.Pages[i]; p.Keys[a] != nil {
			out = append(out, p.Title)
		}
	}
	return out
}

// AsAct wraps a function that returns no command, so that it can be used in Acts.
func AsAct(do func(*Frame)) func(*Frame) tea.Cmd {
	return func(f *Frame) tea.Cmd { do(f); return nil }
}

// ownActs returns the functions for the actions that the frame itself performs.
func ownActs() Acts {
	return Acts{
		keys.Help:         AsAct(func(f *Frame) { f.Open(new(helpText)) }),
		keys.Quit:         (*Frame).Leave,
		keys.NextTab:      AsAct(func(f *Frame) { f.turnPage(f.page + 1) }),
		keys.PreviousTab:  AsAct(func(f *Frame) { f.turnPage(f.page - 1) }),
		keys.Mouse:        (*Frame).toggleMouse,
		keys.Freeze:       AsAct(func(f *Frame) { f.frozen = !f.frozen }),
		keys.Filter:       AsAct((*Frame).startFilter),
		keys.Up:           AsAct(func(f *Frame) { f.Move(-1) }),
		keys.Down:         AsAct(func(f *Frame) { f.Move(1) }),
		keys.PageUp:       AsAct(func(f *Frame) { f.Move(-f.pageRows()) }),
		keys.PageDown:     AsAct(func(f *Frame) { f.Move(f.pageRows()) }),
		keys.Top:          AsAct(func(f *Frame) { f.Move(-1 << 30) }),
		keys.Bottom:       AsAct(func(f *Frame) { f.Move(1 << 30) }),
		keys.Open:         (*Frame).openRow,
		keys.Back:         AsAct(func(f *Frame) { f.Cursor().Filter = "" }),
		keys.SeekForward:  AsAct(func(f *Frame) { f.seekBy(1) }),
		keys.SeekBackward: AsAct(func(f *Frame) { f.seekBy(-1) }),
		keys.Rewind:       AsAct(func(f *Frame) { f.seek(0) }),
		keys.Mark:         AsAct((*Frame).setMark),
		keys.NextMark:     AsAct((*Frame).nextMark),
		keys.ExportText:   func(f *Frame) tea.Cmd { return f.export("txt") },
		keys.ExportSVG:    func(f *Frame) tea.Cmd { return f.export("svg") },
	}
}

// seekParts is the number of seek steps into which a run is divided.
const seekParts = 50

func (f *Frame) seek(to olaf.Time) {
	if refusal := f.dashboard.Subject.Seek(to); refusal != "" {
		f.ShowNote(refusal)
	}
}

func (f *Frame) seekBy(sign olaf.Time) {
	f.seek(f.status.Now + sign*max(f.status.End/seekParts, 1))
}

func (f *Frame) turnPage(to int) {
	n := len(f.dashboard.Pages)
	f.page = ((to % n) + n) % n
}

func (f *Frame) setMark() {
	if at := f.status.Now; !slices.Contains(f.marks, at) {
		f.marks = append(f.marks, at)
		slices.Sort(f.marks)
	}
	f.ShowNote(fmt.Sprintf("%d marked; %s goes to the next mark", len(f.marks), f.Key(keys.NextMark)))
}

func (f *Frame) nextMark() {
	if len(f.marks) == 0 {
		f.ShowNote("no marks; " + f.Key(keys.Mark) + " sets one")
		return
	}
	next := max(slices.IndexFunc(f.marks, func(at olaf.Time) bool { return at > f.status.Now }), 0)
	to := f.marks[next]
	f.seek(to)
}

// IsRepeat reports whether the previous key press had the same action.
func (f *Frame) IsRepeat(a keys.Action) bool { return f.last == a }

// Leave quits. If a run is in progress, it asks for confirmation first.
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

// filteredRows returns the rows on the current page that match the filter.
func (f *Frame) filteredRows() list.Rows {
	if p := f.shownPage(); p.Rows != nil {
		return f.Cursor().FilterRows(p.Rows())
	}
	return list.Rows{}
}

// Move moves the cursor on the current page by n rows.
func (f *Frame) Move(n int) {
	if settle := f.shownPage().Settle; settle != nil {
		settle(f)
	}
	f.Cursor().Move(n, f.filteredRows().Len)
}

// pageRows returns the number of rows by which a page key moves the cursor.
func (f *Frame) pageRows() int { return max(f.height/2, 1) }

// SelectedRow returns the row under the cursor, or false if there is none.
func (f *Frame) SelectedRow() (list.Row, bool) {
	rows := f.filteredRows()
	if rows.Len == 0 {
		return list.Row{}, false
	}
	state := *f.Cursor()
	state.Move(0, rows.Len)
	return rows.Row(state.Selected), true
}

// openRow runs the page's function for the row under the cursor.
func (f *Frame) openRow() tea.Cmd {
	row, ok := f.SelectedRow()
	if open := f.shownPage().Open; ok && open != nil {
		return open(f, row.ID)
	}
	return nil
}

// startFilter opens the input line for the filter.
func (f *Frame) startFilter() {
	if f.shownPage().Rows == nil {
		f.ShowNote("there is no list on this page")
		return
	}
	f.filtering, f.filter = true, edit.New(f.Cursor().Filter)
}

// typeFilter handles a key press in the filter's input line and updates the list.
func (f *Frame) typeFilter(msg tea.KeyMsg) {
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
		f.ShowNote("mouse on")
		return tea.EnableMouseCellMotion
	}
	f.ShowNote("mouse off: the terminal selects text")
	return tea.DisableMouse
}
