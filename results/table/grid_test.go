package table

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func sample() *Grid {
	g := &Grid{Keys: 2, Columns: []GridColumn{{Header: "QUEUE"}, {Header: "OUT"}, {Header: "LOST, %", Right: true}, {Header: "AOM, µs", Right: true},
		{Header: "PEAK", Right: true, Spare: 2}, {Header: "UTIL", Right: true, Spare: 1}, {Header: "WHY", Prose: true}}}
	g.Add("olaf", "40Gbps", "11.24 ± 0.15", "1.208 ± 0.012", "1.02", "0.51", "a sentence that can be folded wherever it has a space")
	g.Add("fifo", "40Gbps", "54.81", "1.85", "0.99")
	return g
}

// TestGridFits holds what a reader of a narrow page gets: prose folded first, spare columns named when they are gone,
// tables stacked under their keys, and lists at last.
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
left out for want of width: PEAK
`},
		{44, `QUEUE  OUT          LOST, %        AOM, µs
olaf   40Gbps  11.24 ± 0.15  1.208 ± 0.012
fifo   40Gbps         54.81           1.85

QUEUE  OUT     WHY
olaf   40Gbps  a sentence that can be folded
               wherever it has a space
fifo   40Gbps
left out for want of width: PEAK, UTIL
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
left out for want of
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

// TestGridNeverBreaksAWord holds that at any width no line is wider than the page or its longest word, and that every word
// of a column that was not left out is there whole.
func TestGridNeverBreaksAWord(t *testing.T) {
	word := rapid.StringMatching(`[a-zµ]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		g := &Grid{Keys: rapid.IntRange(0, 3).Draw(t, "keys")}
		for range rapid.IntRange(1, 6).Draw(t, "columns") {
			g.Columns = append(g.Columns, GridColumn{Header: strings.ToUpper(word.Draw(t, "header")), Right: rapid.Bool().Draw(t, "right"),
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
		shown, _ := g.within(width)
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
