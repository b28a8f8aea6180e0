package table

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func sample() *Grid {
	g := &Grid{Keys: 2, Columns: []GridColumn{{Header: "QUEUE"}, {Header: "OUT"}, {Header: "LOST, %", Right: true},
		{Header: "AOM, µs", Right: true},
		{Header: "PEAK", Right: true, Spare: 2}, {Header: "UTIL", Right: true, Spare: 1}, {Header: "WHY", Prose: true}}}
	g.Add("olaf", "40Gbps", "11.24 ± 0.15", "1.208 ± 0.012", "1.02", "0.51",
		"a sentence that can be folded wherever it has a space")
	g.Add("fifo", "40Gbps", "54.81", "1.85", "0.99")
	return g
}

// TestGridFits checks the layout of narrow pages: prose is folded first, then spare columns are omitted and named, then
// tables are stacked under their keys, and finally lists are used.
func TestGridFits(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{
		{120, `QUEUE  OUT          LOST, %        AOM, µs  PEAK  UTIL  WHY
olaf   40Gbps  11.24 ± 0.15  1.208 ± 0.012  1.02  0.51  a sentence that can be folded wherever it has a space
fifo   40Gbps         54.81           1.85  0.99
`},
		{80, `QUEUE  OUT          LOST, %        AOM, µs  PEAK  UTIL  WHY
olaf   40Gbps  11.24 ± 0.15  1.208 ± 0.012  1.02  0.51  a sentence that can be
                                                        folded wherever it has a
                                                        space
fifo   40Gbps         54.81           1.85  0.99
`},
		{70, `QUEUE  OUT          LOST, %        AOM, µs  UTIL  WHY
olaf   40Gbps  11.24 ± 0.15  1.208 ± 0.012  0.51  a sentence that can
                                                  be folded wherever
                                                  it has a space
fifo   40Gbps         54.81           1.85
not shown at this width: PEAK
`},
		{44, `QUEUE  OUT          LOST, %        AOM, µs
olaf   40Gbps  11.24 ± 0.15  1.208 ± 0.012
fifo   40Gbps         54.81           1.85

QUEUE  OUT     WHY
olaf   40Gbps  a sentence that can be folded
               wherever it has a space
fifo   40Gbps
not shown at this width: PEAK, UTIL
`},
		{22, `QUEUE: olaf
OUT: 40Gbps
LOST, %:
  11.24 ± 0.15
AOM, µs:
  1.208 ± 0.012
WHY: a sentence that
  can be folded
  wherever it has a
  space

QUEUE: fifo
OUT: 40Gbps
LOST, %: 54.81
AOM, µs: 1.85
not shown at this
width: PEAK, UTIL
`},
	} {
		var b strings.Builder
		if err := sample().Write(&b, c.width); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("at %d:\n%swant\n%s", c.width, b.String(), c.want)
		}
	}
}

// TestGridAtItsLimits checks contents that just fit into a table, and contents that just do not.
func TestGridAtItsLimits(t *testing.T) {
	beside := func(key, cell string, prose bool, others ...string) *Grid {
		g := &Grid{Keys: 1, Columns: []GridColumn{{Header: "K"}, {Header: "C", Prose: prose}}}
		g.Add(key, cell)
		for _, other := range others {
			g.Add(key, other)
		}
		return g
	}
	spare := &Grid{Columns: []GridColumn{{Header: "SPARE", Spare: 1}}}
	spare.Add("12345678")
	hundred := strings.TrimSuffix(strings.Repeat("abcdefghi ", 15), " ")
	for _, c := range []struct {
		name  string
		g     *Grid
		width int
		want  string
	}{
		{"a long word beside half of the page", beside("12345678", "abcdefghijklmno", false), 20,
			"K         C\n12345678  abcdefghijklmno\n"},
		{"a long word beside more than half", beside("123456789", "abcdefghijklmno", false), 20,
			"K: 123456789\nC: abcdefghijklmno\n"},
		{"several words, no prose", beside("12345678", "abcdefg hijklmno", false), 20,
			"K: 12345678\nC: abcdefg\n  hijklmno\n"},
		{"a long word below words that fit", beside("12345678", "ab cd", false, "abcdefghijklmno"), 20,
			"K         C\n12345678  ab cd\n12345678  abcdefghijklmno\n"},
		{"a long word among several, no prose", beside("12345678", "abcdefghijklmno pqr", false), 20,
			"K: 12345678\nC: abcdefghijklmno\n  pqr\n"},
		{"prose whose longest word just fits", beside("12345678", "abcdefghijklmn opqrst", true), 24,
			"K: 12345678\nC: abcdefghijklmn\n  opqrst\n"},
		{"prose whose longest word does not", beside("12345678", "abcdefghijklmno pqrst", true), 24,
			"K         C\n12345678  abcdefghijklmno\n          pqrst\n"},
		{"prose with all the room it wants", beside("k", hundred, true), 3 + 149, "K  C\nk  " + hundred + "\n"},
		{"nothing that can't be spared", spare, 7, "not\nshown\nat this\nwidth:\nSPARE\n"},
		{"a page without any width", spare, -1, "not\nshown\nat\nthis\nwidth:\nSPARE\n"},
	} {
		var b strings.Builder
		if err := c.g.Write(&b, c.width); err != nil || b.String() != c.want {
			t.Errorf("%s, %d wide: %v\n%swant\n%s", c.name, c.width, err, b.String(), c.want)
		}
	}
}

// TestGridNeverBreaksAWord checks that at any width no line is wider than the page or its longest word, and that all
// words of the columns that were not omitted are complete.
func TestGridNeverBreaksAWord(t *testing.T) {
	word := rapid.StringMatching(`[a-zµ]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		g := &Grid{Keys: rapid.IntRange(0, 3).Draw(t, "keys")}
		for range rapid.IntRange(1, 6).Draw(t, "columns") {
			g.Columns = append(g.Columns, GridColumn{Header: strings.ToUpper(word.Draw(t, "header")),
				Right: rapid.Bool().Draw(t, "right"),
				Prose: rapid.Bool().Draw(t, "prose"), Spare: rapid.IntRange(0, 2).Draw(t, "spare")})
		}
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			var row []string
			for range g.Columns {
				row = append(row, strings.Join(rapid.SliceOfN(word, 1, 6).Draw(t, "cell"), " "))
			}
			g.Add(row...)
		}
		width := rapid.IntRange(16, 120).Draw(t, "width")
		var b strings.Builder
		if err := g.Write(&b, width); err != nil {
			t.Fatal(err)
		}
		shown, _ := g.fitColumns(width)
		words := strings.Fields(b.String())
		for _, i := range shown {
			for r := range g.Rows {
				for _, w := range strings.Fields(g.cell(r, i)) {
					if !contains(words, w) {
						t.Fatalf("%q is broken at %d:\n%s", w, width, b.String())
					}
				}
			}
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > width && n > width/2+max(leastOf, longestWord(b.String())) {
				t.Fatalf("%q is wider than %d", line, width)
			}
		}
	})
}

func contains(words []string, w string) bool {
	for _, have := range words {
		if have == w {
			return true
		}
	}
	return false
}

// TestOneLineARow checks that a grid with one line per row fits the page, keeps its keys and short cells complete, and
// cuts long cells between words, marked by ….
func TestOneLineARow(t *testing.T) {
	g := &Grid{Keys: 1, OneLine: true, Columns: []GridColumn{{Header: "ID"}, {Header: "ASKED"}, {Header: "FOUND"}}}
	g.Add("run-1", "--runs 2", "olaf lost 8.3 %, 32.4 % fresher")
	g.Add("run-2", "--sweep slots=4,8 --until ci=20% --updates 10 --out-rate 20G", "4 cells")
	for width, want := range map[int]string{
		50: `ID     ASKED                  FOUND
run-1  --runs 2               olaf lost 8.3 %,…
run-2  --sweep slots=4,8…     4 cells
`,
		200: `ID     ASKED                                                         FOUND
run-1  --runs 2                                                      olaf lost 8.3 %, 32.4 % fresher
run-2  --sweep slots=4,8 --until ci=20% --updates 10 --out-rate 20G  4 cells
`,
	} {
		var b strings.Builder
		if err := g.Write(&b, width); err != nil || b.String() != want {
			t.Errorf("in %d characters the grid must be\n%s\nbut is\n%s (%v)", width, want, b.String(), err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9 ±%]{0,40}`), 3, 3)
		g := &Grid{Keys: 1, OneLine: true, Columns: []GridColumn{{Header: "ID"}, {Header: "ASKED"}, {Header: "FOUND"}}}
		rows := rapid.IntRange(0, 5).Draw(t, "rows")
		for range rows {
			g.Add(cells.Draw(t, "cells")...)
		}
		width := rapid.IntRange(60, 150).Draw(t, "width")
		var b strings.Builder
		_ = g.Write(&b, width) // writing to a strings.Builder cannot fail
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != rows+1 {
			t.Fatalf("%d rows and a header take %d lines", rows, len(lines))
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > width {
				t.Fatalf("a line has more than %d characters: %q", width, line)
			}
		}
	})
}
