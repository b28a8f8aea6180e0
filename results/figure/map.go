package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/olafctl/olaf/results/table"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of a map go from light to dark, so that they keep their order in grey; what is not known stays empty.
var lightest, darkest = color.RGBA{0xf2, 0xf6, 0xfa, 0xff}, color.RGBA{0x00, 0x33, 0x66, 0xff}

// scaleSteps are the colours that a map has.
const scaleSteps = 24

// addCells draws a sheet as a map: its rows upwards from the first, its columns to the right.
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
	out.X.Tick.Marker, out.Y.Tick.Marker = someOf(columns), someOf(rows)
	out.X.Padding, out.Y.Padding = 0, 0
}

// someOf marks about six places by their names, the first among them.
func someOf(names []string) plot.ConstantTicks {
	step := max(1, int(roundStep(float64(len(names))/6)))
	var marks []plot.Tick
	for i := 0; i < len(names); i += step {
		marks = append(marks, plot.Tick{Value: float64(i), Label: names[i]})
	}
	return marks
}

// cellMap draws the cells of a map.
type cellMap struct{ *panel }

// DataRange implements plot.DataRanger: a cell's middle is at its number.
func (m cellMap) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(len(m.chart.Series)) - 0.5, -0.5, float64(len(m.rows)) - 0.5
}

// Plot implements plot.Plotter. Cells of one colour side by side are one rectangle.
func (m cellMap) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	low, high := m.scale()
	for i := range m.rows {
		steps := make([]int, len(m.chart.Series))
		for k := range steps {
			steps[k] = m.step(i, k, low, high)
		}
		for from := 0; from < len(steps); {
			to := from + 1
			for to < len(steps) && steps[to] == steps[from] {
				to++
			}
			if steps[from] >= 0 {
				x0, x1 := trX(float64(from)-0.5), trX(float64(to)-0.5)
				c.FillPolygon(stepColour(steps[from]), rectangle(x0, trY(float64(i)-0.5), x1, trY(float64(i)+0.5)))
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

// drawOutline draws a piece of an outline; white beside it keeps it visible on dark cells.
func drawOutline(c draw.Canvas, dashed bool, x0, y0, x1, y1 vg.Length) {
	c.StrokeLine2(draw.LineStyle{Color: color.White, Width: 4}, x0, y0, x1, y1)
	style := draw.LineStyle{Color: color.Black, Width: 2}
	if dashed {
		style.Width, style.Dashes = 1.5, []vg.Length{4, 3}
	}
	c.StrokeLine2(style, x0, y0, x1, y1)
}

// step is the colour of a cell; -1 of one that has no number.
func (p *panel) step(row, column int, low, high float64) int {
	v, ok := numberAt(p.sheet.Rows[p.rows[row]], p.chart.Series[column].Column)
	if !ok {
		return -1
	}
	if high <= low {
		return 0
	}
	return min(max(int((v-low)/(high-low)*scaleSteps), 0), scaleSteps-1)
}

// scale is what the lightest and the darkest colour stand for.
func (p *panel) scale() (low, high float64) {
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
	return low, high
}

// scaleName says what the colours stand for.
func (p *panel) scaleName() string {
	low, high := p.scale()
	any := table.Column{Format: table.General}
	name := p.chart.ZTitle
	missing := slices.ContainsFunc(p.rows, func(k int) bool {
		return slices.ContainsFunc(p.chart.Series, func(one table.Series) bool {
			_, ok := numberAt(p.sheet.Rows[k], one.Column)
			return !ok
		})
	})
	if missing {
		name += ", empty where there is none"
	}
	return fmt.Sprintf("%s to %s: %s", any.Pretty(table.N(low)), any.Pretty(table.N(high)), name)
}

func stepColour(step int) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(int(a) + (int(b)-int(a))*step/(scaleSteps-1)) }
	return color.RGBA{mix(lightest.R, darkest.R), mix(lightest.G, darkest.G), mix(lightest.B, darkest.B), 0xff}
}

// drawScale draws all colours of a map, from the lightest.
func drawScale(c draw.Canvas, r vg.Rectangle) {
	wide := (r.Max.X - r.Min.X) / scaleSteps
	for i := range scaleSteps {
		x := r.Min.X + vg.Length(i)*wide
		c.FillPolygon(stepColour(i), rectangle(x, r.Min.Y, x+wide, r.Max.Y))
	}
}
