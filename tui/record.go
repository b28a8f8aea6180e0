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
	rows := make([][]string, f.Height) // by row, then by frame
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
			for y := range rows {
				rows[y] = append(rows[y], model.cache.grid.SVGRow(y, looks))
			}
		}
	}
	return f.picture(rows, looks, fore, back, float64(ticks)/second)
}

// picture shows every frame for its share of the time, over and over. A row that stays the same for several frames is
// in the picture once.
func (f Film) picture(rows [][]string, looks []screen.Look, fore, back string, seconds float64) string {
	var b, body strings.Builder
	frames := len(rows[0])
	spans := make(map[int]bool)
	for _, row := range rows {
		for from := 0; from < frames; {
			to := from + 1
			for to < frames && row[to] == row[from] {
				to++
			}
			if row[from] != "" {
				writeRow(&body, row[from], from, to, frames, seconds)
				spans[to-from] = true
			}
			from = to
		}
	}
	w, h := screen.SVGSize(f.Width, f.Height)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", w, h, w, h)
	b.WriteString(screen.SVGStyle(looks))
	b.WriteString("<style>")
	for n := 1; n < frames; n++ {
		if spans[n] {
			fmt.Fprintf(&b, ".f%d{visibility:hidden;animation:f%d %.0fs step-end infinite}@keyframes f%d{0%%{visibility:visible}%.3f%%{visibility:hidden}}", n, n, seconds, n, 100*float64(n)/float64(frames))
		}
	}
	b.WriteString("</style>\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", back)
	fmt.Fprintf(&b, `<g class="t" fill="%s">`+"\n", fore)
	b.WriteString(body.String())
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// writeRow writes a row that is shown from one frame up to another.
func writeRow(b *strings.Builder, row string, from, to, frames int, seconds float64) {
	if to-from == frames {
		b.WriteString(row)
		return
	}
	// A negative delay starts the animation somewhere in its round, so that nothing is hidden before its first turn.
	delay := seconds * float64(from) / float64(frames)
	if delay > 0 {
		delay -= seconds
	}
	fmt.Fprintf(b, `<g class="f%d" style="animation-delay:%.2fs">%s</g>`+"\n", to-from, delay, strings.TrimSuffix(row, "\n"))
}
