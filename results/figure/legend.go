package figure

import (
	"image/color"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results/table"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Dashes and markers that distinguish series without colours.
var (
	dashes  = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}, {11, 3}, {5, 2, 2, 2, 2, 2}}
	markers = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{},
		draw.BoxGlyph{}, draw.TriangleGlyph{}}
)

func colourOf(look int) color.RGBA { return table.Palette[look%len(table.Palette)] }

func lineOf(look int) draw.LineStyle {
	return draw.LineStyle{Color: colourOf(look), Width: vg.Points(1.5), Dashes: dashes[look%len(dashes)]}
}

func markerOf(look int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: colourOf(look), Radius: 3, Shape: markers[look%len(markers)]}
}

// drawCross draws a cross for a published number. The cross has a white border, so that it is visible on bars.
func drawCross(c draw.Canvas, at vg.Point) {
	for _, style := range []draw.LineStyle{{Color: color.White, Width: 3.25}, {Color: color.Black, Width: 1.5}} {
		for _, d := range []vg.Length{-3.5, 3.5} {
			c.StrokeLine2(style, at.X-3.5, at.Y-d, at.X+3.5, at.Y+d)
		}
	}
}

// entry is a name in a legend, with a look. The look is the index of a series' look, or one of the constants below.
type entry struct {
	name string
	look int
	bar  bool // not a line
	mark bool // the line has markers
}

const (
	paperLook   = -1
	scaleLook   = -2 // for the colours of a map
	outlineLook = -3
	dashedLook  = -4 // for the line of an outline
	paperName   = "paper"
)

// legend is a list of names, arranged in lines.
type legend struct {
	entries []entry
	places  []vg.Point // left ends of the entries, relative to the legend's top left corner
	height  vg.Length
	scale   *panel // panel whose colours are explained; nil if there is no map
}

func (e *entry) swatch() vg.Length {
	if e.look == scaleLook {
		return 72
	}
	if e.bar || e.look == paperLook {
		return 12
	}
	return 22 // long enough to show a line's dashes
}

// newLegend arranges names in lines. A name that is wider than the page continues on the next line.
func newLegend(entries []entry, paper bool, width vg.Length) legend {
	if paper {
		entries = append(entries, entry{name: paperName, look: paperLook})
	}
	style := plainStyle()
	l := legend{entries: entries}
	x, y := vg.Length(4), line/2
	for i := range entries {
		e := &entries[i]
		needed := e.swatch() + 4 + wideText(&style, e.name)
		if i > 0 && x+needed > width {
			x, y = 4, y+line
		}
		l.places = append(l.places, vg.Point{X: x, Y: -y})
		e.name = wrapText(&style, e.name, width-x-e.swatch()-4)
		y += (linesIn(e.name) - 1) * line
		x += needed + 10
	}
	if len(entries) > 0 {
		l.height = y + line/2 + 3
	}
	return l
}

func (l *legend) draw(c draw.Canvas, left, top vg.Length) {
	for i := range l.entries {
		e := &l.entries[i]
		x, y, wide := left+l.places[i].X, top+l.places[i].Y, e.swatch()
		switch {
		case e.look == scaleLook:
			l.drawScale(c, vg.Rectangle{Min: vg.Point{X: x, Y: y - 4}, Max: vg.Point{X: x + wide, Y: y + 4}})
		case e.look == outlineLook || e.look == dashedLook:
			drawOutline(c, e.look == dashedLook, x, y, x+wide, y)
		case e.look == paperLook:
			drawCross(c, vg.Point{X: x + wide/2, Y: y})
		case e.bar:
			drawBar(c, e.look, vg.Rectangle{Min: vg.Point{X: x, Y: y - 4}, Max: vg.Point{X: x + wide, Y: y + 4}})
		default:
			c.StrokeLine2(lineOf(e.look), x, y, x+wide, y)
			if e.mark {
				c.DrawGlyph(markerOf(e.look), vg.Point{X: x + wide/2, Y: y})
			}
		}
		for k, words := range strings.Split(e.name, "\n") {
			c.FillText(plainStyle(), vg.Point{X: x + wide + 4, Y: y - vg.Length(k)*line}, words)
		}
	}
}

// entries returns legend entries for the series in a panel.
func (p *panel) entries() (list []entry) {
	if p.chart.Kind == table.Map {
		list = []entry{{name: p.scaleName(), look: scaleLook}}
		for _, o := range p.chart.Outlines {
			look := outlineLook
			if o.Dashed {
				look = dashedLook
			}
			list = append(list, entry{name: o.Name, look: look})
		}
		return list
	}
	for i, one := range p.chart.Series {
		if one.Blank {
			continue
		}
		list = append(list, entry{name: one.Name, look: p.looks[i], bar: p.bars != nil, mark: p.bars == nil &&
			p.hasMarkers()})
	}
	return list
}

// hasPublished reports whether a panel shows any published number.
func (p *panel) hasPublished() bool {
	return slices.ContainsFunc(p.rows, func(k int) bool {
		return slices.ContainsFunc(p.chart.Series, func(one table.Series) bool {
			_, there := numberAt(p.sheet.Rows[k], one.PaperColumn)
			return there
		})
	})
}
