package sheets

import (
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/table"
)

// PublishedName is the name of the sheet with published numbers.
const PublishedName = "Paper"

// PublishedSheet returns a sheet with the paper's numbers and our results. It has a panel for each column of the
// paper's tables, and also contains our results under other assumptions, if there are any.
func PublishedSheet(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: PublishedName, Title: "Ours with the 95 % interval beside what the paper printed", Columns: []table.Column{{Header: "row"}}}
	var printed []*results.PaperRow
	others := map[string]bool{} // columns that have other assumptions
	for i := range b.Paper {
		p := &b.Paper[i]
		if p.Published.Known() && p.Ours.Known() && (p.Kind == "" || p.Kind == string(paper.Value)) { // a bound is not a point
			printed = append(printed, p)
			others[p.Column+p.Unit] = others[p.Column+p.Unit] || len(p.Sensitivity) > 0
		}
	}
	for _, p := range printed {
		name := "ours"
		if others[p.Column+p.Unit] {
			name = "ours, as judged"
		}
		series, row := publishedSeries(&s, p, name), publishedRow(&s, p.Row)
		row[series.Column], row[series.ErrorColumn], row[series.PaperColumn] = number(p.Ours.Mean, ""), Half(&p.Ours), number(p.Published, "")
		for k := range p.Sensitivity {
			other := &p.Sensitivity[k]
			series, row := publishedSeries(&s, p, other.Assumption), publishedRow(&s, p.Row)
			row[series.Column], row[series.ErrorColumn] = number(other.Ours.Mean, ""), Half(&other.Ours)
		}
	}
	return s
}

// publishedSeries returns the series with the given name in the panel for p's column. It adds the series if it is
// missing. The first series of a panel also has a column for the published numbers.
func publishedSeries(s *table.Sheet, p *results.PaperRow, name string) table.Series {
	column := strings.TrimSuffix(strings.ReplaceAll(p.Column, "_", " "), " pct")
	title := column
	if column != "" {
		title = strings.ToUpper(column[:1]) + column[1:]
	}
	if p.Unit != "" {
		column += " [" + p.Unit + "]"
	}
	at := slices.IndexFunc(s.Charts, func(c table.Chart) bool { return c.YTitle == column })
	if at < 0 {
		at = len(s.Charts)
		s.Charts = append(s.Charts, table.Chart{Kind: table.Bars, Title: title, YTitle: column})
	}
	chart := &s.Charts[at]
	if k := slices.IndexFunc(chart.Series, func(one table.Series) bool { return one.Name == name }); k >= 0 {
		return chart.Series[k]
	}
	one := table.Series{Name: name, Column: len(s.Columns), ErrorColumn: len(s.Columns) + 1}
	s.Columns = append(s.Columns, table.Column{Header: column + ", " + name, Format: table.General}, table.Column{Header: column + ", " + name + " ±", Format: table.General})
	if len(chart.Series) == 0 {
		one.PaperColumn = len(s.Columns)
		s.Columns = append(s.Columns, table.Column{Header: column + ", paper", Format: table.General})
	}
	for k := range s.Rows {
		s.Rows[k] = pad(s.Rows[k], len(s.Columns))
	}
	chart.Series = append(chart.Series, one)
	return one
}

// publishedRow returns the row with the given name. It adds the row if it is missing.
func publishedRow(s *table.Sheet, name string) []table.Cell {
	at := slices.IndexFunc(s.Rows, func(row []table.Cell) bool { return row[0].Text == name })
	if at < 0 {
		at = len(s.Rows)
		s.Rows = append(s.Rows, pad([]table.Cell{table.S(name)}, len(s.Columns)))
	}
	return s.Rows[at]
}
