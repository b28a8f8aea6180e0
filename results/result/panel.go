package result

import (
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Series is a curve, with a statistic over seeds for each x.
type Series struct {
	Name string              `json:"name"`
	X    []float64           `json:"x"`
	Y    []results.Statistic `json:"y"`
}

// Last returns the statistic at the last point of the curve.
func (s *Series) Last() results.Statistic {
	if len(s.Y) == 0 {
		return Describe(nil)
	}
	return s.Y[len(s.Y)-1]
}

// PaperSeries is the name of the series that contains the numbers printed in the paper. Figures show it as crosses.
const PaperSeries = "paper"

// Panel is a pair of axes with curves in the same unit.
type Panel struct {
	Name string `json:"name"`
	// Group is the name of a figure that several panels share. A panel without a group is a separate figure.
	Group  string   `json:"group,omitempty"`
	XLabel string   `json:"x_label"` // label with the unit
	YLabel string   `json:"y_label"`
	Series []Series `json:"series"`
}

// print prints the panel as a table with a line for each value of x.
func (p *Panel) print(page *text.Page) {
	page.Printf("\n")
	page.Say("", "%s: %s", p.Name, p.YLabel)
	if len(p.Series) == 0 {
		return
	}
	g := &table.Grid{Columns: []table.GridColumn{{Header: p.XLabel, Right: true}}}
	for _, s := range p.Series {
		g.Columns = append(g.Columns, table.GridColumn{Header: s.Name, Right: true, Prose: true})
	}
	for i, x := range p.Series[0].X {
		row := []string{table.Column{Format: table.General}.Pretty(table.N(x))}
		for _, s := range p.Series {
			if i < len(s.Y) {
				row = append(row, text.FormatRounded(&s.Y[i], 1))
			}
		}
		g.Add(row...)
	}
	page.Grid(g)
}

// Describe returns a statistic of the given numbers.
func Describe(values []float64) results.Statistic {
	floats := make([]results.Float, len(values))
	for i, v := range values {
		floats[i] = results.Float(v)
	}
	return results.Describe(floats, "no run reached this point")
}
