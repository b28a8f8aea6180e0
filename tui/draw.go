package tui

import (
	"cmp"
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/help"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// The smallest terminal size on which a page is drawn.
const (
	minWidth  = 60
	minHeight = 16
)

// hit is a clickable region with the function that handles clicks.
type hit struct {
	region screen.Region
	do     func(x, y int) tea.Cmd
}

// View returns the frame as text for the terminal. It redraws the frame only if something has changed.
func (f *Frame) View() string {
	if !f.fresh {
		f.draw()
		if f.options.ASCII {
			f.grid.ASCII()
		}
		f.view = f.grid.ANSI(f.options.Theme.Palette())
		f.fresh = true
	}
	return f.view
}

// Text returns the frame without styles.
func (f *Frame) Text() string {
	f.draw()
	return f.grid.Text()
}

func (f *Frame) draw() {
	f.grid.Resize(f.width, f.height)
	f.hits = f.hits[:0]
	all := f.grid.All()
	if f.width < minWidth || f.height < minHeight {
		f.tooSmall(all)
		return
	}
	f.tabBar(all.Sub(0, 0, all.W, 1))
	f.drawHead(all.Sub(0, 1, all.W, 1))
	caption := f.tourCaption()
	rows := captionRows(caption, all.W)
	body := all.Sub(0, headRows, all.W, all.H-headRows-footRows-rows)
	if f.status.State == Starting {
		body.Text(1, 0, theme.Dim, "starting…")
	} else {
		f.shownPage().Draw(f, body)
	}
	drawCaption(all.Sub(0, all.H-footRows-rows, all.W, rows), caption)
	f.drawFooter(all.Sub(0, all.H-footRows, all.W, footRows))
	if f.over != nil {
		title, w, h := f.over.Size(f, all.W, all.H)
		f.over.Draw(f, drawPopup(all, w, h, title))
	}
}

const (
	headRows = 2
	footRows = 1
)

func (f *Frame) tooSmall(r screen.Region) {
	text := fmt.Sprintf("The terminal is too small: %d×%d. The dashboard needs %d×%d; %s.", r.W, r.H, minWidth,
		minHeight, f.dashboard.Instead)
	for y, line := range chart.WrapText(text, max(r.W, 1)) {
		r.Text(0, y, theme.Warn, line)
	}
}

func (f *Frame) tabBar(r screen.Region) {
	x := 1
	for i := range f.dashboard.Pages {
		title := f.dashboard.Pages[i].Title
		label := fmt.Sprintf(" %d %s ", i+1, title)
		switch {
		case r.W < 80 && i != f.page:
			label = fmt.Sprintf("%d %.4s", i+1, title)
		case r.W < 100:
			label = fmt.Sprintf("%d %s", i+1, title)
		}
		style := theme.Dim
		if i == f.page {
			style = theme.Selected
		}
		next := r.Text(x, 0, style, label)
		f.AddHit(r.Sub(x, 0, next-x, 1), func(int, int) tea.Cmd { f.turnPage(i); return nil })
		x = next + 1
	}
	full, brief, style := f.stateText()
	if x+screen.TextWidth(full) >= r.W {
		full = brief
	}
	r.TextRight(r.W-1, 0, style, full)
}

// stateText returns the state of the run as a symbol with words, in a full and a brief form.
func (f *Frame) stateText() (full, brief string, style screen.Style) {
	s := &f.status
	word := s.Word
	word = cmp.Or(word, "running")
	switch {
	case s.State == Starting:
		return "… starting", "…", theme.Dim
	case s.State == Failed:
		return "✗ FAILED", "✗", theme.Bad
	case f.frozen:
		return "❄ VIEW FROZEN, the run " + [...]string{"", "goes on at " + s.Speed, "is paused", "is over",
			""}[s.State], "❄ FROZEN", theme.Warn
	case s.State == Paused:
		return "‖ PAUSED, speed " + s.Speed, "‖ " + s.Speed, theme.Warn
	case s.State == Done:
		return "■ DONE", "■", theme.Good
	}
	return "▶ " + word + " at " + s.Speed, "▶ " + s.Speed, theme.Good
}

// Width of the progress gauge, and its minimum.
const (
	gaugeWidth = 40
	gaugeLeast = 6
)

// drawHead draws the line with the run, its device, its validity and its progress.
func (f *Frame) drawHead(r screen.Region) {
	s := &f.status
	x := 0
	for _, p := range s.Head {
		x = r.Text(x+1, 0, p.Style, p.Text)
	}
	if s.State == Starting {
		return
	}
	x = r.Text(x+2, 0, theme.Text, num.FormatInstant(s.Now, s.End))
	x = r.Text(x+1, 0, theme.Dim, "of "+num.FormatEnd(s.End))
	right := s.Progress
	for _, more := range []string{f.timeLeftText(), s.Background} {
		if more != "" && x+4+screen.TextWidth(right+more) < r.W {
			right += ", " + more
		}
	}
	if x+1+screen.TextWidth(right) >= r.W {
		return
	}
	r.TextRight(r.W-1, 0, theme.Dim, right)
	if room := r.W - 2 - screen.TextWidth(right) - x - 2; room >= gaugeLeast {
		bar := r.Sub(x+1, 0, min(room, gaugeWidth), 1)
		chart.DrawGauge(bar, float64(s.Now), float64(s.End), theme.Good)
		for _, at := range f.marks {
			bar.Set(int(float64(at)/float64(max(s.End, 1))*float64(bar.W-1)), 0, '◆', theme.Changed)
		}
	}
}

// timeLeftText returns the remaining time of the tour or, if none is playing, of the run at its current speed.
func (f *Frame) timeLeftText() string {
	if ticks := f.ticksLeft(); ticks > 0 {
		return num.FormatWait(time.Duration(ticks)*FrameInterval) + " of the tour left"
	}
	if f.status.State != Running || f.status.Left < 0 {
		return ""
	}
	return num.FormatWait(f.status.Left) + " left"
}

func (f *Frame) drawFooter(r screen.Region) {
	switch {
	case f.filtering:
		x := r.Text(1, 0, theme.Key, "/")
		f.filter.Draw(r.Sub(x, 0, r.W-x, 1), theme.Text, true)
		r.TextRight(r.W-1, 0, theme.Dim, "words; !word leaves out; enter keeps, esc clears")
		return
	case f.message != "":
		r.Text(1, 0, theme.Warn, f.message)
		return
	case f.status.Err != nil:
		r.Text(1, 0, theme.Bad, "✗ "+f.status.Err.Error())
		return
	}
	x := 1
	if f.status.Hint != "" {
		x = r.Text(x, 0, theme.Good, f.status.Hint) + 2
	}
	var works []keys.Binding
	for _, b := range f.options.Keys.Bindings() {
		if b.Brief != "" && f.actFor(b.Action) != nil {
			works = append(works, b)
		}
	}
	help.DrawFooter(r.Sub(x, 0, r.W-x, 1), works)
}

// AddHit registers a function that handles clicks in a region.
func (f *Frame) AddHit(r screen.Region, do func(x, y int) tea.Cmd) {
	f.hits = append(f.hits, hit{r, do})
}

// Listing is a list that is shown on a page.
type Listing struct {
	Columns []list.Column
	Rows    list.Rows // before filtering
	Focused bool
	Click   func() // called before a click moves the cursor; may be nil
}

// DrawList draws a list with the page's cursor inside a box. The border of the box shows how many rows match the
// filter.
func (f *Frame) DrawList(box, inside screen.Region, l Listing) {
	state := f.Cursor()
	rows := state.FilterRows(l.Rows)
	placed := list.Draw(inside, l.Columns, rows, *state, l.Focused)
	if state.Filter != "" {
		of := l.Rows.Of
		if of == "" {
			of = num.FormatCount(int64(l.Rows.Len))
		}
		box.TextRight(box.W-2, 0, theme.Warn, fmt.Sprintf(" /%s: %d of %s ", state.Filter, rows.Len, of))
	}
	f.AddHit(box, func(x, y int) tea.Cmd {
		if l.Click != nil {
			l.Click()
		}
		row, ok := placed.RowAt(x, y)
		if !ok {
			return nil
		}
		again := row == state.Selected
		state.Selected = row
		f.Move(0)
		if again {
			return f.openRow()
		}
		return nil
	})
}

// mouseEvent handles scrolling and clicks. A click moves the focus, selects a row or opens it.
func (f *Frame) mouseEvent(msg tea.MouseMsg) tea.Cmd {
	if f.over != nil {
		if _, asks := f.over.(*question); msg.Action == tea.MouseActionPress && !asks {
			f.Close()
		}
		return nil
	}
	switch msg.Button {
	case tea.MouseButtonWheelUp:
		f.Move(-wheelRows)
	case tea.MouseButtonWheelDown:
		f.Move(wheelRows)
	case tea.MouseButtonLeft:
		if msg.Action == tea.MouseActionPress {
			return f.click(msg.X, msg.Y)
		}
	}
	return nil
}

const wheelRows = 3

func (f *Frame) click(x, y int) tea.Cmd {
	for _, h := range f.hits {
		if h.region.Contains(x, y) {
			return h.do(x, y)
		}
	}
	return nil
}
