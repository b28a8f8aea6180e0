package compare

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
)

// Sheet lays the comparison out with every digit: its lines, and behind them the ages of single clusters, which are not tested. An age that
// was set beside the twin's has the twin's of the plan, and of the arrivals that were logged, in its row.
func (d *Document) Sheet() table.Sheet {
	number := table.General
	s := table.Sheet{Name: "Compare", Title: d.B + " against " + d.A, Columns: []table.Column{{Header: "queue"}, {Header: "output rate"}, {Header: "metric"}, {Header: "unit"},
		{Header: "A", Format: number}, {Header: "±", Format: number}, {Header: "B", Format: number}, {Header: "±", Format: number},
		{Header: "change", Unit: "%", Format: table.Fixed1}, {Header: "paired diff", Format: number}, {Header: "±", Format: number},
		{Header: "test"}, {Header: "p", Format: table.Fixed3}, {Header: "p (Holm)", Format: table.Fixed3}, {Header: "p (signed rank)", Format: table.Fixed3}, {Header: "effect", Format: table.Fixed3}, {Header: "n"}, {Header: "verdict"},
		{Header: "cluster"}, {Header: "plan of A", Format: number}, {Header: "twin of A", Format: number}, {Header: "plan of B", Format: number}, {Header: "twin of B", Format: number}}}
	for i := range d.Lines {
		l := &d.Lines[i]
		row := append(bothSides(l.Queue, l.OutRateBPS, l.Title, l.Unit, &l.A, &l.B, l.ChangePct), cell(l.Difference.Mean), cell(l.Difference.CI95),
			table.S(l.Test), cell(l.P), cell(l.PHolm), cell(l.PSignedRank), cell(l.Effect), table.S(fmt.Sprintf("%d+%d", l.A.N, l.B.N)), table.S(l.Verdict), table.S(""))
		a, b := d.besideOf(l)
		s.Rows = append(s.Rows, append(row, twinsOf(a, b)...))
	}
	for i := range d.Clusters {
		c := &d.Clusters[i]
		row := append(bothSides(c.Queue, c.OutRateBPS, c.Title, "ns", &c.A, &c.B, c.ChangePct), make([]table.Cell, 7)...)
		row = append(row, table.S(fmt.Sprintf("%d+%d", c.A.N, c.B.N)), table.S(""), table.S(fmt.Sprint(c.Cluster)))
		s.Rows = append(s.Rows, append(row, twinsOf(c.A.Beside, c.B.Beside)...))
	}
	s.Notes = d.notes()
	return s
}

func cell(f results.Float) table.Cell { return table.N(float64(f)) }

// bothSides begins a row with what was compared, and both sides of it.
func bothSides(queue string, rate int64, title, unit string, a, b *results.Statistic, change results.Float) []table.Cell {
	return []table.Cell{table.S(queue), table.S(olaf.Rate(rate).String()), table.S(title), table.S(unit), cell(a.Mean), cell(a.CI95), cell(b.Mean), cell(b.CI95), cell(change)}
}

// besideOf is what either side of a line was set beside; nil where it was not.
func (d *Document) besideOf(l *Line) (a, b *results.Beside) {
	for i := range d.Beside {
		if o := &d.Beside[i]; o.Queue == l.Queue && o.OutRateBPS == l.OutRateBPS && o.Metric == l.Metric {
			return o.A, o.B
		}
	}
	return nil, nil
}

// twinsOf are plan and twin of each side, empty where it has none.
func twinsOf(sides ...*results.Beside) (cells []table.Cell) {
	for _, b := range sides {
		if b == nil {
			cells = append(cells, table.Cell{}, table.Cell{})
			continue
		}
		cells = append(cells, cell(b.Plan), cell(b.Twin))
	}
	return cells
}
