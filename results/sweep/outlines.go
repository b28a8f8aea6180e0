package sweep

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// outlines returns the lines on a map at which the sign of a comparison changes. One surrounds the places at which the
// subject is better. Another surrounds the places at which it is worse, where undecided places are in between. A map of
// means has no outlines.
func (m *Map) outlines() (all []table.Outline) {
	if !m.Compared {
		return nil
	}
	gain := best(m.Metric)
	loss := map[string]string{lower: higher, higher: lower}[gain]
	pays, costs := table.Outline{}, table.Outline{Dashed: true}
	for i := range m.Points {
		for k := range m.Points[i] {
			for _, e := range []table.Edge{{Row: i, Series: k}, {Row: i, Series: k, Level: true}} {
				switch before, here := m.across(e); {
				case before == here || before == "" || here == "":
				case before == gain || here == gain:
					pays.Edges = append(pays.Edges, e)
				default:
					costs.Edges = append(costs.Edges, e)
				}
			}
		}
	}
	for _, o := range []struct {
		*table.Outline
		verb, sign string
	}{{&pays, "pays", gain}, {&costs, "costs", loss}} {
		if len(o.Edges) > 0 {
			o.Name = fmt.Sprintf("%s %s %s", strings.ToUpper(m.Subject), o.verb, m.side(o.Edges, o.sign))
			all = append(all, *o.Outline)
		}
	}
	return all
}

// across returns the signs of the comparisons on both sides of an edge. They are empty if a side is outside the map.
func (m *Map) across(e table.Edge) (before, here string) {
	row, column := e.Row, e.Series-1
	if e.Level {
		row, column = e.Row-1, e.Series
	}
	if row < 0 || column < 0 {
		return "", ""
	}
	return m.Points[row][column].Sign, m.Points[e.Row][e.Series].Sign
}

// side returns a text that names the side of an outline on which the places with the given sign are.
func (m *Map) side(edges []table.Edge, sign string) string {
	upright, level := map[bool]bool{}, map[bool]bool{}
	for _, e := range edges {
		_, here := m.across(e)
		if e.Level {
			level[here == sign] = true
		} else {
			upright[here == sign] = true
		}
	}
	right, left := "right of", "left of"
	if m.Down == "" { // values are printed downwards
		right, left = "below", "above"
	}
	last := len(m.Rows) - 1
	switch {
	case len(upright) == 1 && upright[true]:
		return right + " this line"
	case len(upright) == 1:
		return left + " this line"
	case len(upright) == 0 && len(level) == 1 && level[true]:
		return fmt.Sprintf("on this line's side of %s %s", m.Down, m.Rows[last])
	case len(upright) == 0 && len(level) == 1:
		return fmt.Sprintf("on this line's side of %s %s", m.Down, m.Rows[0])
	}
	return "within this line, where it is " + sign
}

// strokes contains the characters with which an outline is drawn in a terminal.
type strokes struct{ upright, level string }

func strokesOf(o *table.Outline) strokes {
	if o.Dashed {
		return strokes{"╎", "╌"}
	}
	return strokes{"┃", "━"}
}

// marks returns the characters for drawing outlines in a terminal, by row and column. upright contains those to the
// left of values, and level those above values.
func (m *Map) marks() (upright, level map[[2]int]string) {
	upright, level = map[[2]int]string{}, map[[2]int]string{}
	for _, o := range m.outlines() {
		for _, e := range o.Edges {
			if e.Level {
				level[[2]int{e.Row, e.Series}] = strokesOf(&o).level
			} else {
				upright[[2]int{e.Row, e.Series}] = strokesOf(&o).upright
			}
		}
	}
	return upright, level
}

// sayOutlines prints an explanation of the outlines on a map.
func (m *Map) sayOutlines(p *text.Page) {
	for _, o := range m.outlines() {
		p.Say("", "%s %s", strokesOf(&o).upright, o.Name)
	}
}
