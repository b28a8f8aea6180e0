package tui

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/tui/screen"
)

// Film records a tour as an animated SVG without scripts, which every browser can play.
type Film struct {
	Width, Height int // in cells
	Every         int // ticks between two frames
}

// Record plays the dashboard's tour and returns it as an SVG. It calls advance to make the subject progress by one
// frame.
func (m Film) Record(f *Frame, advance func()) string {
	f.Update(tea.WindowSizeMsg{Width: m.Width, Height: m.Height})
	rows := make([][]string, m.Height) // indexed by row and frame
	ticks := CountTicks(f.dashboard.Story)
	looks, fore, back := f.options.Theme.Looks()
	for t := range ticks {
		f.look(time.Time{})
		advance()
		if t%m.Every != m.Every-1 {
			continue
		}
		f.dashboard.Subject.Look(time.Time{})
		f.status = f.dashboard.Subject.Status()
		f.draw()
		for y := range rows {
			rows[y] = append(rows[y], f.grid.SVGRow(y, looks))
		}
	}
	return m.picture(rows, looks, fore, back, (time.Duration(ticks) * FrameInterval).Seconds())
}

// picture returns an SVG that shows all frames in a loop, each for the same time. A row that does not change between
// frames appears only once.
func (m Film) picture(rows [][]string, looks []screen.Look, fore, back string, seconds float64) string {
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
	w, h := screen.SVGSize(m.Width, m.Height)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", w, h, w, h)
	b.WriteString(screen.SVGStyle(looks))
	b.WriteString("<style>")
	for n := 1; n < frames; n++ {
		if spans[n] {
			fmt.Fprintf(&b, ".f%d{visibility:hidden;animation:f%d %.0fs step-end infinite}@keyframes "+
				"f%d{0%%{visibility:visible}%.3f%%{visibility:hidden}}", n, n, seconds, n, 100*float64(n)/float64(frames))
		}
	}
	b.WriteString("</style>\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", back)
	fmt.Fprintf(&b, `<g class="t" fill="%s">`+"\n", fore)
	b.WriteString(body.String())
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// writeRow writes a row that is visible from frame number from up to, but not including, frame number to.
func writeRow(b *strings.Builder, row string, from, to, frames int, seconds float64) {
	if to-from == frames {
		b.WriteString(row)
		return
	}
	// A negative delay starts the animation in mid-cycle, so that rows are visible from the beginning.
	delay := seconds * float64(from) / float64(frames)
	if delay > 0 {
		delay -= seconds
	}
	fmt.Fprintf(b, `<g class="f%d" style="animation-delay:%.2fs">%s</g>`+"\n", to-from, delay,
		strings.TrimSuffix(row, "\n"))
}
