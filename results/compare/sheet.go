package compare

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
)

// Sheet returns the comparison in full precision. It contains the lines and then the ages of single clusters, which are
// not tested. The row of an age that was compared with the twin also contains the twin's values for planned and logged
// arrivals.
func (d *Document) Sheet() table.Sheet {
	number := table.General
	s := table.Sheet{Name: "Compare", Title: d.B + " against " + d.A, Columns: []table.Column{{Header: "queue"},
		{Header: "output rate"}, {Header: "metric"}, {Header: "unit"},
		{Header: "A", Format: number}, {Header: "±", Format: number}, {Header: "B", Format: number},
		{Header: "±", Format: number},
		{Header: "change", Unit: "%", Format: table.Fixed1}, {Header: "paired diff", Format: number},
		{Header: "±", Format: number},
		{Header: "test"}, {Header: "p", Format: table.Fixed3}, {Header: "p (Holm)", Format: table.Fixed3},
		{Header: "p (signed rank)", Format: table.Fixed3}, {Header: "effect", Format: table.Fixed3}, {Header: "n"},
		{Header: "verdict"},
		{Header: "cluster"}, {Header: "plan of A", Format: number}, {Header: "twin of A", Format: number},
		{Header: "plan of B", Format: number}, {Header: "twin of B", Format: number}}}
	for i := range d.Lines {
		l := &d.Lines[i]
		row := append(bothSides(l.Queue, l.OutRateBPS, l.Title, l.Unit, &l.A, &l.B, l.ChangePct),
			numberCell(l.Difference.Mean), numberCell(l.Difference.CI95),
			table.S(l.Test), numberCell(l.P), numberCell(l.PHolm), numberCell(l.PSignedRank), numberCell(l.Effect),
			table.S(fmt.Sprintf("%d+%d", l.A.N, l.B.N)), table.S(l.Verdict), table.S(""))
		a, b := d.twinComparisons(l)
		s.Rows = append(s.Rows, append(row, twinsOf(a, b)...))
	}
	for i := range d.Clusters {
		c := &d.Clusters[i]
		row := append(bothSides(c.Queue, c.OutRateBPS, c.Title, "ns", &c.A, &c.B, c.ChangePct), make([]table.Cell, 7)...)
		row = append(row, table.S(fmt.Sprintf("%d+%d", c.A.N, c.B.N)), table.S(""), table.S(fmt.Sprint(c.Cluster)))
		s.Rows = append(s.Rows, append(row, twinsOf(c.A.TwinComparison, c.B.TwinComparison)...))
	}
	s.Notes = d.notes()
	return s
}

func numberCell(f results.Float) table.Cell { return table.N(float64(f)) }

// bothSides returns the first cells of a row, which contain the configuration and the values of both sides.
func bothSides(queue string, rate int64, title, unit string, a, b *results.Statistic,
	change results.Float) []table.Cell {
	return []table.Cell{table.S(queue), table.S(olaf.Rate(rate).String()), table.S(title), table.S(unit),
		numberCell(a.Mean), numberCell(a.CI95), numberCell(b.Mean), numberCell(b.CI95), numberCell(change)}
}

// twinComparisons returns the comparison of a line with the twin for each side, or nil if a side has none.
func (d *Document) twinComparisons(l *Line) (a, b *results.TwinComparison) {
	for i := range d.TwinAges {
		if o := &d.TwinAges[i]; o.Queue == l.Queue && o.OutRateBPS == l.OutRateBPS && o.Metric == l.Metric {
			return o.A, o.B
		}
	}
	return nil, nil
}

// twinsOf returns the cells with the twin's values for planned and logged arrivals of each side. They are empty if a
// side has none.
func twinsOf(sides ...*results.TwinComparison) (cells []table.Cell) {
	for _, b := range sides {
		if b == nil {
			cells = append(cells, table.Cell{}, table.Cell{})
			continue
		}
		cells = append(cells, numberCell(b.Plan), numberCell(b.Twin))
	}
	return cells
}
