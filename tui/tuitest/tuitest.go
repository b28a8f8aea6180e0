// Package tuitest drives a dashboard in tests. It presses keys by name, controls the clock, and draws single pages.
package tuitest

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/screen"
)

// Clock is a wall clock that advances only when a test requests it.
type Clock struct {
	Now  time.Time
	tick func(time.Time) tea.Msg
}

// Tick can be used as the Tick function in tui.Options.
func (c *Clock) Tick(_ time.Duration, tick func(time.Time) tea.Msg) tea.Cmd {
	c.tick = tick
	return nil
}

// Advance advances the clock, makes the frame read a snapshot and runs the resulting commands.
func (c *Clock) Advance(f *tui.Frame, d time.Duration) {
	if c.tick == nil {
		f.Init()
	}
	c.Now = c.Now.Add(d)
	SendMessage(f, c.tick(c.Now))
}

// SendMessage sends a message to the frame and runs the resulting commands, except the command to quit.
func SendMessage(f *tui.Frame, msg tea.Msg) {
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
		SendMessage(f, answer)
	}
}

// PressKeys presses keys by name.
func PressKeys(f *tui.Frame, names ...string) {
	for _, name := range names {
		SendMessage(f, KeyMessage(name))
	}
}

var special = map[string]tea.KeyType{
	"tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp,
	"down": tea.KeyDown,
	"left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome,
	"end":    tea.KeyEnd,
	"ctrl+c": tea.KeyCtrlC, "ctrl+b": tea.KeyCtrlB, "ctrl+f": tea.KeyCtrlF, "backspace": tea.KeyBackspace,
	"space": tea.KeySpace, " ": tea.KeySpace,
}

// KeyMessage returns the message for a named key or for several characters at once.
func KeyMessage(name string) tea.KeyMsg {
	t, ok := special[name]
	switch {
	case t == tea.KeySpace && ok:
		return tea.KeyMsg{Type: t, Runes: []rune{' '}}
	case ok:
		return tea.KeyMsg{Type: t}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// ClickAt simulates a press of the left mouse button. The frame must have been drawn before.
func ClickAt(f *tui.Frame, x, y int) {
	SendMessage(f, tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
}

// DrawBody draws a page without the surrounding frame.
func DrawBody(f *tui.Frame, page *tui.Page, width, height int) string {
	var s screen.Screen
	s.Resize(width, height)
	page.Draw(f, s.All())
	return s.Text()
}
