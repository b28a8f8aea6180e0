package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/olafctl/olaf/results/table"
)

// Sizes of a figure and its letters in points. A single panel is as wide as the text; several are placed two abreast.
const (
	oneWidth, oneHeight   vg.Length = 400, 240
	manyWidth, manyHeight vg.Length = 300, 200
	letters               vg.Length = 11
	line                  vg.Length = 15
	gutter                vg.Length = 10
)

// widened is the maximum width of a text in an SVG viewer's font, relative to its width in Liberation Sans.
const widened = 1.15

func textFont() font.Font { return font.Font{Typeface: "Liberation", Variant: "Sans", Size: letters} }

func plainStyle() text.Style {
	return text.Style{Color: color.Black, Font: textFont(), Handler: plot.DefaultTextHandler, YAlign: text.YCenter}
}

func boldStyle() text.Style {
	style := plainStyle()
	style.Font.Weight = 3
	return style
}

// wideText returns the width reserved for a text on one line.
func wideText(style *text.Style, s string) vg.Length { return widened * style.Width(s) }

// wrapText breaks a text at spaces into lines that are no wider than room. Single words may be wider.
func wrapText(style *text.Style, s string, room vg.Length) string {
	var b strings.Builder
	used := ""
	for word := range strings.FieldsSeq(s) {
		switch longer := strings.TrimSpace(used + " " + word); {
		case used == "" || wideText(style, longer) <= room:
			if used != "" {
				b.WriteByte(' ')
			}
			used = longer
		default:
			b.WriteByte('\n')
			used = word
		}
		b.WriteString(word)
	}
	return b.String()
}

// spaced draws texts with several lines. It uses a larger line spacing than gonum, with which letters would touch in
// browsers.
type spaced struct{ text.Handler }

// Draw implements text.Handler.
func (h spaced) Draw(c vg.Canvas, txt string, style text.Style, at vg.Point) {
	const step = 1.2 * letters
	lines := strings.Split(txt, "\n")
	at.Y += vg.Length(len(lines)-1) * step * vg.Length(1+style.YAlign)
	for _, words := range lines {
		h.Handler.Draw(c, words, style, at)
		at.Y -= step
	}
}

func linesIn(s string) vg.Length {
	if s == "" {
		return 0
	}
	return vg.Length(strings.Count(s, "\n") + 1)
}

// laidOut is a figure whose panels have been placed.
type laidOut struct {
	width, height vg.Length
	legend        legend // above all panels; empty if each has its own
	panels        []*panel
	columns       int
}

// panel is a pair of axes with its title, legend and data.
type panel struct {
	sheet  *table.Sheet
	chart  table.Chart
	rows   []int  // rows that have data
	title  string // title, split into lines
	legend legend
	looks  []int // by series
	bars   *barPlan
	axes   vg.Length // height of the axes with their labels
	width  vg.Length // width of the panel
}

// IsWide reports whether a figure has panels side by side and therefore needs the full width of a page.
func IsWide(s *table.Sheet) bool {
	f, err := layOut(s)
	return err == nil && f.columns > 1
}

// layOut plans the figure of a sheet. It has one panel per chart, or several for a chart with too many series.
func layOut(s *table.Sheet) (*laidOut, error) {
	f := new(laidOut)
	for i := range s.Charts {
		for _, chart := range s.Charts[i].Panels() {
			if rows := dataRows(s, &chart); len(rows) > 0 {
				f.panels = append(f.panels, &panel{sheet: s, chart: chart, rows: rows})
			}
		}
	}
	if len(f.panels) == 0 {
		return nil, fmt.Errorf("%w: %q has no data", ErrFigure, s.Name)
	}
	each, height := oneWidth, oneHeight
	if f.columns = 1; len(f.panels) > 1 {
		f.columns, each, height = 2, manyWidth, manyHeight
	}
	f.width = vg.Length(f.columns)*(each+gutter) - gutter
	f.chooseLooks()
	for _, p := range f.panels {
		title := boldStyle()
		p.title = wrapText(&title, p.chart.Title, each-8)
		p.axes, p.width = height, each
		p.planBars(each)
	}
	f.shareLegend(each)
	f.height = f.legend.height
	for r := 0; r < len(f.panels); r += f.columns {
		f.height += f.rowHeight(r)
	}
	return f, nil
}

// rowHeight returns the height of a row of panels. r is the index of the row's first panel.
func (f *laidOut) rowHeight(r int) (h vg.Length) {
	for _, p := range f.row(r) {
		title := linesIn(p.title)*line + p.legend.height + 4
		h = max(h, title+p.axes)
	}
	return h + gutter
}

func (f *laidOut) row(r int) []*panel { return f.panels[r:min(r+f.columns, len(f.panels))] }

// chooseLooks chooses a look for each series. Series with the same name have the same look in all panels, and each
// panel uses the first looks that are free.
func (f *laidOut) chooseLooks() {
	chosen := map[string]int{}
	for _, p := range f.panels {
		if p.chart.Kind == table.Map { // the columns of a map are places, not names
			continue
		}
		used := map[int]bool{}
		for _, one := range p.chart.Series {
			if look, ok := chosen[one.Name]; ok {
				used[look] = true
			}
		}
		for _, one := range p.chart.Series {
			if one.Blank {
				p.looks = append(p.looks, 0)
				continue
			}
			if _, ok := chosen[one.Name]; !ok {
				look := 0
				for used[look] {
					look++
				}
				chosen[one.Name], used[look] = look, true
			}
			p.looks = append(p.looks, chosen[one.Name])
		}
	}
}

// shareLegend creates one legend for the figure if all panels have the same names, and otherwise one legend for each
// panel.
func (f *laidOut) shareLegend(each vg.Length) {
	first, paper := f.panels[0].entries(), false
	shared := len(f.panels) > 1
	for _, p := range f.panels {
		shared = shared && slices.Equal(p.entries(), first)
		paper = paper || p.hasPublished()
	}
	if shared {
		f.legend = newLegend(first, paper, f.width)
		f.legend.scale = f.panels[0]
		return
	}
	for _, p := range f.panels {
		p.legend = newLegend(p.entries(), p.hasPublished(), each)
		p.legend.scale = p
	}
}

// draw draws the figure on a canvas, which must have the planned size.
func (f *laidOut) draw(c draw.Canvas, background color.Color) {
	if background != nil {
		c.FillPolygon(background, rectanglePath(c.Min.X, c.Min.Y, c.Max.X, c.Max.Y))
	}
	top := c.Max.Y
	f.legend.draw(c, c.Min.X, top)
	top -= f.legend.height
	each := (f.width + gutter) / vg.Length(f.columns)
	for r := 0; r < len(f.panels); r += f.columns {
		for i, p := range f.row(r) {
			left := c.Min.X + vg.Length(i)*each
			p.draw(c, left, top, each-gutter)
		}
		top -= f.rowHeight(r)
	}
}

// draw draws the panel. Its title and legend are above the axes, so that no text covers data.
func (p *panel) draw(c draw.Canvas, left, top, width vg.Length) {
	title := boldStyle()
	for words := range strings.Lines(p.title) {
		c.FillText(title, vg.Point{X: left + 4, Y: top - line/2}, strings.TrimSpace(words))
		top -= line
	}
	p.legend.draw(c, left, top)
	top -= p.legend.height + 4
	area := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: left + 4, Y: top - p.axes + 4},
		Max: vg.Point{X: left + width - 8, Y: top}}}
	axes := p.makePlot(width)
	upright := plainStyle()
	upright.XAlign, upright.Rotation = text.XCenter, math.Pi/2
	y := wrapText(&upright, axes.Y.Label.Text, p.axes-line*(linesIn(axes.X.Label.Text)+2))
	axes.Y.Label.Text = ""
	area.Min.X += linesIn(y)*line + 5
	data := axes.DataCanvas(area)
	middle := data.Center().Y
	for words := range strings.Lines(y) {
		c.FillText(upright, vg.Point{X: left + 4 + line/2, Y: middle}, strings.TrimSpace(words))
		left += line
	}
	axes.Draw(area)
}
