package sweep

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// signed returns a map of signs: l lower, h higher, u undecided, and a space for no value.
func signed(unit string, rows ...string) *Map {
	m := &Map{Metric: &Shown{Name: "m", Unit: unit}, Title: "Map", Across: "rate", Down: "slots", By: 1, Compared: true, Subject: "olaf"}
	if len(rows) == 1 {
		m.Down = ""
	}
	for i, row := range rows {
		m.Rows = append(m.Rows, fmt.Sprint(2*i+2))
		var points []Point
		for k, c := range row {
			if i == 0 {
				m.Columns = append(m.Columns, fmt.Sprintf("%dG", 10*k+10))
			}
			sign := map[rune]string{'l': lower, 'h': higher, 'u': undecided}[c]
			mean := map[string]results.Float{lower: -5, higher: 5}[sign]
			points = append(points, Point{Present: sign != "", Stat: results.Statistic{Mean: mean}, Sign: sign})
		}
		m.Points = append(m.Points, points)
	}
	return m
}

// TestOutlines checks the places and descriptions of the lines on a map.
func TestOutlines(t *testing.T) {
	for _, c := range []struct {
		name, unit string
		rows       []string
		want       []string // "name: edges"; an edge is | before a place or _ above it
	}{
		{"none", "ns", []string{"lll", "lll"}, nil},
		{"right", "ns", []string{"hll", "hhl"}, []string{"OLAF pays right of this line: |0,1 _1,1 |1,2"}},
		{"left", "ns", []string{"lhh", "llh"}, []string{"OLAF pays left of this line: |0,1 _1,1 |1,2"}},
		{"interval", "ns", []string{"huul", "huul"}, []string{"OLAF pays right of this line: |0,3 |1,3", "OLAF costs left of this line: |0,1 |1,1"}},
		{"more is better", "updates", []string{"lh", "lh"}, []string{"OLAF pays right of this line: |0,1 |1,1"}},
		{"downwards", "ns", []string{"hh", "ll"}, []string{"OLAF pays on this line's side of slots 4: _1,0 _1,1"}},
		{"upwards", "ns", []string{"ll", "uu"}, []string{"OLAF pays on this line's side of slots 2: _1,0 _1,1"}},
		{"an island", "ns", []string{"hlh", "hhh"}, []string{"OLAF pays within this line, where it is lower: |0,1 |0,2 _1,1"}},
		{"costs only", "ns", []string{"hu", "hu"}, []string{"OLAF costs left of this line: |0,1 |1,1"}},
		{"holes", "ns", []string{"h l", "   "}, nil},
		{"a list", "ns", []string{"hul"}, []string{"OLAF pays below this line: |0,2", "OLAF costs above this line: |0,1"}},
	} {
		var got []string
		m := signed(c.unit, c.rows...)
		for _, o := range m.outlines() {
			line := o.Name + ":"
			for _, e := range o.Edges {
				line += fmt.Sprintf(" %s%d,%d", map[bool]string{true: "_", false: "|"}[e.Level], e.Row, e.Series)
			}
			if got = append(got, line); o.Dashed != strings.Contains(o.Name, "costs") {
				t.Errorf("%s: %s: dashed is %v", c.name, o.Name, o.Dashed)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	means := signed("ns", "hl", "hl")
	if means.Compared = false; means.outlines() != nil {
		t.Error("a map of means has lines")
	}
}

// TestOutlinesAreDrawn checks the lines in a terminal: a staircase in a table, a line in a list, and a line next to the
// signs of a map that is too wide for numbers.
func TestOutlinesAreDrawn(t *testing.T) {
	wide := strings.Repeat("h", 15) + strings.Repeat("u", 2) + strings.Repeat("l", 13)
	for _, c := range []struct {
		name string
		m    *Map
		want string
	}{
		{"table", signed("ns", "hul", "hll"), `Map
┃ OLAF pays right of this line
╎ OLAF costs left of this line
slots \ rate   10G     20G    30G
           2  +5.0  ╎[0.0]  ┃−5.0
                    ━━━━━━
           4  +5.0   ┃−5.0   −5.0

`},
		{"list", signed("ns", "hul"), `Map
rate
 10G   +5.0  oooooooooooooooooooooooooooooo
╌╌╌╌ OLAF costs above this line
 20G  [0.0]
━━━━ OLAF pays below this line
 30G   −5.0  oooooooooooooooooooooooooooooo

`},
		{"signs", signed("ns", wide, wide), `Map
- lower, + higher, . can't be told; left rate 10G, right 300G
┃ OLAF pays right of this line
╎ OLAF costs left of this line
    2 | + + + + + + + + + + + + + + +╎. .┃- - - - - - - - - - - - -|
    4 | + + + + + + + + + + + + + + +╎. .┃- - - - - - - - - - - - -|

`},
	} {
		var b bytes.Buffer
		p := text.NewPage(&b, text.View{})
		c.m.print(p)
		if diff := cmp.Diff(c.want, b.String()); diff != "" || p.Err() != nil {
			t.Errorf("%s: %s %v", c.name, diff, p.Err())
		}
	}
	if sheet := signed("ns", "hul", "hll").sheet(0); len(sheet.Charts[0].Outlines) != 2 || sheet.Charts[0].Kind != table.Map || !strings.Contains(strings.Join(sheet.Notes, "; "), "full line: OLAF pays right of this line; dashed line: OLAF costs left of") {
		t.Errorf("%+v", sheet)
	}
}
