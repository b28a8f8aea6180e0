package figure

import (
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/olafctl/olaf/results/table"
)

// barPlan is the layout of the bars in a panel. Bars are vertical if their names fit below them, and otherwise
// horizontal, with the height that they need.
type barPlan struct {
	level bool
	names []string
	thick vg.Length // thickness per bar
	side  int       // number of bars per group, side by side
}

const (
	leastBar, mostBar vg.Length = 5, 44
	levelBar          vg.Length = 8
	// aside is the width of the labels at a vertical axis.
	aside vg.Length = 62
)

// planBars plans the layout of the bars in a panel with the given width.
func (p *panel) planBars(width vg.Length) {
	if p.chart.Kind != table.Bars && p.chart.Kind != table.Stacked {
		return
	}
	b := &barPlan{side: 1}
	if p.chart.Kind == table.Bars {
		b.side = len(p.chart.Series)
	}
	p.bars = b
	for _, k := range p.rows {
		b.names = append(b.names, p.sheet.Columns[p.chart.X].Pretty(p.sheet.Rows[k][p.chart.X]))
	}
	room := (width - aside) / vg.Length(len(p.rows))
	b.thick = min(room*0.8/vg.Length(b.side), mostBar)
	style := plainStyle()
	fits := b.thick >= leastBar
	names := make([]string, len(b.names))
	most := vg.Length(1)
	for i, name := range b.names {
		names[i] = wrapText(&style, name, room-4)
		most = max(most, linesIn(names[i]))
		for words := range strings.Lines(names[i]) {
			fits = fits && wideText(&style, strings.TrimSpace(words)) <= room-4
		}
	}
	if fits && most <= 2 {
		b.names = names
		p.axes += (most - 1) * line
		return
	}
	b.level, b.thick = true, levelBar
	for i, name := range b.names {
		b.names[i] = wrapText(&style, name, 0.4*width)
	}
	p.axes = 48
	for _, name := range b.names {
		p.axes += max(b.thick*vg.Length(b.side), (linesIn(name)-1)*line+line) + 4
	}
	p.axes = max(p.axes, manyHeight*0.6)
	slices.Reverse(b.names) // the first bar is at the top
}

// barGroups draws groups of bars with their intervals and published numbers.
type barGroups struct{ *panel }

// eachBar calls visit for every bar, with its row, series, foot, head, half the width of its interval and its published
// number. Values that are missing are NaN.
func (g barGroups) eachBar(visit func(k, series int, foot, head, half, paper float64)) {
	for k, at := range g.rows {
		row, foot := g.sheet.Rows[at], 0.0
		for i, one := range g.chart.Series {
			head, half, paper := valueAt(row, one.Column), valueAt(row, one.ErrorColumn), valueAt(row, one.PaperColumn)
			if g.chart.Kind == table.Bars {
				visit(k, i, 0, head, half, paper)
				continue
			}
			if math.IsNaN(head) {
				head = 0
			}
			visit(k, i, foot, foot+head, half, paper)
			foot += head
		}
	}
}

// DataRange implements plot.DataRanger. The range includes zero.
func (g barGroups) DataRange() (xmin, xmax, ymin, ymax float64) {
	g.eachBar(func(_, _ int, _, head, half, paper float64) {
		for _, v := range []float64{head, head - half, head + half, paper} {
			if !math.IsNaN(v) {
				ymin, ymax = min(ymin, v), max(ymax, v)
			}
		}
	})
	ymin, ymax = 1.05*ymin, 1.05*ymax
	if ymin == ymax {
		ymax = 1
	}
	xmin, xmax = -0.5, float64(len(g.rows))-0.5
	if g.bars.level {
		return ymin, ymax, xmin, xmax
	}
	return xmin, xmax, ymin, ymax
}

// Plot implements plot.Plotter.
func (g barGroups) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	at := func(k, series int, v float64) vg.Point {
		if g.chart.Kind == table.Stacked {
			series = 0
		}
		across := (vg.Length(series) - vg.Length(g.bars.side-1)/2) * g.bars.thick
		if g.bars.level {
			return vg.Point{X: trX(v), Y: trY(float64(len(g.rows)-1-k)) - across}
		}
		return vg.Point{X: trX(float64(k)) + across, Y: trY(v)}
	}
	half := g.bars.thick / 2
	side := vg.Point{X: half}
	if g.bars.level {
		side = vg.Point{Y: half}
	}
	g.eachBar(func(k, i int, foot, head, spread, paper float64) {
		if !math.IsNaN(head) && head != foot && !g.chart.Series[i].Blank {
			a, b := at(k, i, foot).Sub(side), at(k, i, head).Add(side)
			drawBar(c, g.looks[i], vg.Rectangle{Min: vg.Point{X: min(a.X, b.X), Y: min(a.Y, b.Y)},
				Max: vg.Point{X: max(a.X, b.X), Y: max(a.Y, b.Y)}})
		}
		if !math.IsNaN(head) && !math.IsNaN(spread) {
			drawInterval(c, draw.LineStyle{Color: color.Black, Width: 0.75}, at(k, i, head-spread),
				at(k, i, head+spread), min(half, 3))
		}
	})
	g.eachBar(func(k, i int, _, _, _, paper float64) {
		if !math.IsNaN(paper) {
			drawCross(c, at(k, i, paper))
		}
	})
}

// GlyphBoxes implements plot.GlyphBoxer. A group of bars extends by at most half a unit to both sides.
func (g barGroups) GlyphBoxes(*plot.Plot) []plot.GlyphBox { return nil }

// drawInterval draws an interval as a line with caps at both ends.
func drawInterval(c draw.Canvas, style draw.LineStyle, from, to vg.Point, caps vg.Length) {
	c.StrokeLine2(style, from.X, from.Y, to.X, to.Y)
	for _, end := range []vg.Point{from, to} {
		if from.X == to.X {
			c.StrokeLine2(style, end.X-caps, end.Y, end.X+caps, end.Y)
		} else {
			c.StrokeLine2(style, end.X, end.Y-caps, end.X, end.Y+caps)
		}
	}
}

// drawBar fills a bar and hatches it in white. Each look has a different hatching, so that bars can be distinguished
// without colours.
func drawBar(c draw.Canvas, look int, r vg.Rectangle) {
	c.FillPolygon(colourOf(look), rectanglePath(r.Min.X, r.Min.Y, r.Max.X, r.Max.Y))
	style := draw.LineStyle{Color: color.White, Width: 0.75}
	const gap = 4
	switch look % len(table.Palette) {
	case 1, 4:
		drawHatch(c, style, r, gap, 1)
	case 2, 5:
		drawHatch(c, style, r, gap, -1)
	case 3:
		drawHatch(c, style, r, gap, 1)
		drawHatch(c, style, r, gap, -1)
	}
}

// drawHatch draws parallel lines at 45° through a rectangle. slope selects whether they rise or fall.
func drawHatch(c draw.Canvas, style draw.LineStyle, r vg.Rectangle, gap, slope vg.Length) {
	w, h := r.Max.X-r.Min.X, r.Max.Y-r.Min.Y
	for d := gap - h; d < w; d += gap { // d is where a rising line meets the rectangle's lower edge
		x0, x1 := max(d, 0), min(d+h, w)
		y0, y1 := x0-d, x1-d
		if slope < 0 {
			y0, y1 = h-y0, h-y1
		}
		if x1 > x0 {
			c.StrokeLine2(style, r.Min.X+x0, r.Min.Y+y0, r.Min.X+x1, r.Min.Y+y1)
		}
	}
}
