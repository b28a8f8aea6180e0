package table

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/golden"
)

// seeded draws a grid of several columns: numbers, words and prose, keys and spare columns.
func seeded(r *rand.Rand) *Grid {
	word := func() string { return strings.Repeat("abcdefghij"[r.IntN(10):][:1], 1+r.IntN(9)) }
	words := func(n int) string {
		all := make([]string, 1+r.IntN(n))
		for i := range all {
			if all[i] = word(); r.IntN(6) == 0 {
				all[i] = []string{"±", "%", "ms", "1.5", "%;", "ns"}[r.IntN(6)]
			}
		}
		return strings.Join(all, " ")
	}
	g := &Grid{Keys: r.IntN(3)}
	for range 2 + r.IntN(6) {
		g.Columns = append(g.Columns, GridColumn{Header: words(3), Right: r.IntN(2) == 0, Prose: r.IntN(3) == 0,
			Spare: max(0, r.IntN(6)-3)})
	}
	if r.IntN(5) == 0 {
		for i := range g.Columns {
			g.Columns[i].Header = ""
		}
	}
	for range 1 + r.IntN(3) {
		if r.IntN(4) == 0 {
			g.Head(words(12))
		}
		row := make([]string, len(g.Columns)-r.IntN(2))
		for k := range row {
			if row[k] = word(); g.Columns[k].Prose || r.IntN(5) == 0 {
				row[k] = words(9)
			}
			if r.IntN(9) == 0 {
				row[k] = ""
			}
		}
		g.Add(row...)
	}
	return g
}

// TestGridStories compares the layout of grids on pages of every width with reviewed golden files.
func TestGridStories(t *testing.T) {
	var b bytes.Buffer
	for i := range 36 {
		g := seeded(rand.New(rand.NewPCG(uint64(i), 9)))
		width := []int{12, 20, 30, 44, 60, 80}[i%6]
		fmt.Fprintf(&b, "== %d, width %d, %d keys\n", i, width, g.Keys)
		if err := g.Write(&b, width); err != nil {
			t.Fatal(err)
		}
	}
	for _, width := range []int{1, 17, 18, 19, 40} {
		fmt.Fprintf(&b, "== %d\n%s\n%s\n", width,
			strings.Join(Fold("  an indented line of which 1.25 ± 0.03 ms is one word, and 5 %, too", width), "\n"),
			strings.Join(Fold("", width), "|"))
	}
	golden.Equal(t, "grids.txt", b.Bytes())
}

// TestPanelStories checks that charts with more series than can be distinguished become panels, by the families of
// their names or in equal parts.
func TestPanelStories(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct {
		kind  ChartKind
		names func(i int) string
		n     int
	}{
		{Bars, func(i int) string { return fmt.Sprint("s", i) }, MostSeries},
		{Bars, func(i int) string { return fmt.Sprint("s", i) }, MostSeries + 1},
		{Lines, func(i int) string { return fmt.Sprint("s", i) }, 2*MostSeries + 1},
		{Map, func(i int) string { return fmt.Sprint("s", i) }, 20},
		{Steps, func(i int) string { return fmt.Sprintf("%s, %d", []string{"fifo", "olaf"}[i%2], i) }, 9},
		{Steps, func(i int) string { return fmt.Sprintf("%s, %d", []string{"fifo", "olaf"}[i%2], i) }, 17},
		{Stacked, func(i int) string { return fmt.Sprintf("one, %d", i) }, 8},
		{Bars, func(i int) string { return fmt.Sprintf("q%d, x", i) }, 8},
	} {
		chart := Chart{Kind: c.kind, Title: "T", XTitle: "x", YTitle: "y", X: 3, YMax: 2}
		for i := range c.n {
			chart.Series = append(chart.Series, Series{Name: c.names(i), Column: i + 1, ErrorColumn: i % 3,
				PaperColumn: i % 4, X: i % 2})
		}
		fmt.Fprintf(&b, "== kind %d, %d series\n", c.kind, c.n)
		for _, p := range chart.Panels() {
			fmt.Fprintf(&b, "%s\n", golden.Fields(p))
		}
		if chart.Title != "T" || chart.Series[0].Name != c.names(0) {
			t.Errorf("the chart itself was changed: %+v", chart)
		}
	}
	fmt.Fprintf(&b, "colours %v\n", Palette)
	golden.Equal(t, "panels.txt", b.Bytes())
}

// TestCellStories checks every kind of cell in every format, for terminals, for programs and in documents.
func TestCellStories(t *testing.T) {
	var b bytes.Buffer
	cells := []Cell{S("text"), S(""), Missing("why"), U(math.MaxUint64), I(1 << 53), I(1<<53 + 1), I(-1 << 53),
		I(-1<<53 - 1), N(math.NaN()), N(math.Inf(1)), N(math.Inf(-1))}
	for _, v := range []float64{0, 1, -1, 0.05, 0.049, -0.05, -0.049, 0.5, -0.4, 999, 999.5, 1000, 999999.95,
		1234567.891, -1234567.891, 1e-7, 123456.7, 0.000123456789, 1e21, math.Copysign(0, -1), 99999.95, 100, 0.0005,
		-0.0004} {
		cells = append(cells, N(v))
	}
	for _, v := range cells {
		text, err := v.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%+v json %s", v, text)
		for _, f := range []Format{Text, Integer, Fixed1, Fixed3, General} {
			c := Column{Header: "h", Format: f}
			fmt.Fprintf(&b, " | %s %s", c.Plain(v), c.Pretty(v))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s, %s\n", Column{Header: "h"}.Title(), Column{Header: "h", Unit: "ns"}.Title())
	golden.Equal(t, "cells.txt", b.Bytes())
}

// limited is a writer with room for a limited number of writes.
type limited struct{ left int }

var errNoRoom = errors.New("no room")

func (l *limited) Write(p []byte) (int, error) {
	if l.left--; l.left < 0 {
		return 0, errNoRoom
	}
	return len(p), nil
}

// TestWritersThatFail checks that sheets report a writer without room, wherever that happens.
func TestWritersThatFail(t *testing.T) {
	s := Sheet{Columns: []Column{{Header: "name", Prose: true}, {Header: "n", Unit: "B", Format: Integer,
		Spare: 1}}, Rows: [][]Cell{{S("a, \"quoted\" cell"), N(1000)}, {S("b"), Missing("x")}},
		Notes: []string{"one note", "two notes"}}
	for room := range 3 {
		if err := s.WriteText(&limited{room}, 40); !errors.Is(err, errNoRoom) {
			t.Errorf("text with room for %d writes: %v", room, err)
		}
	}
	if err := s.WriteText(&limited{3}, 40); err != nil {
		t.Error(err)
	}
	if err := s.WriteCSV(&limited{}); !errors.Is(err, errNoRoom) {
		t.Errorf("CSV: %v", err)
	}
	long := Sheet{Columns: []Column{{Header: strings.Repeat("h", 5000)}},
		Rows: [][]Cell{{S(strings.Repeat("x", 5000))}, {S("y")}}}
	for room := range 3 {
		if err := long.WriteCSV(&limited{room}); !errors.Is(err, errNoRoom) {
			t.Errorf("CSV of %d bytes with room for %d writes: %v", 10000, room, err)
		}
	}
	var b bytes.Buffer
	for _, width := range []int{6, 10, 40} {
		if err := s.WriteText(&b, width); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "sheet.txt", b.Bytes())
}
