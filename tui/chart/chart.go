// Package chart draws lines, distributions and gauges into cells. Lines are braille patterns drawn by the library
// ntcharts. DrawLines removes values that are not finite and limits sizes, because the library would otherwise panic or
// hang. Histograms and CDFs are drawn by this package itself.
package chart

import (
	"math"
	"strings"

	"github.com/NimbleMarkets/ntcharts/canvas"
	"github.com/NimbleMarkets/ntcharts/canvas/graph"

	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Point is a sample with two coordinates.
type Point struct{ X, Y float64 }

// Line is a sequence of samples, sorted by X.
type Line struct {
	Points []Point
	Style  screen.Style
}

// Axes contains the ranges and labels of a chart's axes. An empty or infinite range is widened.
type Axes struct {
	X0, X1, Y0, Y1 float64
	X, Y           func(float64) string // format labels; nil for none
}

const axisWidth = 8

// Limits on the sizes passed to the library.
const (
	minSide = 2
	maxSide = 1000
)

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) && math.Abs(v) < 1e300 }

func widenRange(lo, hi float64) (float64, float64) {
	if !isFinite(lo) {
		lo = 0
	}
	if !isFinite(hi) || hi <= lo || hi-lo < 1e-9*math.Abs(lo) {
		hi = lo + 1
	}
	return lo, hi
}

// DrawLines draws lines with labelled axes. It draws nothing if the region is smaller than 2 × 2 cells.
func DrawLines(r screen.Region, a Axes, lines ...Line) {
	a.X0, a.X1 = widenRange(a.X0, a.X1)
	a.Y0, a.Y1 = widenRange(a.Y0, a.Y1)
	plot := r
	if a.Y != nil && r.W >= 3*axisWidth && r.H >= 2 {
		plot = r.Sub(axisWidth, 0, r.W-axisWidth, r.H)
		r.TextRight(axisWidth-1, 0, theme.Dim, a.Y(a.Y1))
		bottom := r.H - 1
		if a.X != nil && r.H >= 4 {
			bottom--
		}
		if bottom >= 4 {
			r.TextRight(axisWidth-1, bottom/2, theme.Dim, a.Y((a.Y0+a.Y1)/2))
		}
		r.TextRight(axisWidth-1, bottom, theme.Dim, a.Y(a.Y0))
	}
	if a.X != nil && plot.H >= 4 {
		y := plot.H - 1
		plot.Text(0, y, theme.Dim, a.X(a.X0))
		plot.TextRight(plot.W, y, theme.Dim, a.X(a.X1))
		plot = plot.Sub(0, 0, plot.W, y)
	}
	for _, line := range lines {
		drawBraille(plot, &a, line)
	}
}

// drawBraille draws a line as braille patterns. In cells that contain another line, it adds its pattern and sets its
// own style.
func drawBraille(r screen.Region, a *Axes, line Line) {
	w, h := min(r.W, maxSide), min(r.H, maxSide)
	if w < minSide || h < minSide || len(line.Points) == 0 {
		return
	}
	grid := graph.NewBrailleGrid(w, h, a.X0, a.X1, a.Y0, a.Y1)
	var last canvas.Point
	joined := false
	for _, p := range line.Points {
		if !isFinite(p.X) || !isFinite(p.Y) {
			joined = false
			continue
		}
		at := grid.GridPoint(canvas.Float64Point{X: min(max(p.X, a.X0), a.X1), Y: min(max(p.Y, a.Y0), a.Y1)})
		at.X, at.Y = min(max(at.X, 0), 2*w-1), min(max(at.Y, 0), 4*h-1)
		if joined {
			for _, q := range graph.GetLinePoints(last, at) {
				grid.Set(q)
			}
		} else {
			grid.Set(at)
		}
		last, joined = at, true
	}
	for y, row := range grid.BraillePatterns() {
		for x, c := range row {
			if c > brailleBlank && c <= brailleLast {
				r.Set(x, y, c, line.Style)
			}
		}
	}
}

const (
	brailleBlank = 0x2800
	brailleLast  = 0x28ff
)

var eighths = [...]rune{' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'}

// DrawBar fills a share, from 0 to 1, of the width of a row.
func DrawBar(r screen.Region, share float64, style screen.Style) {
	if !isFinite(share) {
		share = 0
	}
	parts := int(math.Round(min(max(share, 0), 1) * float64(r.W) * 8))
	for x := 0; x < r.W; x++ {
		r.Set(x, 0, eighths[min(max(parts-8*x, 0), 8)], style)
	}
}

// DrawGauge draws a bar for value relative to full, with a track behind it.
func DrawGauge(r screen.Region, value, full float64, style screen.Style) {
	share := 0.0
	if isFinite(value) && isFinite(full) && full > 0 {
		share = min(max(value/full, 0), 1)
	}
	filled := int(math.Round(share * float64(r.W)))
	for x := 0; x < r.W; x++ {
		if x < filled {
			r.Set(x, 0, '█', style)
		} else {
			r.Set(x, 0, '░', theme.Dim)
		}
	}
}

// CDF draws a cumulative distribution over 0, 1, 2 … with one bar per value. A bar shows the share of counts up to its
// value. Values that do not fit are combined in the last row.
func CDF(r screen.Region, counts []int64, style screen.Style) {
	total := sumCounts(counts)
	if total == 0 || r.H < 1 || r.W < 12 {
		r.Text(0, 0, theme.Dim, "nothing delivered yet")
		return
	}
	below, y := int64(0), 0
	for k, n := range counts {
		below += n
		if y == r.H-1 && below < total { // the last row shows the largest value
			for k++; k < len(counts) && below < total; k++ {
				below += counts[k]
			}
			k--
		}
		drawRow(r.Sub(0, y, r.W, 1), "≤"+num.FormatCount(int64(k)), float64(below)/float64(total), style)
		if y++; y == r.H || below == total {
			return
		}
	}
}

// DrawHistogram draws a distribution over 0, 1, 2 … with one bar for each value up to the largest that occurs. A bar
// shows the share of counts with exactly its value.
func DrawHistogram(r screen.Region, counts []int64, style screen.Style) {
	total := sumCounts(counts)
	if total == 0 || r.W < 12 {
		return
	}
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	for k := 0; k < min(len(counts), r.H); k++ {
		drawRow(r.Sub(0, k, r.W, 1), num.FormatCount(int64(k)), float64(counts[k])/float64(total), style)
	}
}

// drawRow draws a labelled bar with its percentage.
func drawRow(r screen.Region, label string, share float64, style screen.Style) {
	r.TextRight(4, 0, theme.Text, label)
	DrawBar(r.Sub(5, 0, r.W-13, 1), share, style)
	r.TextRight(r.W, 0, theme.Text, num.FormatPercent(100*share))
}

func sumCounts(counts []int64) int64 {
	n := int64(0)
	for _, c := range counts {
		n += max(c, 0)
	}
	return n
}

var levels = []rune(" ▁▂▃▄▅▆▇█")

// WrapText breaks text at spaces into lines of at most width characters. Longer words are not broken.
func WrapText(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			out = append(out, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}
