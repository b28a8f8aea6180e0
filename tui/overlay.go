package tui

import (
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/help"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Overlay is drawn above the page and receives all key presses until it is closed.
type Overlay interface {
	// Size returns the title in the border and the inner size for a terminal of the given size.
	Size(f *Frame, width, height int) (title string, w, h int)
	Draw(f *Frame, inside screen.Region)
	Key(f *Frame, msg tea.KeyMsg, a keys.Action) tea.Cmd
}

// Open shows an overlay.
func (f *Frame) Open(o Overlay) { f.over = o }

// Close hides the overlay.
func (f *Frame) Close() { f.over = nil }

// Over returns the open overlay, or nil if there is none.
func (f *Frame) Over() Overlay { return f.over }

// drawPopup clears the middle of r, draws a box there, and returns the inside of the box.
func drawPopup(r screen.Region, w, h int, title string) screen.Region {
	w, h = min(w+2, r.W), min(h+2, r.H)
	box := r.Sub((r.W-w)/2, (r.H-h)/2, w, h)
	box.Fill(' ', theme.Text)
	return box.Box(screen.Heavy, theme.Focus, theme.Title, title)
}

// Reading is an overlay that shows lines of text. Any key closes it.
type Reading struct {
	Title string
	Lines []screen.Phrase
}

const readingWidth = 76

// Size implements Overlay.
func (o *Reading) Size(*Frame, int, int) (title string, w, h int) {
	return o.Title + ": any key closes", readingWidth, len(o.Lines)
}

// Draw implements Overlay.
func (o *Reading) Draw(_ *Frame, r screen.Region) {
	for y, l := range o.Lines {
		r.Text(1, y, l.Style, l.Text)
	}
}

// Key implements Overlay.
func (o *Reading) Key(f *Frame, _ tea.KeyMsg, a keys.Action) tea.Cmd {
	f.Close()
	if a == keys.Quit {
		return f.Leave()
	}
	return nil
}

// helpText is the help overlay, with the description of the page and the effect of every key.
type helpText struct{ top int }

func (o *helpText) Size(_ *Frame, width, height int) (title string, w, h int) {
	return "help: ↑↓ scroll, any other key closes", width - 6, height - 4
}

func (o *helpText) Draw(f *Frame, r screen.Region) { help.Draw(r, f.helpLines(r.W), o.top) }

// scrolls maps the actions that scroll the help to numbers of lines.
var scrolls = map[keys.Action]int{keys.Up: -1, keys.Down: 1, keys.PageUp: -12, keys.PageDown: 12,
	keys.Top: -1 << 20, keys.Bottom: 1 << 20}

func (o *helpText) Key(f *Frame, _ tea.KeyMsg, a keys.Action) tea.Cmd {
	if step, ok := scrolls[a]; ok {
		o.top = min(max(o.top+step, 0), len(f.helpLines(f.width))-1)
		return nil
	}
	f.Close()
	if a == keys.Quit {
		return f.Leave()
	}
	return nil
}

// helpLines returns the description of the page and, by group, the bindings that have an effect.
func (f *Frame) helpLines(width int) []help.Line {
	var out []help.Line
	for i, line := range chart.WrapText(f.shownPage().Title+": "+f.shownPage().About, min(width, help.ColumnWidth)-1) {
		out = append(out, help.Line{Text: line, Title: i == 0})
	}
	out = append(out, help.Line{})
	var works []keys.Binding
	for _, b := range f.options.Keys.Bindings() {
		if f.actFor(b.Action) == nil && len(f.pagesWith(b.Action)) == 0 {
			continue
		}
		for i, tab := range keys.Tabs {
			if b.Action == tab {
				b.About = f.dashboard.Pages[i].Title
			}
		}
		works = append(works, b)
	}
	return append(out, help.ListLines(works)...)
}

// question is the overlay that asks whether to quit during a run.
type question struct{}

const questionWidth = 58

func (*question) words(f *Frame) []string {
	return chart.WrapText("A run is on. "+f.dashboard.Leaving, questionWidth-2)
}

func (o *question) Size(f *Frame, _, _ int) (title string, w, h int) {
	return "quit?", questionWidth, len(o.words(f)) + 1
}

func (o *question) Draw(f *Frame, r screen.Region) {
	words := o.words(f)
	for y, line := range words {
		r.Text(1, y, theme.Text, line)
	}
	r.Text(1, len(words), theme.Key, "y or "+f.Key(keys.Quit)+" quits, any other key stays")
}

func (*question) Key(f *Frame, msg tea.KeyMsg, a keys.Action) tea.Cmd {
	if a == keys.Quit || msg.Type == tea.KeyEnter || len(msg.Runes) == 1 && unicode.ToLower(msg.Runes[0]) == 'y' {
		return f.exit()
	}
	f.Close()
	return nil
}
