package tui

import (
	"time"

	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Scene is one part of a guided tour: a caption, and what is to be seen meanwhile.
type Scene struct {
	Length  time.Duration // of watching
	Caption string
	Begin   func()
}

func (s *Scene) ticks() int { return int(s.Length / FrameInterval) }

// telling says that the tour goes on: nobody has taken over.
func (f *Frame) telling() bool { return !f.touched && f.scene < len(f.dashboard.Story) }

// tell moves the tour on.
func (f *Frame) tell() {
	if !f.telling() {
		return
	}
	at := f.ticks - 1
	for i := range f.scene {
		at -= f.dashboard.Story[i].ticks()
	}
	scene := &f.dashboard.Story[f.scene]
	switch {
	case at >= scene.ticks():
		f.scene++
		f.tell()
	case at == 0:
		scene.Begin()
	}
}

// toTell is how many ticks of the tour are left; 0 when none is told.
func (f *Frame) toTell() int {
	if !f.telling() {
		return 0
	}
	return Ticks(f.dashboard.Story) - f.ticks
}

// Ticks is how many frames a tour has.
func Ticks(story []Scene) int {
	n := 0
	for i := range story {
		n += story[i].ticks()
	}
	return n
}

// caption is what the tour says now; empty where none is told.
func (f *Frame) caption() string {
	if !f.telling() {
		return ""
	}
	return f.dashboard.Story[f.scene].Caption
}

const captionMargin = 4

// captionRows is how many rows a caption takes; at least two, so that the page moves rarely.
func captionRows(caption string, width int) int {
	if caption == "" {
		return 0
	}
	return min(max(len(chart.Wrap(caption, width-captionMargin)), 2), 4)
}

func drawCaption(r screen.Region, caption string) {
	r.Fill(' ', theme.Caption)
	for y, line := range chart.Wrap(caption, r.W-captionMargin) {
		r.Text(2, y, theme.Caption, line)
	}
}
