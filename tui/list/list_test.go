package list

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf/tui/screen"
)

// TestSelectionStaysVisible checks that after random moves the selected row is within the list and visible.
func TestSelectionStaysVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		count := rapid.IntRange(0, 40).Draw(t, "count")
		height := rapid.IntRange(1, 20).Draw(t, "height")
		for range rapid.IntRange(0, 10).Draw(t, "moves") {
			s.Move(rapid.IntRange(-50, 50).Draw(t, "by"), count)
			top := s.topRow(count, height)
			if count > 0 && (s.Selected < 0 || s.Selected >= count || s.Selected < top || s.Selected >= top+height) {
				t.Fatalf("row %d of %d is not among %d rows from %d", s.Selected, count, height, top)
			}
		}
	})
}

func TestFilter(t *testing.T) {
	rows := FromRows([]Row{{Cells: []Cell{{Text: "c1"}, {Text: "merged"}}},
		{Cells: []Cell{{Text: "c2"}, {Text: "Dropped full"}}}})
	for filter, want := range map[string]int{"": 2, "MERGED": 1, "!merged": 1, "c": 2, "c2 dropped": 1,
		"c1 dropped": 0, "c1 !c1": 0} {
		s := State{Filter: filter}
		if got := s.FilterRows(rows).Len; got != want {
			t.Errorf("%q leaves %d rows, want %d", filter, got, want)
		}
	}
	rows.Text = func(i int) string { return "only " + strconv.Itoa(i) }
	s := State{Filter: "only 1"}
	if got := s.FilterRows(rows); got.Len != 1 || got.Row(0).Cells[0].Text != "c2" {
		t.Errorf("the filter does not look at the text of the rows: %d left", got.Len)
	}
}

// TestNumbersAreWholeOrAbsent checks that in random tables at random widths every drawn number is one of the table's,
// and that the scroll bar is next to them.
func TestNumbersAreWholeOrAbsent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(1, 90).Draw(t, "width"), rapid.IntRange(2, 8).Draw(t, "height")
		columns := []Column{{Name: "name", Least: 4}}
		for i := range rapid.IntRange(1, 8).Draw(t, "columns") {
			columns = append(columns, Column{Name: fmt.Sprintf("h%d", i), Width: rapid.IntRange(1, 9).Draw(t, "least"),
				Right: true, Drop: i})
		}
		rows := make([]Row, rapid.IntRange(0, 12).Draw(t, "rows"))
		numbers := map[string]bool{}
		for i := range rows {
			rows[i].Cells = []Cell{{Text: "row"}}
			for range columns[1:] {
				number := strconv.Itoa(rapid.IntRange(1_000, 1<<40).Draw(t, "number"))
				rows[i].Cells = append(rows[i].Cells, Cell{Text: number})
				numbers[number] = true
			}
		}
		var s screen.Screen
		s.Resize(width, height)
		Draw(s.All(), columns, FromRows(rows), State{}, true)
		if scrolls := len(rows) > height-1 && height > 3; scrolls != strings.Contains(s.Text(), "▐") {
			t.Fatalf("%d rows, a scroll bar is to be seen: %v\n%s", len(rows), !scrolls, s.Text())
		}
		for _, line := range strings.Split(strings.ReplaceAll(s.Text(), "▐", " "), "\n")[1:] {
			for _, word := range strings.Fields(line) {
				if !numbers[word] && strings.Trim(word, "0123456789") == "" {
					t.Fatalf("%q is none of the numbers:\n%s", word, s.Text())
				}
			}
		}
	})
}

func TestOrder(t *testing.T) {
	keys := []float64{1, math.NaN(), 3, 1, math.Inf(-1)}
	if got, want := fmt.Sprint(SortOrder(5, func(i int) float64 { return keys[i] })), "[2 0 3 4 1]"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if got := fmt.Sprint(SortOrder(3, nil)); got != "[0 1 2]" {
		t.Errorf("without a key %s", got)
	}
}

// TestTallRows checks that rows get the free lines and that lines are mapped back to rows.
func TestTallRows(t *testing.T) {
	rows := FromRows(make([]Row, 3))
	rows.Tall = 4
	var s screen.Screen
	s.Resize(20, 40)
	if p := Draw(s.All(), []Column{{}}, rows, State{}, false); p.Height != 1 {
		t.Errorf("rows without pictures are %d tall", p.Height)
	}
	for height, want := range map[int]int{3: 1, 2: 1, 7: 2, 40: 4} {
		s.Resize(20, height)
		p := Draw(s.All(), []Column{{Least: 5}}, rows, State{}, false)
		if p.Height != want {
			t.Errorf("3 rows in %d lines are %d tall, want %d", height, p.Height, want)
		}
		if row, ok := p.RowAt(0, 2*want-1); height > 2 && (row != 1 || !ok) {
			t.Errorf("line %d of %d is row %d, %v", 2*want-1, height, row, ok)
		}
		if _, ok := p.RowAt(0, height-1); ok != (3*want >= height) {
			t.Errorf("the last of %d lines: %v", height, ok)
		}
	}
}
