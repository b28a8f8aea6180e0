package table

import (
	"image/color"
	"slices"
	"strings"
)

// ChartKind is the form in which a chart draws its series, such as lines or bars.
type ChartKind uint8

const (
	Bars    ChartKind = iota // one group of bars per row
	Stacked                  // bars on top of each other
	Steps                    // a staircase over numeric x
	Lines                    // a line over numeric x
	Map                      // the sheet as coloured cells: rows are values of the first column, columns are series
)

// Chart describes a chart that draws columns of its sheet.
type Chart struct {
	Kind           ChartKind
	Title          string
	XTitle, YTitle string
	X              int     // column of the categories, or of x
	ZTitle         string  // for a map: meaning of its colours
	YMax           float64 // for a map the limit of the colours, which then begin at 0; 0 lets the viewer choose
	Empty          string  // for a map: the reason why cells have no number
	Diverging      bool    // for a map: signed numbers, with different colours above and below 0
	Series         []Series
	Outlines       []Outline // for a map
}

// Outline is a line between cells of a map.
type Outline struct {
	Name   string // its meaning
	Dashed bool
	Edges  []Edge
}

// Edge is a piece of an Outline. It is between a cell and the previous cell in the same row or, if Level is set, in the
// same column.
type Edge struct {
	Row, Series int // index in the sheet and in the chart, from 0
	Level       bool
}

// Series is a column of a sheet that a chart draws.
type Series struct {
	Name   string
	Column int
	X      int // column of a separate x; 0 uses the chart's
	// ErrorColumn contains half-widths of error bars; 0 for none, since column 0 never contains them. In a stack, the
	// last series has the total's.
	ErrorColumn int
	// PaperColumn contains published numbers, drawn as crosses; 0 for none. In a stack, the last series has the
	// total's.
	PaperColumn int
	// Blank marks a gap in a stack, which is neither drawn nor named.
	Blank bool
}

// MostSeries is the number of series that can be distinguished in one panel. A chart with more series is split into
// several panels.
const MostSeries = 6

// Palette contains colours that can be distinguished in print and by colour-blind readers. They are taken from Okabe
// and Ito's palette, with darker and lighter colours alternating.
var Palette = [MostSeries]color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff},
	{0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}}

// Panels returns the chart, split into several charts if it has too many series. Series are grouped by the part of
// their names before a comma, or else into equal parts.
func (c *Chart) Panels() []Chart {
	if c.Kind == Map || len(c.Series) <= MostSeries {
		return []Chart{*c}
	}
	var groups [][]Series
	at := map[string]int{}
	for _, one := range c.Series {
		family, _, _ := strings.Cut(one.Name, ", ")
		i, ok := at[family]
		if !ok {
			i = len(groups)
			at[family], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], one)
	}
	if len(groups) == len(c.Series) {
		groups = [][]Series{c.Series}
	}
	var charts []Chart
	for _, group := range groups {
		parts := (len(group) + MostSeries - 1) / MostSeries
		for part := range slices.Chunk(group, (len(group)+parts-1)/parts) {
			one := *c
			one.Series = slices.Clone(part)
			if family, _, cut := strings.Cut(part[0].Name, ", "); cut && len(groups) > 1 {
				one.Title = c.Title + ": " + family
				for i := range one.Series {
					one.Series[i].Name = strings.TrimPrefix(one.Series[i].Name, family+", ")
				}
			}
			charts = append(charts, one)
		}
	}
	return charts
}
