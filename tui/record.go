package tui

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/tui/screen"
)

// Film is a tour as an animated picture: frames that take turns without a script, so that any browser plays it.
type Film struct {
	Width, Height int // cells
	Every         int // ticks between two frames
}

// Record plays the model's tour and returns it as SVG. advance lets the source live through one tick.
func (f Film) Record(m Model, advance func()) string {
	next, _ := m.Update(tea.WindowSizeMsg{Width: f.Width, Height: f.Height})
	var frames []string
	ticks := 0
	for _, scene := range m.options.Story {
		ticks += scene.Ticks
	}
	looks, fore, back := m.options.Theme.Looks()
	for t := range ticks {
		next, _ = next.Update(tickMsg{})
		advance()
		if t%f.Every == f.Every-1 {
			next, _ = next.Update(nil)
			model := next.(Model)
			model.snapshot = model.options.Source.Snapshot()
			model.draw()
			frames = append(frames, model.cache.grid.SVGRows(looks))
		}
	}
	return f.picture(frames, fore, back, float64(ticks)/second)
}

// picture shows every frame for its share of the time, over and over.
func (f Film) picture(frames []string, fore, back string, seconds float64) string {
	var b strings.Builder
	w, h := screen.SVGSize(f.Width, f.Height)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">`+"\n", w, h, w, h)
	b.WriteString(screen.SVGStyle)
	share := 100 / float64(max(len(frames), 1))
	fmt.Fprintf(&b, "<style>.f{visibility:hidden;animation:f %.0fs step-end infinite}@keyframes f{0%%{visibility:visible}%.3f%%{visibility:hidden}}</style>\n", seconds, share)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", back)
	for i, frame := range frames {
		fmt.Fprintf(&b, `<g class="t f" fill="%s" style="animation-delay:%.2fs">`+"\n%s</g>\n", fore, seconds*float64(i)/float64(len(frames)), frame)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
