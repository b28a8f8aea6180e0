package figure

import (
	"cmp"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/results/table"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// lightest, darkest and above are the ends of a map's colour scale. Colours go from light to dark, so that their order
// is visible in grey, and missing values stay empty. A diverging map is light at 0, blue below 0 and brown above 0.
var lightest, darkest, above = color.RGBA{0xf2, 0xf6, 0xfa, 0xff}, color.RGBA{0x00, 0x33, 0x66, 0xff},
	color.RGBA{0x8c, 0x3a, 0x00, 0xff}

// scaleSteps is the number of colours in a map.
const scaleSteps = 24

// addCells adds a sheet to the plot as a map. Rows of the sheet go upwards and columns to the right.
func (p *panel) addCells(out *plot.Plot) {
	out.Add(cellMap{p})
	rows := make([]string, len(p.rows))
	for i, k := range p.rows {
		rows[i] = p.sheet.Columns[p.chart.X].Pretty(p.sheet.Rows[k][p.chart.X])
	}
	columns := make([]string, len(p.chart.Series))
	for i := range p.chart.Series {
		columns[i] = p.chart.Series[i].Name
	}
	out.X.Label.Text = shareUnit(columns, out.X.Label.Text)
	out.Y.Label.Text = shareUnit(rows, out.Y.Label.Text)
	style := plainStyle()
	widest := vg.Length(0)
	for _, name := range columns {
		widest = max(widest, wideText(&style, name))
	}
	const used = 0.7 // share of a panel taken by the axes themselves
	out.X.Tick.Marker = someOf(columns, int(used*p.width/(widest+6)))
	out.Y.Tick.Marker = someOf(rows, int(used*p.axes/line))
	out.X.Padding, out.Y.Padding = 0, 0
}

var quantity = regexp.MustCompile(`^(-?[0-9.]+)([^0-9.]+)$`)

// shareUnit removes a unit that all names have and returns the axis title with this unit. If the names have different
// units, it returns the title unchanged.
func shareUnit(names []string, title string) string {
	unit := ""
	for i, name := range names {
		parts := quantity.FindStringSubmatch(name)
		if parts == nil || i > 0 && parts[2] != unit {
			return title
		}
		unit = parts[2]
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, unit)
	}
	return title + " [" + strings.TrimSpace(unit) + "]"
}

// someOf returns ticks labelled with names. It begins with the first name. If there is not enough room for all, only
// names at regular intervals have a tick.
func someOf(names []string, room int) plot.ConstantTicks {
	step := 1
	if len(names) > room {
		step = max(1, int(roundStep(float64(len(names))/float64(max(1, min(room, 6))))))
	}
	var marks []plot.Tick
	for i := 0; i < len(names); i += step {
		marks = append(marks, plot.Tick{Value: float64(i), Label: names[i]})
	}
	return marks
}

// cellMap draws the cells of a map as coloured rectangles.
type cellMap struct{ *panel }

// DataRange implements plot.DataRanger. The centre of a cell is at its column and row index.
func (m cellMap) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(len(m.chart.Series)) - 0.5, -0.5, float64(len(m.rows)) - 0.5
}

// Plot implements plot.Plotter. It draws adjacent cells with the same colour as one rectangle.
func (m cellMap) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	low, high := m.scaleRange()
	for i := range m.rows {
		steps := make([]int, len(m.chart.Series))
		for k := range steps {
			steps[k] = m.stepOf(i, k, low, high)
		}
		for from := 0; from < len(steps); {
			to := from + 1
			for to < len(steps) && steps[to] == steps[from] {
				to++
			}
			if steps[from] >= 0 {
				x0, x1 := trX(float64(from)-0.5), trX(float64(to)-0.5)
				c.FillPolygon(m.colourAt(steps[from]), rectanglePath(x0, trY(float64(i)-0.5), x1, trY(float64(i)+0.5)))
			}
			from = to
		}
	}
	for i := range m.chart.Outlines {
		o := &m.chart.Outlines[i]
		for _, e := range o.Edges {
			row, x, y := slices.Index(m.rows, e.Row), float64(e.Series)-0.5, 0.0
			if row < 0 {
				continue
			}
			y = float64(row) - 0.5
			toX, toY := x, y+1
			if e.Level {
				toX, toY = x+1, y
			}
			drawOutline(c, o.Dashed, trX(x), trY(y), trX(toX), trY(toY))
		}
	}
}

// drawOutline draws a line of an outline. The line has a white border, so that it is visible on dark cells.
func drawOutline(c draw.Canvas, dashed bool, x0, y0, x1, y1 vg.Length) {
	c.StrokeLine2(draw.LineStyle{Color: color.White, Width: 4}, x0, y0, x1, y1)
	style := draw.LineStyle{Color: color.Black, Width: 2}
	if dashed {
		style.Width, style.Dashes = 1.5, []vg.Length{4, 3}
	}
	c.StrokeLine2(style, x0, y0, x1, y1)
}

// stepOf returns the index of a cell's colour, or -1 if the cell has no number.
func (p *panel) stepOf(row, column int, low, high float64) int {
	v, ok := numberAt(p.sheet.Rows[p.rows[row]], p.chart.Series[column].Column)
	if !ok {
		return -1
	}
	if high <= low {
		return 0
	}
	return min(max(int((v-low)/(high-low)*scaleSteps), 0), scaleSteps-1)
}

// scaleRange returns the values that have the lightest and the darkest colour.
func (p *panel) scaleRange() (low, high float64) {
	if p.chart.YMax > 0 {
		return 0, p.chart.YMax
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, k := range p.rows {
		for i := range p.chart.Series {
			if v, ok := numberAt(p.sheet.Rows[k], p.chart.Series[i].Column); ok {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if p.chart.Diverging {
		high = max(math.Abs(low), math.Abs(high))
		low = -high
	}
	return low, high
}

// scaleName returns the text that describes the colour scale.
func (p *panel) scaleName() string {
	low, high := p.scaleRange()
	name := p.chart.ZTitle
	missing := slices.ContainsFunc(p.rows, func(k int) bool {
		return slices.ContainsFunc(p.chart.Series, func(one table.Series) bool {
			_, ok := numberAt(p.sheet.Rows[k], one.Column)
			return !ok
		})
	})
	if missing {
		name += "; empty: " + cmp.Or(p.chart.Empty, "none")
	}
	middle := " to "
	if p.chart.Diverging {
		middle = " … 0 … "
	}
	return roundEnd(low) + middle + roundEnd(high) + ": " + name
}

// roundEnd returns an end of a colour scale as text with three digits.
func roundEnd(v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'g', 3, 64), "-", "−", 1)
}

// colourAt returns the colour with the given index in the panel's scale.
func (p *panel) colourAt(step int) color.RGBA {
	if !p.chart.Diverging {
		return mixColours(lightest, darkest, step, scaleSteps-1)
	}
	const half = scaleSteps / 2
	if step < half {
		return mixColours(lightest, darkest, half-step, half)
	}
	return mixColours(lightest, above, step-half+1, half)
}

// mixColours returns a mixture of two colours. It is from if step is 0 and to if step equals steps.
func mixColours(from, to color.RGBA, step, steps int) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(int(a) + (int(b)-int(a))*step/steps) }
	return color.RGBA{mix(from.R, to.R), mix(from.G, to.G), mix(from.B, to.B), 0xff}
}

// drawScale draws all colours of a map, starting with the lowest value, and marks 0 on a diverging scale.
func (l *legend) drawScale(c draw.Canvas, r vg.Rectangle) {
	wide := (r.Max.X - r.Min.X) / scaleSteps
	for i := range scaleSteps {
		x := r.Min.X + vg.Length(i)*wide
		c.FillPolygon(l.scale.colourAt(i), rectanglePath(x, r.Min.Y, x+wide, r.Max.Y))
	}
	if l.scale.chart.Diverging {
		middle := (r.Min.X + r.Max.X) / 2
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: 0.5}, middle, r.Min.Y-1, middle, r.Max.Y+1)
	}
}
