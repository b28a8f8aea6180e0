package result

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// Sheets returns the sheets of a stored document.
func Sheets(document []byte) ([]table.Sheet, error) {
	r, err := Read(document)
	if err != nil {
		return nil, err
	}
	return r.Sheets(), nil
}

// Sheets returns the sheets of the result: those of its rows and one for each block. If there are panels or charts of
// rows, a sheet with charts for each group of panels and one with printed numbers follow.
func (r *Result) Sheets() []table.Sheet {
	out := r.rowSheets()
	for i := range r.Blocks {
		s := r.Blocks[i].sheet()
		s.Name = sheetName(r.Experiment, r.Artefact, fmt.Sprintf("%d %s", i+1, r.Blocks[i].Name))
		out = append(out, s)
	}
	if len(r.Panels) == 0 && !slices.ContainsFunc(r.Metrics, func(m *metric.Metric) bool { return m.Column != "" }) {
		return out
	}
	for _, group := range r.groups() {
		s := sheetOf(group)
		s.Name = unlike(sheetName(r.Experiment, r.Artefact, group[0].figure()), out)
		if len(s.Rows) > 0 {
			out = append(out, s)
		}
	}
	return append(out, sheets.PublishedSheet(&results.Bench{Paper: r.PaperRows}))
}

// groups returns the panels, grouped by the figure that they share.
func (r *Result) groups() (groups [][]*Panel) {
	for i := range r.Panels {
		p := &r.Panels[i]
		at := slices.IndexFunc(groups, func(g []*Panel) bool { return g[0].figure() == p.figure() && g[0].XLabel == p.XLabel })
		if at < 0 {
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], p)
	}
	return groups
}

func (p *Panel) figure() string {
	if p.Group != "" {
		return p.Group
	}
	return p.Name
}

// sheetName returns a sheet name that is unique in the experiment and valid in a workbook.
func sheetName(experiment, artefact, group string) string {
	if len(artefact) > len("Table 12") {
		artefact = paper.FileName(experiment)
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:\/?*[]`, r) {
			return '-'
		}
		return r
	}, artefact+" "+group)
	return string([]rune(name)[:min(mostOfName, len([]rune(name)))])
}

// mostOfName is the maximum length of a sheet name in a workbook.
const mostOfName = 31

// unlike returns name, with a number appended if another sheet already has this name. Names can be equal because they
// were shortened.
func unlike(name string, taken []table.Sheet) string {
	one := name
	for n := 2; slices.ContainsFunc(taken, func(s table.Sheet) bool { return s.Name == one }); n++ {
		end := fmt.Sprintf(" %d", n)
		runes := []rune(name)
		one = string(runes[:min(len(runes), mostOfName-len(end))]) + end
	}
	return one
}

// sheetOf returns a sheet for panels. Its columns are x, a mean and a half-width for each series, and the printed
// numbers.
func sheetOf(panels []*Panel) table.Sheet {
	s := table.Sheet{Title: titleOf(panels), Columns: []table.Column{{Header: panels[0].XLabel, Format: table.General}}}
	rows := map[float64]int{}
	for _, x := range allX(panels) {
		rows[x] = len(s.Rows)
		s.Rows = append(s.Rows, []table.Cell{table.N(x)})
	}
	for _, p := range panels {
		chart := table.Chart{Kind: table.Lines, Title: p.Name, XTitle: p.XLabel, YTitle: p.YLabel}
		prefix := ""
		if len(panels) > 1 {
			prefix = p.Name + ": "
		}
		var printed *Series
		for i := range p.Series {
			one := &p.Series[i]
			if one.Name == PaperSeries {
				printed = one
				continue
			}
			chart.Series = append(chart.Series, table.Series{Name: one.Name, Column: len(s.Columns), ErrorColumn: len(s.Columns) + 1})
			addColumn(&s, prefix+one.Name, rows, one, sheets.Mean)
			addColumn(&s, prefix+one.Name+" ±", rows, one, sheets.Half)
		}
		if printed != nil && len(chart.Series) > 0 {
			chart.Series[0].PaperColumn = len(s.Columns)
			addColumn(&s, prefix+PaperSeries, rows, printed, sheets.Mean)
		}
		s.Charts = append(s.Charts, chart)
	}
	return s
}

// titleOf returns the title of the sheet for the given panels.
func titleOf(panels []*Panel) string {
	if len(panels) == 1 {
		return panels[0].Name + ": " + panels[0].YLabel
	}
	var labels []string
	for _, p := range panels {
		if !slices.Contains(labels, p.YLabel) {
			labels = append(labels, p.YLabel)
		}
	}
	return strings.Join(labels, "; ")
}

// allX returns all values of x in the panels' series, in ascending order.
func allX(panels []*Panel) (all []float64) {
	for _, p := range panels {
		for _, s := range p.Series {
			all = append(all, s.X[:min(len(s.X), len(s.Y))]...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// addColumn adds a column to a sheet, with a value for each point of a series. rows maps values of x to rows.
func addColumn(s *table.Sheet, header string, rows map[float64]int, one *Series, value func(*results.Statistic) table.Cell) {
	s.Columns = append(s.Columns, table.Column{Header: header, Format: table.General})
	for k := range s.Rows {
		s.Rows[k] = append(s.Rows[k], table.Missing("no value"))
	}
	for i := range min(len(one.X), len(one.Y)) {
		if y := &one.Y[i]; y.Known() {
			row := s.Rows[rows[one.X[i]]]
			row[len(row)-1] = value(y)
		}
	}
}
