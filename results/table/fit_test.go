package table

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// columns returns a grid of a key and some columns with the given widths in characters.
func columns(key int, widths ...int) *Grid {
	g := &Grid{Keys: 1}
	row := []string{}
	for _, n := range append([]int{key}, widths...) {
		g.Columns = append(g.Columns, GridColumn{})
		row = append(row, strings.Repeat("x", n))
	}
	g.Add(row...)
	return g
}

// TestStacksAreEven checks that columns are placed in as few tables as possible, of about equal width, and that what
// just fits is not split.
func TestStacksAreEven(t *testing.T) {
	for _, c := range []struct {
		g     *Grid
		width int
		want  [][]int
	}{
		{columns(4, 10, 10), 4 + 2 + 10 + 2 + 10, [][]int{{0, 1, 2}}},
		{columns(4, 10, 10), 4 + 2 + 10 + 2 + 10 - 1, [][]int{{0, 1}, {0, 2}}},
		{columns(4, 10, 10, 10, 10), 4 + 3*12, [][]int{{0, 1, 2}, {0, 3, 4}}}, // rather than three and one
		{columns(4, 10, 10, 10, 10, 10), 4 + 2*12, [][]int{{0, 1, 2}, {0, 3, 4}, {0, 5}}},
	} {
		if got := c.g.stacks(c.g.all(), c.width); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("in %d characters: %v, want %v", c.width, got, c.want)
		}
	}
}

func (g *Grid) all() (columns []int) {
	for i := range g.Columns {
		columns = append(columns, i)
	}
	return columns
}

// TestBoundWords checks that a number is one word with its neighbours, also at the beginning of a line.
func TestBoundWords(t *testing.T) {
	for text, want := range map[string][]string{
		"5 ± 3 ms of": {"5 ± 3 ms", "of"}, "± 3": {"± 3"}, "lost 5 %": {"lost", "5 %"}, "% of": {"%", "of"}, "": nil,
	} {
		if got := joinNumbers(strings.Fields(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestPanelsAreFew checks that a chart with as many series as can be distinguished stays one panel, and that more
// series go into as few panels as possible.
func TestPanelsAreFew(t *testing.T) {
	for n := 1; n <= 4*MostSeries; n++ {
		c := Chart{Kind: Lines}
		for i := range n {
			c.Series = append(c.Series, Series{Name: fmt.Sprint("s", i)})
		}
		panels := c.Panels()
		total := 0
		for _, p := range panels {
			if total += len(p.Series); len(p.Series) > MostSeries {
				t.Errorf("%d series: %d in one panel", n, len(p.Series))
			}
		}
		if want := (n-1)/MostSeries + 1; len(panels) != want || total != n {
			t.Errorf("%d series: %d in %d panels, want %d", n, total, len(panels), want)
		}
	}
	families := Chart{Kind: Lines}
	for i := range MostSeries {
		families.Series = append(families.Series, Series{Name: fmt.Sprintf("%d, %d", i%2, i)})
	}
	if panels := families.Panels(); len(panels) != 1 {
		t.Errorf("%d series of two families are in %d panels", MostSeries, len(panels))
	}
}

// TestStacksAreTheNarrowest checks that columns are split into as few tables as fill the width, and that these are as
// narrow as possible. The reference tries every width.
func TestStacksAreTheNarrowest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var widths []int
		for range 2 + r.IntN(9) {
			widths = append(widths, 1+r.IntN(9))
		}
		g, width := columns(1+r.IntN(6), widths...), 12+r.IntN(30)
		got := g.stacks(g.all(), width)
		if g.minWidth(g.all()) <= width {
			if len(got) != 1 {
				t.Fatalf("%v in %d: %v", widths, width, got)
			}
			continue
		}
		if got == nil {
			continue
		}
		want := g.fillTables(g.all(), width)
		for w := width; w >= 0; w-- {
			if f := g.fillTables(g.all(), w); len(f) == len(want) {
				want = f
			} else {
				break
			}
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%v in %d: %v, want %v", widths, width, got, want)
		}
	}
}

// TestPanelsOfFamilies checks that a chart is split by the part of names before the comma, also for a family of one.
func TestPanelsOfFamilies(t *testing.T) {
	series := func(families map[string]int) (c Chart) {
		c.Title = "T"
		for _, f := range slices.Sorted(maps.Keys(families)) {
			for i := range families[f] {
				c.Series = append(c.Series, Series{Name: fmt.Sprintf("%s, %d", f, i)})
			}
		}
		return c
	}
	for _, c := range []struct {
		families map[string]int
		want     []int
	}{
		{map[string]int{"a": 6}, []int{6}}, {map[string]int{"a": 7}, []int{4, 3}}, {map[string]int{"a": 6, "b": 1},
			[]int{6, 1}}, {map[string]int{"a": 1, "b": 1, "c": 5}, []int{1, 1, 5}},
		{map[string]int{"a": 1, "b": 7}, []int{1, 4, 3}}, {map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1,
			"f": 1, "g": 1}, []int{4, 3}},
	} {
		chart := series(c.families)
		var got []int
		for _, p := range chart.Panels() {
			got = append(got, len(p.Series))
			of, _, _ := strings.Cut(p.Title, ": ")
			split := len(c.families) > 1 && len(c.families) < len(chart.Series)
			if of != "T" || (p.Title != "T") != split || strings.Contains(p.Series[0].Name, ", ") == split {
				t.Errorf("%v: %q of %q", c.families, p.Title, p.Series[0].Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.families, got, c.want)
		}
	}
}
