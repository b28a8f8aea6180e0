package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/figure/figuretest"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// drawn draws a sheet in some formats, twice, and checks that its geometry has no fault.
func drawn(t *testing.T, s *table.Sheet, formats ...string) (svg string) {
	t.Helper()
	for _, format := range append(formats, "svg") {
		var once, again bytes.Buffer
		if err := errors.Join(figure.Write(&once, format, s), figure.Write(&again, format, s)); err != nil {
			t.Fatalf("%s as %s: %v", s.Name, format, err)
		}
		if !bytes.Equal(once.Bytes(), again.Bytes()) {
			t.Errorf("%s as %s: two drawings differ", s.Name, format)
		}
		if keep := os.Getenv("OLAF_KEEP"); keep != "" {
			if err := os.WriteFile(filepath.Join(keep, s.Name+"."+format), once.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if format == "svg" {
			svg = once.String()
		}
	}
	faults, err := figuretest.FindFaults(strings.NewReader(svg))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Errorf("%s: %s", s.Name, fault)
	}
	return svg
}

func TestEveryFigureOfABenchDraws(t *testing.T) {
	figures := 0
	for _, s := range sheets.Book(example.Result(3)).Sheets {
		if !figure.HasData(&s) {
			continue
		}
		var formats []string
		if figures++; s.Name == "Loss" {
			formats = figure.Formats()
		}
		svg := drawn(t, &s, formats...)
		for _, c := range s.Charts {
			if first, _, _ := strings.Cut(c.Title, " "); !strings.Contains(svg, first) {
				t.Errorf("%s: no title %s", s.Name, c.Title)
			}
		}
	}
	if figures != 7 {
		t.Errorf("%d figures, want 7", figures)
	}
}

// TestElementOfAPage checks that an SVG element in a page uses the page's fonts and colours, and is complete.
func TestElementOfAPage(t *testing.T) {
	for _, s := range sheets.Book(example.Result(3)).Sheets {
		if !figure.HasData(&s) {
			continue
		}
		var b bytes.Buffer
		s.Title += ` & "more" for 5 $1`
		if err := figure.SVG(&b, &s); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "#000000") || !strings.HasPrefix(text,
			"<svg role=") || !strings.Contains(text, "&quot;more&quot; for 5 $1") {
			t.Errorf("%s: %.300s", s.Name, text)
		}
	}
}

func TestPictureHasTheFiguresShape(t *testing.T) {
	s := bars(3, "olaf 40Gbps")
	var b bytes.Buffer
	if err := figure.Write(&b, "png", s); err != nil {
		t.Fatal(err)
	}
	if c, err := png.DecodeConfig(&b); err != nil || c.Width < c.Height {
		t.Errorf("%+v %v", c, err)
	}
}

func TestEmptyFigureIsAnError(t *testing.T) {
	empty := &table.Sheet{Name: "x", Columns: make([]table.Column, 2),
		Rows:   [][]table.Cell{{table.N(1), table.Missing("none")}},
		Charts: []table.Chart{{Title: "x", Kind: table.Lines, Series: []table.Series{{Name: "y", Column: 1}}}}}
	if err := figure.Write(io.Discard, "svg", empty); !errors.Is(err, figure.ErrFigure) || figure.HasData(empty) {
		t.Error(err)
	}
	if err := figure.Write(io.Discard, "gif", bars(1, "a")); !errors.Is(err, figure.ErrFigure) ||
		!strings.Contains(err.Error(), "svg, pdf, png") {
		t.Error(err)
	}
}

// bars returns a sheet of n bars, each with an interval and a published number.
func bars(n int, name string) *table.Sheet {
	s := &table.Sheet{Name: fmt.Sprintf("bars%d", n), Columns: []table.Column{{Header: "configuration"},
		{Header: "lost", Format: table.Fixed1}, {}, {}}}
	for i := range n {
		s.Rows = append(s.Rows, []table.Cell{table.S(name), table.N(float64(10 + i)), table.N(1), table.N(12)})
	}
	s.Charts = []table.Chart{{Kind: table.Bars, Title: "Loss", YTitle: "lost [%]",
		Series: []table.Series{{Name: "ours", Column: 1, ErrorColumn: 2, PaperColumn: 3}}}}
	return s
}

// TestNamesStayApart draws increasing numbers of bars with increasingly long names and checks that the names do not
// overlap, below vertical bars and next to horizontal ones.
func TestNamesStayApart(t *testing.T) {
	long := "olaf with transmission control that counts senders (N = senders)"
	for _, c := range []struct {
		bars       int
		name, want string
	}{{3, "olaf 40Gbps", ">olaf 40Gbps<"}, {6, "olaf 40Gbps", ">40Gbps<"}, {18, "olaf 40Gbps", ">olaf 40Gbps<"},
		{2, long, ">control that"}, {40, long, ">control that"}} {
		if svg := drawn(t, bars(c.bars, c.name)); !strings.Contains(svg, c.want) {
			t.Errorf("%d bars: no %s", c.bars, c.want)
		}
	}
}

// TestPaperNumbersAreCrosses checks that published points are drawn as crosses, named once, and only if there are any.
func TestPaperNumbersAreCrosses(t *testing.T) {
	s := bars(2, "olaf")
	cross := func() (n int) {
		return strings.Count(drawn(t, s), "stroke:#000000;stroke-width:1.5") / 2
	}
	if n := cross(); n != 3 { // two, and one in the legend
		t.Errorf("%d crosses", n)
	}
	s.Rows[0][3], s.Rows[1][3] = table.Missing("not printed"), table.Missing("not printed")
	if n := cross(); n != 0 {
		t.Errorf("%d crosses, none was published", n)
	}
}

// curves returns a sheet with n curves of points points each.
func curves(n, points int, name func(i int) string) *table.Sheet {
	s := &table.Sheet{Name: fmt.Sprintf("curves%d-%d", n, points), Columns: make([]table.Column, 1+2*n),
		Charts: []table.Chart{{Kind: table.Lines,
			Title: "Mean age of model over the output of the first switch, both queues per cluster, every worker of " +
				"every group for itself", XTitle: "α",
			YTitle: "mean age of model of everybody who sends through the " +
				"first switch, FIFO per worker and Olaf per cluster [ns]"}}}
	for k := range points {
		s.Rows = append(s.Rows, []table.Cell{table.N(float64(k))})
		for i := range n {
			s.Rows[k] = append(s.Rows[k], table.N(1e7*float64((k+1)*(i+1))), table.N(1e6))
		}
	}
	for i := range n {
		s.Charts[0].Series = append(s.Charts[0].Series, table.Series{Name: name(i), Column: 1 + 2*i, ErrorColumn: 2 + 2*i})
	}
	return s
}

// TestMap checks that a map has a cell for every number, none for missing numbers, and a colour scale.
func TestMap(t *testing.T) {
	s := &table.Sheet{Name: "Map", Title: "a map", Columns: []table.Column{{Header: "slots", Format: table.General}}}
	chart := table.Chart{Kind: table.Map, Title: "Age of model", XTitle: "rate [Gbps]", YTitle: "slots",
		ZTitle: "mean AoM [µs]"}
	for k := range 40 {
		chart.Series = append(chart.Series, table.Series{Name: fmt.Sprint(k), Column: k + 1})
		s.Columns = append(s.Columns, table.Column{Header: fmt.Sprint(k), Format: table.General})
	}
	for i := range 13 {
		row := []table.Cell{table.N(float64(i))}
		for k := range 40 {
			if i == 3 && k < 20 {
				row = append(row, table.Missing("too short"))
			} else {
				row = append(row, table.N(float64((i*40+k)%24)))
			}
		}
		s.Rows = append(s.Rows, row)
	}
	s.Charts = []table.Chart{chart}
	svg := drawn(t, s, figure.Formats()...)
	if scale, cells, got := 24, 13*40-20, strings.Count(svg, "<path")-strings.Count(svg, "fill:none"); got < scale+cells {
		t.Errorf("%d areas, want the %d of the scale and %d cells", got, scale, cells)
	}
	for _, want := range []string{"0 to 23: mean AoM [µs]; empty: none", ">30<", ">10<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the map does not say %s", want)
		}
	}
}

// TestDivergingMap checks that a map of signed numbers has the same scale on both sides of 0, 0 marked, and axes whose labels
// leave their common unit to the title.
func TestDivergingMap(t *testing.T) {
	s := &table.Sheet{Name: "Map", Title: "a map", Columns: []table.Column{{Header: "slots"}},
		Rows: [][]table.Cell{{table.S("2")}, {table.S("4")}}}
	chart := table.Chart{Kind: table.Map, Title: "Loss", XTitle: "out-rate", YTitle: "slots", ZTitle: "change, %",
		Diverging: true, Empty: "can't be told from 0"}
	for k := range 8 {
		name := fmt.Sprintf("%dGbps", 5*(k+1))
		s.Columns = append(s.Columns, table.Column{Header: name, Format: table.General})
		s.Rows[0] = append(s.Rows[0], table.N(float64(k)-80))
		s.Rows[1] = append(s.Rows[1], map[bool]table.Cell{true: table.Missing("no value"),
			false: table.N(float64(k))}[k == 0])
		chart.Series = append(chart.Series, table.Series{Name: name, Column: k + 1})
	}
	s.Charts = []table.Chart{chart}
	svg := drawn(t, s, figure.Formats()...)
	for _, want := range []string{"−80 … 0 … 80: change, %; empty: can", ">5<", ">10<", ">40<", "out-rate [Gbps]"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the map does not say %q", want)
		}
	}
	if faults, err := figuretest.FindFaults(strings.NewReader(svg)); err != nil || len(faults) > 0 {
		t.Errorf("%v: %q, want no faults", err, faults)
	}
}

// TestMapKeepsRowsWithoutNumbers checks that a map has a place for every row of its sheet, also for those in which no
// cell has a number, and that a map without any number is not drawn.
func TestMapKeepsRowsWithoutNumbers(t *testing.T) {
	s := &table.Sheet{Name: "Map", Title: "a map", Columns: []table.Column{{Header: "slots"}, {Header: "7Gbps"}}}
	for _, name := range []string{"2", "16", "32", "64"} {
		s.Rows = append(s.Rows, []table.Cell{table.S(name), table.S("(-3)")})
	}
	s.Charts = []table.Chart{{Kind: table.Map, Title: "Age", XTitle: "out-rate", YTitle: "slots", ZTitle: "change, %",
		Diverging: true, Series: []table.Series{{Name: "7Gbps", Column: 1}}}}
	if figure.HasData(s) {
		t.Error("a map without a number counts as a figure")
	}
	s.Rows[2][1] = table.N(-40)
	svg := drawn(t, s, "svg")
	for _, want := range []string{">2<", ">16<", ">32<", ">64<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the map lacks the row %s: every value of the axis must have its place", strings.Trim(want, "<>"))
		}
	}
}

// TestLabelsHaveTheirWidth checks that every text states the width reserved for it, whatever font draws it.
func TestLabelsHaveTheirWidth(t *testing.T) {
	svg := drawn(t, bars(3, "olaf tc (N = clusters) &"))
	if texts, fixed := strings.Count(svg, "<text "), strings.Count(svg, "<text textLength="); texts == 0 ||
		texts != fixed {
		t.Errorf("%d of %d texts state their width, want all", fixed, texts)
	}
}

// TestOutlinesOfAMap checks that each piece of an outline is drawn, and that its name is next to the scale.
func TestOutlinesOfAMap(t *testing.T) {
	s := &table.Sheet{Name: "Map", Title: "a map", Columns: []table.Column{{Header: "slots"},
		{Header: "1", Format: table.General}, {Header: "2", Format: table.General}},
		Rows: [][]table.Cell{{table.S("2"), table.N(1), table.N(2)}, {table.S("4"), table.N(3), table.N(4)}}}
	chart := table.Chart{Kind: table.Map, Title: "Age", XTitle: "rate", YTitle: "slots", ZTitle: "change",
		Series: []table.Series{{Name: "1", Column: 1}, {Name: "2", Column: 2}}}
	s.Charts = []table.Chart{chart}
	before := strings.Count(drawn(t, s, figure.Formats()...), "<path")
	s.Charts[0].Outlines = []table.Outline{{Name: "full line", Edges: []table.Edge{{Row: 0, Series: 1},
		{Row: 1, Series: 1}}}, {Name: "dashed line", Dashed: true, Edges: []table.Edge{{Row: 1, Series: 0, Level: true}}}}
	svg := drawn(t, s, figure.Formats()...)
	const strokes = 2 * (3 + 2) // white and black, each with three pieces and two marks at the names
	if got := strings.Count(svg, "<path"); got != before+strokes {
		t.Errorf("%d paths, want %d and %d", got, before, strokes)
	}
	if got := strings.Count(svg, "stroke-dasharray"); got != 2 {
		t.Errorf("%d dashed strokes, want 2", got)
	}
	for _, want := range []string{">full line<", ">dashed line<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the map does not say %s", want)
		}
	}
}

// TestManySeries checks that a panel has at most six series, grouped by families if the names have them, and that long
// titles are wrapped.
func TestManySeries(t *testing.T) {
	family := func(i int) string { return fmt.Sprintf("%s, α = %d", []string{"fifo", "olaf"}[i/10], i%10) }
	plain := func(i int) string { return fmt.Sprintf("curve %d", i) }
	for _, c := range []struct {
		n, points int
		name      func(int) string
		panels    int
	}{{1, 1, plain, 1}, {6, 8, plain, 1}, {7, 8, plain, 2}, {20, 8, family, 4}, {3, 100, plain, 1}} {
		svg := drawn(t, curves(c.n, c.points, c.name))
		if panels := strings.Count(svg, ">α<"); panels != c.panels {
			t.Errorf("%d curves in %d panels, want %d", c.n, panels, c.panels)
		}
		if bands := strings.Count(svg, "fill-opacity"); (bands > 0) != (c.points > 24) {
			t.Errorf("%d points: %d bands", c.points, bands)
		}
	}
}
