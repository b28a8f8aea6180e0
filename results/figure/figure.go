// Package figure draws the charts of tables as SVG and PNG. It reads the same rows that the workbook's charts read.
package figure

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results/table"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ErrFigure is the kind of every chart that can't be drawn.
var ErrFigure = errors.New("figure: the chart can't be drawn")

// Size of a figure and of its letters, in points.
const (
	width      vg.Length = 400
	height     vg.Length = 270
	letters    vg.Length = 11
	legendLine vg.Length = 16
	pngDPI               = 192
)

// widened is how much wider than in Liberation Sans a text may come out in the font that a reader of an SVG has instead.
const widened = 1.15

// palette tells series apart in print and for colour-blind readers (from Okabe and Ito's set, without its yellow, with Tol's olive).
var palette = []color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x88, 0x88, 0x88, 0xff}, {0x99, 0x99, 0x33, 0xff}}

var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}}

func colourOf(i int) color.RGBA { return palette[i%len(palette)] }

func lineOf(i int) draw.LineStyle {
	return draw.LineStyle{Color: colourOf(i), Width: vg.Points(1.75), Dashes: dashes[i%len(dashes)]}
}

// SVG writes chart c of s as an SVG element to be put into a page: it scales with its width, has no background, and its
// black is the page's text colour. The chart's title names it for screen readers.
func SVG(w io.Writer, s *table.Sheet, c *table.Chart) error {
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	if err := drawOn(draw.New(canvas), s, c, nil); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, inline(b.String(), c.Title))
	return err
}

// SVGFile writes chart c of s as an SVG file of its own, on white.
func SVGFile(w io.Writer, s *table.Sheet, c *table.Chart) error {
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	if err := drawOn(draw.New(canvas), s, c, color.White); err != nil {
		return err
	}
	_, err := canvas.WriteTo(w)
	return err
}

// PNG writes chart c of s as a picture, on white.
func PNG(w io.Writer, s *table.Sheet, c *table.Chart) error {
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI))
	if err := drawOn(draw.New(canvas), s, c, color.White); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

var (
	svgSize   = regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)
	svgFamily = regexp.MustCompile(`font-family:[^;"]*`)
)

// inline makes an SVG file an element of a page.
func inline(svg, title string) string {
	svg = svg[strings.Index(svg, "<svg"):]
	svg = svgSize.ReplaceAllLiteralString(svg, `<svg role="img" fill="currentColor" aria-label="`+escaped(title)+`"`)
	svg = strings.ReplaceAll(svg, "#000000", "currentColor")
	return svgFamily.ReplaceAllLiteralString(svg, "font-family:inherit")
}

func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

// drawOn draws the legend above the plot, so that it never lies over data.
func drawOn(c draw.Canvas, s *table.Sheet, chart *table.Chart, background color.Color) error {
	if len(s.Rows) == 0 || len(chart.Series) == 0 {
		return fmt.Errorf("%w: %q has no data", ErrFigure, chart.Title)
	}
	if background != nil {
		c.FillPolygon(background, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
	}
	p := newPlot(chart)
	if err := addSeries(p, s, chart); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrFigure, chart.Title, err)
	}
	inUnits(&p.X)
	inUnits(&p.Y)
	used := drawLegend(c, chart)
	p.Draw(draw.Crop(c, 0, -6, 4, -used))
	return nil
}

func newPlot(chart *table.Chart) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = chart.XTitle, chart.YTitle
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font = face()
	}
	p.X.Label.Padding, p.Y.Label.Padding = 4, 4
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{1}, ticks{1}
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color, grid.Horizontal.Width = color.NRGBA{0x80, 0x80, 0x80, 0x50}, vg.Points(0.5)
	p.Add(grid)
	return p
}

func face() font.Font { return font.Font{Typeface: "Liberation", Variant: "Sans", Size: letters} }

// drawLegend writes swatches and names in lines from the top left and returns the height it took.
func drawLegend(c draw.Canvas, chart *table.Chart) vg.Length {
	style := text.Style{Color: color.Black, Font: face(), Handler: plot.DefaultTextHandler, YAlign: text.YCenter}
	x, y := c.Min.X+4, c.Max.Y-legendLine/2
	bars := chart.Kind == table.Bars || chart.Kind == table.Stacked
	swatch, gap := vg.Length(18), vg.Length(10)
	if bars {
		swatch = 12 // a line has to show its dashes, a bar its colour alone
	}
	for i, series := range chart.Series {
		needed := swatch + 4 + widened*style.Width(series.Name)
		if i > 0 && x+needed > c.Max.X {
			x, y = c.Min.X+4, y-legendLine
		}
		if bars {
			c.FillPolygon(colourOf(i), []vg.Point{{X: x, Y: y - 4}, {X: x + swatch, Y: y - 4}, {X: x + swatch, Y: y + 4}, {X: x, Y: y + 4}})
		} else {
			c.StrokeLine2(lineOf(i), x, y, x+swatch, y)
		}
		c.FillText(style, vg.Point{X: x + swatch + 4, Y: y}, series.Name)
		x += needed + gap
	}
	return c.Max.Y - y + legendLine/2 + 4
}

func addSeries(p *plot.Plot, s *table.Sheet, chart *table.Chart) error {
	switch chart.Kind {
	case table.Bars, table.Stacked:
		return addBars(p, s, chart)
	}
	p.X.Min, p.Y.Min = 0, 0
	for i, series := range chart.Series {
		x := chart.X
		if series.X > 0 {
			x = series.X
		}
		points := pointsOf(s, x, series.Column)
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = lineOf(i)
		if chart.Kind == table.Steps {
			line.StepStyle = plotter.PostStep
		} else if series.ErrorColumn > 0 {
			if err := addBand(p, s, x, series, colourOf(i)); err != nil {
				return err
			}
		}
		p.Add(line)
	}
	p.Y.Min = min(p.Y.Min, 0)
	if chart.YMax > 0 {
		p.Y.Max = chart.YMax
	}
	return nil
}

// pointsOf are the rows where both columns have a number.
func pointsOf(s *table.Sheet, x, y int) (points plotter.XYs) {
	for _, row := range s.Rows {
		if row[x].Kind == table.Number && row[y].Kind == table.Number {
			points = append(points, plotter.XY{X: row[x].Number, Y: row[y].Number})
		}
	}
	return points
}

func addBars(p *plot.Plot, s *table.Sheet, chart *table.Chart) error {
	groups := 1
	if chart.Kind == table.Bars {
		groups = len(chart.Series)
	}
	room := (width - 70) / vg.Length(len(s.Rows))
	bar := min(room*0.8/vg.Length(groups), 60)
	var below *plotter.BarChart
	for i, series := range chart.Series {
		values := make(plotter.Values, len(s.Rows))
		for k, row := range s.Rows {
			values[k] = row[series.Column].Number
		}
		bars, err := plotter.NewBarChart(values, bar)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = colourOf(i), 0
		if chart.Kind == table.Stacked {
			if below != nil {
				bars.StackOn(below)
			}
			below = bars
		} else {
			bars.Offset = bar * (vg.Length(i) - vg.Length(groups-1)/2)
		}
		p.Add(bars)
		if series.ErrorColumn > 0 && chart.Kind == table.Bars {
			if err := addErrors(p, s, series, bars.Offset); err != nil {
				return err
			}
		}
	}
	names := make([]string, len(s.Rows))
	every := (len(names) + 19) / 20
	for k, row := range s.Rows {
		if k%every == 0 {
			names[k] = s.Columns[chart.X].Pretty(row[chart.X])
		}
	}
	p.NominalX(names...)
	p.X.Tick.Label.Font = face()
	fitNames(p, names, room*vg.Length(every))
	p.X.Min, p.X.Max = -0.6, float64(len(names))-0.4
	p.Y.Min, p.Y.Max = min(p.Y.Min, 0), p.Y.Max*1.04
	return nil
}

// fitNames keeps the names below bars apart: on lines of their words where they are wider than their room, upright where
// the words are too.
func fitNames(p *plot.Plot, names []string, room vg.Length) {
	label := &p.X.Tick.Label
	widest := func() (w vg.Length) {
		for _, name := range names {
			for line := range strings.Lines(name) {
				w = max(w, widened*label.Width(strings.TrimSpace(line)))
			}
		}
		return w + 2
	}
	if widest() <= room {
		return
	}
	for i, name := range names {
		names[i] = strings.ReplaceAll(name, " ", "\n")
	}
	if widest() > room {
		for i, name := range names {
			names[i] = strings.ReplaceAll(name, "\n", " ")
		}
		label.Rotation, label.XAlign, label.YAlign = math.Pi/2, text.XRight, text.YCenter
	}
	p.NominalX(names...)
}

// addBand shades a line's error to both sides, where there is one.
func addBand(p *plot.Plot, s *table.Sheet, x int, series table.Series, colour color.RGBA) error {
	var upper, lower plotter.XYs
	for _, row := range s.Rows {
		at, mean, half := row[x], row[series.Column], row[series.ErrorColumn]
		if at.Kind == table.Number && mean.Kind == table.Number && half.Kind == table.Number {
			upper = append(upper, plotter.XY{X: at.Number, Y: mean.Number + half.Number})
			lower = append(lower, plotter.XY{X: at.Number, Y: mean.Number - half.Number})
		}
	}
	if len(upper) < 2 {
		return nil
	}
	slices.Reverse(lower)
	band, err := plotter.NewPolygon(append(upper, lower...))
	if err != nil {
		return err
	}
	band.Color, band.LineStyle.Width = color.NRGBA{colour.R, colour.G, colour.B, 0x30}, 0
	p.Add(band)
	return nil
}

// barErrors are bars of error around a series, at its bars.
type barErrors struct {
	plotter.XYs
	plotter.YErrors
}

func addErrors(p *plot.Plot, s *table.Sheet, series table.Series, offset vg.Length) error {
	var e barErrors
	for k, row := range s.Rows {
		if half := row[series.ErrorColumn]; half.Kind == table.Number {
			e.XYs = append(e.XYs, plotter.XY{X: float64(k), Y: row[series.Column].Number})
			e.YErrors = append(e.YErrors, struct{ Low, High float64 }{half.Number, half.Number})
		}
	}
	if len(e.XYs) == 0 {
		return nil
	}
	bars, err := plotter.NewYErrorBars(e)
	if err != nil {
		return err
	}
	bars.LineStyle.Width, bars.CapWidth = vg.Points(0.75), 3
	p.Add(shifted{bars, offset})
	return nil
}

// shifted draws a plotter to the side of where its data says, as bars of a group are.
type shifted struct {
	*plotter.YErrorBars
	by vg.Length
}

// Plot draws it.
func (s shifted) Plot(c draw.Canvas, p *plot.Plot) {
	c.Push()
	c.Translate(vg.Point{X: s.by})
	s.YErrorBars.Plot(c, p)
	c.Pop()
}
