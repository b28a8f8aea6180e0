package list

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSelectionStaysVisible moves at random: the selected row is always inside the list and on the page.
func TestSelectionStaysVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		count := rapid.IntRange(0, 40).Draw(t, "count")
		height := rapid.IntRange(1, 20).Draw(t, "height")
		for range rapid.IntRange(0, 10).Draw(t, "moves") {
			s.Move(rapid.IntRange(-50, 50).Draw(t, "by"), count)
			top := s.Top(count, height)
			if count > 0 && (s.Selected < 0 || s.Selected >= count || s.Selected < top || s.Selected >= top+height) {
				t.Fatalf("row %d of %d is not among %d rows from %d", s.Selected, count, height, top)
			}
		}
	})
}

func TestFilter(t *testing.T) {
	rows := []Row{{Cells: []Cell{{Text: "c1"}, {Text: "merged"}}}, {Cells: []Cell{{Text: "c2"}, {Text: "Dropped full"}}}}
	for filter, want := range map[string]int{"": 2, "MERGED": 1, "!merged": 1, "c": 2, "c2 dropped": 1, "c1 dropped": 0} {
		s := State{Filter: filter}
		if got := len(s.Filtered(rows)); got != want {
			t.Errorf("%q leaves %d rows, want %d", filter, got, want)
		}
	}
}
