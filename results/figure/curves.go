package figure

import (
	"cmp"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/olafctl/olaf/results/table"
)

// fewPoints is the maximum number of points with which a curve has a marker and an interval at each point. With more
// points, the intervals are drawn as a band.
const fewPoints = 24

// makePlot returns a plot with the panel's axes and content.
func (p *panel) makePlot(width vg.Length) *plot.Plot {
	out := newPlot(&p.chart)
	switch {
	case p.bars != nil:
		p.addBars(out)
	case p.chart.Kind == table.Map:
		p.addCells(out)
	default:
		p.addCurves(out)
	}
	inUnits(&out.X)
	inUnits(&out.Y)
	out.X.Label.Text = wrapText(&out.X.Label.TextStyle, out.X.Label.Text, width-aside)
	return out
}

func newPlot(chart *table.Chart) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = chart.XTitle, chart.YTitle
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = textFont(), textFont()
		axis.Tick.Label.Handler = spaced{plot.DefaultTextHandler}
		axis.Label.Padding, axis.Tick.Marker, axis.Tick.Length = 4, ticks{1}, 4
	}
	return p
}

// addGrid adds grid lines that cross the axis of values. level is true if this axis is horizontal.
func addGrid(p *plot.Plot, level bool) {
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Horizontal.Width = color.NRGBA{0x80, 0x80, 0x80, 0x50}, vg.Points(0.5)
	grid.Vertical = grid.Horizontal
	if level {
		grid.Horizontal.Width = 0
	} else {
		grid.Vertical.Width = 0
	}
	p.Add(grid)
}

func (p *panel) addBars(out *plot.Plot) {
	addGrid(out, p.bars.level)
	out.Add(barGroups{p})
	names, values := &out.X, &out.Y
	if p.bars.level {
		names, values = values, names
		out.X.Label.Text, out.Y.Label.Text = p.chart.YTitle, p.chart.XTitle
	}
	var marks []plot.Tick
	for i, name := range p.bars.names {
		marks = append(marks, plot.Tick{Value: float64(i), Label: name})
	}
	// The ticks are only set to keep names off the axis. Their alpha is 1 of 255, because gonum writes 0 as an invalid
	// colour.
	names.Tick.Marker, names.Tick.Color = plot.ConstantTicks(marks), color.NRGBA{A: 1}
	names.Padding, values.Padding = 0, 0
	if p.bars.level {
		names.Tick.Label.YAlign = -0.5
		names.Tick.Label.XAlign = -1
	}
	if p.chart.YMax > 0 {
		values.Max = p.chart.YMax
	}
}

func (p *panel) addCurves(out *plot.Plot) {
	addGrid(out, false)
	for i := range p.chart.Series {
		out.Add(&curve{p, i})
	}
	out.X.Min, out.X.Max = axisRange(out.X.Min, out.X.Max, p.chart.Kind == table.Steps)
	out.Y.Min, out.Y.Max = axisRange(out.Y.Min, out.Y.Max, false)
	if p.chart.YMax > 0 {
		out.Y.Min, out.Y.Max = min(out.Y.Min, 0), p.chart.YMax
	}
}

// axisRange returns the range of an axis for values between low and high. The range starts at zero unless all values
// are far from zero.
func axisRange(low, high float64, exact bool) (float64, float64) {
	switch {
	case !(low <= high) || math.IsInf(low, 0) || math.IsInf(high, 0):
		return 0, 1
	case low >= 0 && low <= 0.7*high || low == high && low >= 0:
		low = 0
	case !exact:
		low -= 0.05 * (high - low)
	}
	if high <= low {
		high = low + 1
	}
	if !exact {
		high += 0.03 * (high - low)
	}
	return low, high
}

// hasMarkers reports whether the panel's curves have a marker at every point.
func (p *panel) hasMarkers() bool { return p.chart.Kind == table.Lines && len(p.rows) <= fewPoints }

// curve draws a series as a line over numbers, with markers, intervals or a band, and published points.
type curve struct {
	*panel
	series int
}

// point is a point of a curve. Values that are missing are NaN.
type point struct{ x, y, half, paper float64 }

func (c *curve) points() (list []point) {
	one := &c.chart.Series[c.series]
	x := cmp.Or(one.X, c.chart.X)
	for _, k := range c.rows {
		row := c.sheet.Rows[k]
		if row[x].Kind != table.Number {
			continue
		}
		p := point{row[x].Number, valueAt(row, one.Column), valueAt(row, one.ErrorColumn), valueAt(row, one.PaperColumn)}
		if math.IsNaN(p.y) {
			p.half = math.NaN()
		}
		if !math.IsNaN(p.y) || !math.IsNaN(p.paper) {
			list = append(list, p)
		}
	}
	return list
}

// DataRange implements plot.DataRanger.
func (c *curve) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, p := range c.points() {
		xmin, xmax = min(xmin, p.x), max(xmax, p.x)
		for _, v := range []float64{p.y, p.y - p.half, p.y + p.half, p.paper} {
			if !math.IsNaN(v) {
				ymin, ymax = min(ymin, v), max(ymax, v)
			}
		}
	}
	return xmin, xmax, ymin, ymax
}

// Plot implements plot.Plotter.
func (c *curve) Plot(canvas draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&canvas)
	at := func(x, y float64) vg.Point { return vg.Point{X: trX(x), Y: trY(min(y, p.Y.Max))} }
	look := c.looks[c.series]
	var line, upper, lower []vg.Point
	points := c.points()
	for _, one := range points {
		if math.IsNaN(one.y) {
			continue
		}
		if c.chart.Kind == table.Steps && len(line) > 0 {
			line = append(line, vg.Point{X: trX(one.x), Y: line[len(line)-1].Y})
		}
		line = append(line, at(one.x, one.y))
		if !math.IsNaN(one.half) {
			upper, lower = append(upper, at(one.x, one.y+one.half)), append(lower, at(one.x, one.y-one.half))
		}
	}
	c.drawSpread(canvas, upper, lower)
	if len(line) > 1 {
		canvas.StrokeLines(lineOf(look), line)
	}
	c.drawMarkers(canvas, line)
	for _, one := range points {
		if !math.IsNaN(one.paper) {
			drawCross(canvas, at(one.x, one.paper))
		}
	}
}

// drawSpread draws the intervals of a curve. They are separate bars if there are few points, and otherwise a band.
func (c *curve) drawSpread(canvas draw.Canvas, upper, lower []vg.Point) {
	colour := colourOf(c.looks[c.series])
	if len(c.rows) <= fewPoints {
		for i := range upper {
			drawInterval(canvas, draw.LineStyle{Color: colour, Width: 0.75}, lower[i], upper[i], 2.5)
		}
		return
	}
	if len(upper) < 2 {
		return
	}
	for i := len(lower) - 1; i >= 0; i-- {
		upper = append(upper, lower[i])
	}
	canvas.FillPolygon(color.NRGBA{colour.R, colour.G, colour.B, 0x30}, upper)
}

// drawMarkers draws a marker on every point if there are few points.
func (c *curve) drawMarkers(canvas draw.Canvas, line []vg.Point) {
	if !c.hasMarkers() {
		return
	}
	for _, at := range line {
		canvas.DrawGlyph(markerOf(c.looks[c.series]), at)
	}
}

// GlyphBoxes implements plot.GlyphBoxer, so that markers at the edge of the plot are not cut.
func (c *curve) GlyphBoxes(p *plot.Plot) (boxes []plot.GlyphBox) {
	if !c.hasMarkers() {
		return nil
	}
	for _, one := range c.points() {
		for _, y := range []float64{one.y, one.paper} {
			if !math.IsNaN(y) {
				boxes = append(boxes, plot.GlyphBox{X: p.X.Norm(one.x), Y: p.Y.Norm(y),
					Rectangle: vg.Rectangle{Min: vg.Point{X: -4, Y: -4}, Max: vg.Point{X: 4, Y: 4}}})
			}
		}
	}
	return boxes
}
