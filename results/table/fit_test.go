package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// columns are a grid of a key and some columns, each so many characters wide.
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

// Columns stand in as few tables as can be, and these are about as wide as each other. What just fits is not split.
func TestStacksAreEven(t *testing.T) {
	for _, c := range []struct {
		g     *Grid
		width int
		want  [][]int
	}{
		{columns(4, 10, 10), 4 + 2 + 10 + 2 + 10, [][]int{{0, 1, 2}}},
		{columns(4, 10, 10), 4 + 2 + 10 + 2 + 10 - 1, [][]int{{0, 1}, {0, 2}}},
		{columns(4, 10, 10, 10, 10), 4 + 3*12, [][]int{{0, 1, 2}, {0, 3, 4}}}, // not three and one
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

// A number is one word with what stands around it, at the beginning of a line too.
func TestBoundWords(t *testing.T) {
	for text, want := range map[string][]string{
		"5 ± 3 ms of": {"5 ± 3 ms", "of"}, "± 3": {"± 3"}, "lost 5 %": {"lost", "5 %"}, "% of": {"%", "of"}, "": nil,
	} {
		if got := bound(strings.Fields(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A chart with as many series as can be told apart stays one, and more go into as few panels as hold them.
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
