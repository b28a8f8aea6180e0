package tui

import (
	"time"

	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Scene is a part of a guided tour. It has a caption and defines what the dashboard shows.
type Scene struct {
	Length  time.Duration // viewing time of the scene
	Caption string
	Begin   func()
}

func (s *Scene) countTicks() int { return int(s.Length / FrameInterval) }

// isTouring reports whether the tour is in progress.
func (f *Frame) isTouring() bool { return !f.touched && f.scene < len(f.dashboard.Story) }

// advanceTour starts the next scene of the tour when its time has come.
func (f *Frame) advanceTour() {
	if !f.isTouring() {
		return
	}
	at := f.ticks - 1
	for i := range f.scene {
		at -= f.dashboard.Story[i].countTicks()
	}
	scene := &f.dashboard.Story[f.scene]
	switch {
	case at >= scene.countTicks():
		f.scene++
		f.advanceTour()
	case at == 0:
		scene.Begin()
	}
}

// ticksLeft returns the number of ticks until the end of the tour, or 0 if there is no tour.
func (f *Frame) ticksLeft() int {
	if !f.isTouring() {
		return 0
	}
	return CountTicks(f.dashboard.Story) - f.ticks
}

// CountTicks returns the number of frames in a tour.
func CountTicks(story []Scene) int {
	n := 0
	for i := range story {
		n += story[i].countTicks()
	}
	return n
}

// tourCaption returns the current caption of the tour, or "" if there is none.
func (f *Frame) tourCaption() string {
	if !f.isTouring() {
		return ""
	}
	return f.dashboard.Story[f.scene].Caption
}

const captionMargin = 4

// captionRows returns the number of rows for a caption. It is at least two, so that the page below rarely moves.
func captionRows(caption string, width int) int {
	if caption == "" {
		return 0
	}
	return min(max(len(chart.WrapText(caption, width-captionMargin)), 2), 4)
}

func drawCaption(r screen.Region, caption string) {
	r.Fill(' ', theme.Caption)
	for y, line := range chart.WrapText(caption, r.W-captionMargin) {
		r.Text(2, y, theme.Caption, line)
	}
}
