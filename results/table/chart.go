package table

import (
	"image/color"
	"slices"
	"strings"
)

// ChartKind is how a chart draws its series.
type ChartKind uint8

const (
	Bars    ChartKind = iota // a group of bars per row
	Stacked                  // bars on top of each other
	Steps                    // a staircase over numeric x
	Lines                    // a line over numeric x
	Map                      // the sheet as cells of colour: a row for each value of the first column, a series for each column
)

// Chart draws columns of its sheet.
type Chart struct {
	Kind           ChartKind
	Title          string
	XTitle, YTitle string
	X              int     // column of the categories, or of x
	ZTitle         string  // of a map, what its colours stand for
	YMax           float64 // of a map that of the colours, which then begin at 0; 0 leaves it to the viewer
	Empty          string  // of a map, the reason why cells have no number
	Diverging      bool    // of a map: its numbers have signs, so that the colours part at 0
	Series         []Series
	Outlines       []Outline // of a map
}

// Outline is a line between cells of a map.
type Outline struct {
	Name   string // what it says
	Dashed bool
	Edges  []Edge
}

// Edge is a piece of an Outline: between a cell and the one before it in its row or, of a level one, in its column.
type Edge struct {
	Row, Series int // of the sheet and of the chart, from 0
	Level       bool
}

// Series is one column of a chart.
type Series struct {
	Name   string
	Column int
	X      int // column of its own x; 0 takes the chart's
	// ErrorColumn holds half-widths of error bars; 0 when there are none, since column 0 is never a number of spread. Of a
	// stack, the last series has those of the whole.
	ErrorColumn int
	// PaperColumn holds published numbers, drawn as crosses; 0 when there are none. Of a stack, the last series has those of
	// the whole.
	PaperColumn int
	// Blank is, of a stack, room that figures leave free: neither drawn nor named.
	Blank bool
}

// MostSeries is how many series are told apart in one panel; more go into panels of their own.
const MostSeries = 6

// Palette tells series apart in print and for colour-blind readers (Okabe and Ito's set, the darker and the lighter in turn).
var Palette = [MostSeries]color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}}

// Panels makes of a chart with too many series several: by what their names have before a comma, else in equal parts.
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
