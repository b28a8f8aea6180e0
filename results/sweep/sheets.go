package sweep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
)

// Sheets lays out a kept sweep: its cells, a sheet and a figure a metric, and its comparisons.
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
	if len(d.Comparisons) > 0 {
		out = append(out, d.comparisonSheet())
	}
	return out, nil
}

// locate finds the places of cells and comparisons of a document that was read.
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

// cellSheet has a row a cell.
func (d *Document) cellSheet() table.Sheet {
	s := table.Sheet{Name: "Cells", Title: "Cells of the sweep, " + d.Rule, Notes: []string{"digest " + d.Digest}}
	for i := range d.Axes {
		s.Columns = append(s.Columns, table.Column{Header: d.Axes[i].Name})
	}
	s.Columns = append(s.Columns, table.Column{Header: "State"}, table.Column{Header: "Runs", Format: table.Integer}, table.Column{Header: "Left out", Format: table.Integer})
	for i := range d.Metrics {
		m := &d.Metrics[i]
		s.Columns = append(s.Columns, table.Column{Header: m.Title, Unit: m.Unit, Format: table.General}, table.Column{Header: m.Title + " ±", Unit: m.Unit, Format: table.General})
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

// value is a parameter's value: a number where it is printed as one.
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

// metricSheet has a metric over the axis with the most numbers, a column for every combination of the others, drawn as lines.
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
			s.Columns = append(s.Columns, table.Column{Header: name, Unit: m.Unit, Format: table.General}, table.Column{Header: name + " ±", Unit: m.Unit, Format: table.General})
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

// series names a line: the values of all axes but the one along it.
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

// sheet is a map as a sheet.
func (m *Map) sheet(n int) table.Sheet {
	s := table.Sheet{Name: sheetName(fmt.Sprintf("Map %d %s", n+1, m.Metric.Name)), Title: m.Title, Columns: []table.Column{{Header: m.Down + " \\ " + m.Across}}}
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
			case !pt.There:
				row = append(row, table.Missing("no value"))
			case pt.Sign == Undecided:
				row = append(row, table.S(m.cell(pt)))
			default:
				row = append(row, table.N(float64(pt.Stat.Mean)*m.By))
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// comparisonSheet has a row a comparison.
func (d *Document) comparisonSheet() table.Sheet {
	s := table.Sheet{Name: "Sweep comparisons", Title: "Differences over pairs of equal seed; p is Holm's over all places of the metric"}
	of := d.axis(d.Subject)
	for i := range d.Axes {
		if i != of {
			s.Columns = append(s.Columns, table.Column{Header: d.Axes[i].Name})
		}
	}
	s.Columns = append(s.Columns, table.Column{Header: "Metric"}, table.Column{Header: d.Subject}, table.Column{Header: "Against"},
		table.Column{Header: "Change", Unit: "%", Format: table.General}, table.Column{Header: "Difference", Format: table.General}, table.Column{Header: "Difference ±", Format: table.General},
		table.Column{Header: "Pairs", Format: table.Integer}, table.Column{Header: "p", Format: table.General}, table.Column{Header: "Would have been seen", Unit: "%", Format: table.General}, table.Column{Header: "Verdict"})
	for i := range d.Comparisons {
		c := &d.Comparisons[i]
		var row []table.Cell
		for k := range d.Axes {
			if k != of {
				row = append(row, d.value(k, c.at[k]))
			}
		}
		s.Rows = append(s.Rows, append(row, table.S(c.Metric), table.S(c.Subject), table.S(c.Versus), number(c.ChangePct), number(c.Difference.Mean), number(c.Difference.CI95),
			table.I(int64(c.Difference.N)), number(c.PHolm), number(c.DetectablePct), table.S(c.Sign)))
	}
	return s
}

// sheetName is a name in what a workbook allows.
func sheetName(name string) string {
	const most = 31
	runes := []rune(name)
	return string(runes[:min(most, len(runes))])
}
