// Package edit implements an editable line of text.
package edit

import (
	"slices"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// limit is the maximum length of the text in characters.
const limit = 64

// Line is a text with a cursor. It is immutable; Update returns a new Line.
type Line struct {
	text []rune
	at   int
}

// New returns a line that contains text, with the cursor at the end.
func New(text string) Line { return Line{[]rune(text), len([]rune(text))} }

func (l Line) Value() string { return string(l.text) }

// Update handles a key press and returns the new line.
func (l Line) Update(msg tea.KeyMsg) Line {
	switch msg.Type {
	case tea.KeyRunes, tea.KeySpace:
		for _, r := range msg.Runes {
			if unicode.IsPrint(r) && len(l.text) < limit {
				l.text = slices.Insert(slices.Clone(l.text), l.at, r)
				l.at++
			}
		}
	case tea.KeyBackspace:
		if l.at > 0 {
			l.at--
			l.text = slices.Delete(slices.Clone(l.text), l.at, l.at+1)
		}
	case tea.KeyDelete:
		if l.at < len(l.text) {
			l.text = slices.Delete(slices.Clone(l.text), l.at, l.at+1)
		}
	case tea.KeyLeft:
		l.at = max(l.at-1, 0)
	case tea.KeyRight:
		l.at = min(l.at+1, len(l.text))
	case tea.KeyHome, tea.KeyCtrlA:
		l.at = 0
	case tea.KeyEnd, tea.KeyCtrlE:
		l.at = len(l.text)
	case tea.KeyCtrlU:
		l = Line{}
	}
	return l
}

// Draw draws the line. The cursor is visible if the line has the focus.
func (l Line) Draw(r screen.Region, style screen.Style, focused bool) {
	r.Text(0, 0, style, string(l.text))
	if focused {
		x := r.Text(0, 0, style, string(l.text[:l.at]))
		r.Sub(x, 0, 1, 1).Restyle(theme.Selected)
	}
}
