// Package tuitest drives a dashboard in tests: keys by name, a clock that the test moves, and the body of a page alone.
package tuitest

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/screen"
)

// Clock is a wall clock that stands until it is moved.
type Clock struct {
	Now  time.Time
	tick func(time.Time) tea.Msg
}

// Tick is for tui.Options.
func (c *Clock) Tick(_ time.Duration, tick func(time.Time) tea.Msg) tea.Cmd {
	c.tick = tick
	return nil
}

// Advance lets time pass and the frame look again. Commands are carried out.
func (c *Clock) Advance(f *tui.Frame, d time.Duration) {
	if c.tick == nil {
		f.Init()
	}
	c.Now = c.Now.Add(d)
	Send(f, c.tick(c.Now))
}

// Send gives the frame a message and carries out what it asks for, except to quit.
func Send(f *tui.Frame, msg tea.Msg) {
	_, cmd := f.Update(msg)
	carryOut(f, cmd)
}

func carryOut(f *tui.Frame, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch answer := cmd().(type) {
	case nil, tea.QuitMsg:
	case tea.BatchMsg:
		for _, c := range answer {
			carryOut(f, c)
		}
	default:
		Send(f, answer)
	}
}

// Press presses keys by their names.
func Press(f *tui.Frame, names ...string) {
	for _, name := range names {
		Send(f, Key(name))
	}
}

var special = map[string]tea.KeyType{
	"tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp, "down": tea.KeyDown,
	"left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
	"ctrl+c": tea.KeyCtrlC, "ctrl+b": tea.KeyCtrlB, "ctrl+f": tea.KeyCtrlF, "backspace": tea.KeyBackspace, "space": tea.KeySpace, " ": tea.KeySpace,
}

// Key is a key by its name, or several characters that come at once.
func Key(name string) tea.KeyMsg {
	t, ok := special[name]
	switch {
	case t == tea.KeySpace && ok:
		return tea.KeyMsg{Type: t, Runes: []rune{' '}}
	case ok:
		return tea.KeyMsg{Type: t}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// Click presses the left button of the mouse. The frame must have been drawn.
func Click(f *tui.Frame, x, y int) {
	Send(f, tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
}

// Body draws a page alone, without the frame.
func Body(f *tui.Frame, page *tui.Page, width, height int) string {
	var s screen.Screen
	s.Resize(width, height)
	page.Draw(f, s.All())
	return s.Text()
}
