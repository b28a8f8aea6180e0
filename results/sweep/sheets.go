package sweep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
)

// Sheets returns the sheets of a stored sweep. They contain its cells, one table and figure for each metric, coloured
// maps, and the analysis.
func Sheets(document []byte) ([]table.Sheet, error) {
	d := new(Document)
	if err := json.Unmarshal(document, d); err != nil {
		return nil, fmt.Errorf("lay out a sweep: %w", err)
	}
	if err := d.locate(); err != nil {
		return nil, err
	}
	out := []table.Sheet{d.cellSheet()}
	for i := range d.Metrics {
		out = append(out, d.metricSheet(&d.Metrics[i]))
	}
	for i := range d.Metrics {
		for k, m := range d.Maps(&d.Metrics[i]) {
			if m.Down != "" {
				out = append(out, m.sheet(k))
			}
		}
	}
	for _, s := range []table.Sheet{d.crossingSheet(), d.sensitivitySheet()} {
		if len(s.Rows) > 0 {
			out = append(out, s)
		}
	}
	for i := range d.Fronts {
		out = append(out, d.frontSheet(&d.Fronts[i]))
	}
	if len(d.Comparisons) > 0 {
		out = append(out, d.comparisonSheet())
	}
	return out, nil
}

// locate finds the indexes on all axes for the cells and comparisons of a document that was read.
func (d *Document) locate() error {
	of := d.axis(d.Subject)
	for i := range d.Cells {
		at, ok := d.placeOf(d.Cells[i].Parameters, "", "")
		if !ok {
			return fmt.Errorf("cell %d has a value that no axis has", i)
		}
		d.Cells[i].at = at
	}
	for i := range d.Comparisons {
		c := &d.Comparisons[i]
		at, ok := d.placeOf(c.Parameters, d.Subject, c.Versus)
		if !ok || of < 0 {
			return fmt.Errorf("comparison %d has a value that no axis has", i)
		}
		c.at = at
	}
	return nil
}

func (d *Document) placeOf(p map[string]Value, extra, value string) (at []int, ok bool) {
	at = make([]int, len(d.Axes))
	for k := range d.Axes {
		v := string(p[d.Axes[k].Name])
		if d.Axes[k].Name == extra {
			v = value
		}
		if at[k] = slices.Index(d.Axes[k].Values, v); at[k] < 0 {
			return nil, false
		}
	}
	return at, true
}

// cellSheet returns a sheet with a row for each cell.
func (d *Document) cellSheet() table.Sheet {
	s := table.Sheet{Name: "Cells", Title: "Cells of the sweep, " + d.Rule, Notes: []string{"digest " + d.Digest}}
	for i := range d.Axes {
		s.Columns = append(s.Columns, table.Column{Header: d.Axes[i].Name})
	}
	s.Columns = append(s.Columns, table.Column{Header: "State"}, table.Column{Header: "Runs", Format: table.Integer},
		table.Column{Header: "Left out", Format: table.Integer})
	for i := range d.Metrics {
		m := &d.Metrics[i]
		s.Columns = append(s.Columns, table.Column{Header: m.Title, Unit: m.Unit, Format: table.General},
			table.Column{Header: m.Title + " ±", Unit: m.Unit, Format: table.General})
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		var row []table.Cell
		for k := range d.Axes {
			row = append(row, d.value(k, c.at[k]))
		}
		row = append(row, table.S(string(c.State)), table.I(int64(c.Runs)), table.I(int64(c.InvalidRuns)))
		for k := range d.Metrics {
			st := c.Statistics.Of(d.Metrics[k].Name)
			row = append(row, number(st.Mean), number(st.CI95))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// value returns a parameter's value as a cell of a sheet. It is a number if it is printed as one, and otherwise text.
func (d *Document) value(axis, at int) table.Cell {
	a := &d.Axes[axis]
	if len(a.Numbers) > 0 && a.Unit == "" {
		return table.N(a.Numbers[at])
	}
	return table.S(a.Values[at])
}

func number(f results.Float) table.Cell {
	if !f.Known() {
		return table.Missing("no value")
	}
	return table.N(float64(f))
}

// metricSheet returns a sheet that shows a metric as a function of the axis with the most numbers. It has a column for
// each combination of values on the other axes, drawn as a line.
func (d *Document) metricSheet(m *Shown) table.Sheet {
	x, _ := d.plane(-1)
	s := table.Sheet{Name: sheetName(m.Name), Title: m.Title}
	if x < 0 {
		return s
	}
	label := d.Axes[x].Name
	if d.Axes[x].Unit != "" {
		label += " [" + d.Axes[x].Unit + "]"
	}
	s.Columns = []table.Column{{Header: label, Format: table.General}}
	for i := range d.Axes[x].Values {
		cell := table.S(d.Axes[x].Values[i])
		if len(d.Axes[x].Numbers) > 0 {
			cell = table.N(d.Axes[x].Numbers[i])
		}
		s.Rows = append(s.Rows, []table.Cell{cell})
	}
	yTitle := m.Title
	if m.Unit != "" {
		yTitle += " [" + m.Unit + "]"
	}
	chart := table.Chart{Kind: table.Lines, Title: m.Title, XTitle: label, YTitle: yTitle}
	if len(d.Axes[x].Numbers) == 0 {
		chart.Kind = table.Bars
	}
	columns := map[string]int{}
	for i := range d.Cells {
		c := &d.Cells[i]
		name := d.series(c.at, x)
		at, known := columns[name]
		if !known {
			at = len(s.Columns)
			columns[name] = at
			s.Columns = append(s.Columns, table.Column{Header: name, Unit: m.Unit, Format: table.General},
				table.Column{Header: name + " ±", Unit: m.Unit, Format: table.General})
			for k := range s.Rows {
				s.Rows[k] = append(s.Rows[k], table.Missing("no value"), table.Missing("no value"))
			}
			chart.Series = append(chart.Series, table.Series{Name: name, Column: at, ErrorColumn: at + 1})
		}
		st := c.Statistics.Of(m.Name)
		s.Rows[c.at[x]][at], s.Rows[c.at[x]][at+1] = number(st.Mean), number(st.CI95)
	}
	s.Charts = []table.Chart{chart}
	return s
}

// series returns the name of a line in a figure, which contains the values on all axes except along.
func (d *Document) series(at []int, along int) string {
	var parts []string
	for i, v := range at {
		if i != along && d.varies(i) {
			parts = append(parts, d.Axes[i].Name+" "+d.Axes[i].Values[v])
		}
	}
	if len(parts) == 0 {
		return "mean"
	}
	return strings.Join(parts, ", ")
}

// sheet returns the map as a sheet. n is the number of the map.
func (m *Map) sheet(n int) table.Sheet {
	s := table.Sheet{Name: sheetName(fmt.Sprintf("Map %d %s", n+1, m.Metric.Name)), Title: m.Title,
		Columns: []table.Column{{Header: m.Down + " \\ " + m.Across}}}
	if m.Compared {
		s.Notes = []string{"a value in brackets can't be told from 0"}
	}
	for _, c := range m.Columns {
		s.Columns = append(s.Columns, table.Column{Header: c, Format: table.General})
	}
	for i, r := range m.Rows {
		row := []table.Cell{table.S(r)}
		for k := range m.Columns {
			switch pt := &m.Points[i][k]; {
			case !pt.Present:
				row = append(row, table.Missing("no value"))
			case pt.Sign == undecided:
				row = append(row, table.S(m.cell(pt)))
			default:
				row = append(row, table.N(float64(pt.Stat.Mean)*m.By))
			}
		}
		s.Rows = append(s.Rows, row)
	}
	chart := table.Chart{Kind: table.Map, Title: m.Title, XTitle: m.Across, YTitle: m.Down, ZTitle: m.colours(),
		Diverging: m.Compared, Outlines: m.outlines()}
	if m.Compared {
		chart.Empty = "can't be told from 0"
	}
	for _, o := range chart.Outlines {
		s.Notes = append(s.Notes, fmt.Sprintf("%s line: %s", map[bool]string{true: "dashed", false: "full"}[o.Dashed], o.Name))
	}
	for k, c := range m.Columns {
		chart.Series = append(chart.Series, table.Series{Name: c, Column: k + 1})
	}
	s.Charts = []table.Chart{chart}
	return s
}

// colours returns a text that explains the colours of the map in a figure.
func (m *Map) colours() string {
	if m.Compared {
		return "change, %"
	}
	return m.Title
}

// crossingSheet returns a sheet with a row for every crossing, where a comparison changes its sign along an axis.
func (d *Document) crossingSheet() table.Sheet {
	s := table.Sheet{Name: "Crossings", Title: "Where the sign of a comparison turns along an axis",
		Notes: []string{"between the two values it can't be told"}}
	for _, header := range []string{"Metric", d.Subject, "Against", "Axis", "Up to", "It is", "From", "It is then"} {
		s.Columns = append(s.Columns, table.Column{Header: header})
	}
	others := d.others(d.axis(d.Subject))
	for _, k := range others {
		s.Columns = append(s.Columns, table.Column{Header: d.Axes[k].Name})
	}
	for i := range d.Crossings {
		c := &d.Crossings[i]
		row := []table.Cell{table.S(c.Metric), table.S(c.Subject), table.S(c.Versus), table.S(c.Axis),
			table.S(string(c.After)), table.S(c.From), table.S(string(c.Before)), table.S(c.To)}
		for _, k := range others {
			v, fixed := c.Parameters[d.Axes[k].Name]
			cell := table.S(string(v))
			if !fixed {
				cell = table.Missing("the axis along which it turns")
			}
			row = append(row, cell)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// others returns the axes with several values, except the given one.
func (d *Document) others(without int) (axes []int) {
	for k := range d.Axes {
		if k != without && d.varies(k) {
			axes = append(axes, k)
		}
	}
	return axes
}

// together is the name of the row for the share that is explained only by several axes together.
const together = "only together"

// sensitivitySheet returns a sheet with a row for each axis and a column for each metric, drawn as bars.
func (d *Document) sensitivitySheet() table.Sheet {
	s := table.Sheet{Name: "Sensitivity",
		Title:   "Share of the variance over the cells explained by each axis alone (η²)",
		Columns: []table.Column{{Header: "Axis"}}}
	if len(d.Sensitivity) == 0 {
		return s
	}
	chart := table.Chart{Kind: table.Bars, Title: s.Title, YTitle: "share [%]"}
	for _, share := range d.Sensitivity[0].Shares {
		s.Rows = append(s.Rows, []table.Cell{table.S(share.Axis)})
	}
	s.Rows = append(s.Rows, []table.Cell{table.S(together)})
	for i := range d.Sensitivity {
		of := &d.Sensitivity[i]
		s.Columns = append(s.Columns, table.Column{Header: of.Metric, Unit: "%", Format: table.Fixed1})
		chart.Series = append(chart.Series, table.Series{Name: of.Metric, Column: i + 1})
		for k := range of.Shares {
			s.Rows[k] = append(s.Rows[k], number(100*of.Shares[k].Share))
		}
		s.Rows[len(of.Shares)] = append(s.Rows[len(of.Shares)], number(100*of.Rest))
	}
	s.Charts = []table.Chart{chart}
	return s
}

// frontSheet returns a sheet with a row for each cell on the front, drawn as a line over the first metric.
func (d *Document) frontSheet(f *Front) table.Sheet {
	s := table.Sheet{Name: "Pareto", Title: fmt.Sprintf(
		"Cells that no other beats in both %s (%s is better) and %s (%s)", f.Metrics[0], f.Best[0], f.Metrics[1],
		f.Best[1])}
	axes := d.others(-1)
	for _, k := range axes {
		s.Columns = append(s.Columns, table.Column{Header: d.Axes[k].Name})
	}
	chart := table.Chart{Kind: table.Lines, Title: "Pareto front", X: len(s.Columns)}
	for k, name := range f.Metrics {
		m := d.findMetric(name)
		column := table.Column{Header: m.Title, Unit: m.Unit, Format: table.General}
		s.Columns = append(s.Columns, column)
		if k == 0 {
			chart.XTitle = column.Title()
		} else {
			chart.YTitle, chart.Series = column.Title(), []table.Series{{Name: m.Title, Column: len(s.Columns) - 1}}
		}
	}
	for _, i := range f.Cells {
		c := &d.Cells[i]
		var row []table.Cell
		for _, k := range axes {
			row = append(row, d.value(k, c.at[k]))
		}
		for _, name := range f.Metrics {
			row = append(row, number(c.Statistics.Of(name).Mean))
		}
		s.Rows = append(s.Rows, row)
	}
	s.Charts = []table.Chart{chart}
	return s
}

// findMetric returns the metric of the sweep with the given name.
func (d *Document) findMetric(name string) *Shown {
	return &d.Metrics[slices.IndexFunc(d.Metrics, func(m Shown) bool { return m.Name == name })]
}

// comparisonSheet returns a sheet with a row for each comparison.
func (d *Document) comparisonSheet() table.Sheet {
	s := table.Sheet{Name: "Sweep comparisons", Title: "Differences over pairs of equal seed; p is Holm's over all places of the metric"}
	of := d.axis(d.Subject)
	for i := range d.Axes {
		if i != of {
			s.Columns = append(s.Columns, table.Column{Header: d.Axes[i].Name})
		}
	}
	s.Columns = append(s.Columns, table.Column{Header: "Metric"}, table.Column{Header: d.Subject}, table.Column{Header: "Against"},
		table.Column{Header: "Change", Unit: "%", Format: table.General},
		table.Column{Header: "Difference", Format: table.General},
		table.Column{Header: "Difference ±", Format: table.General},
		table.Column{Header: "Pairs", Format: table.Integer}, table.Column{Header: "p", Format: table.General},
		table.Column{Header: "Would have been seen", Unit: "%", Format: table.General},
		table.Column{Header: "Verdict"})
	for i := range d.Comparisons {
		c := &d.Comparisons[i]
		var row []table.Cell
		for k := range d.Axes {
			if k != of {
				row = append(row, d.value(k, c.at[k]))
			}
		}
		s.Rows = append(s.Rows, append(row, table.S(c.Metric), table.S(c.Subject), table.S(c.Versus),
			number(c.ChangePct), number(c.Difference.Mean), number(c.Difference.CI95),
			table.I(int64(c.Difference.N)), number(c.PHolm), number(c.DetectablePct), table.S(c.Sign)))
	}
	return s
}

// sheetName shortens a name to the length that a workbook permits.
func sheetName(name string) string {
	const most = 31
	runes := []rune(name)
	return string(runes[:min(most, len(runes))])
}
