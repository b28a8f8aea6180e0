package result

import (
	"strconv"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Block is a grid of cells whose values have the same unit.
type Block struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Map is the label of the rows if the block is a map. The rows and columns of a map have numbers as names, and its
	// cells are shares in per cent.
	Map     string   `json:"map,omitempty"`
	XLabel  string   `json:"x_label,omitempty"` // label of a map's columns
	Columns []string `json:"columns"`
	Rows    []Line   `json:"rows"`
}

// Line is a row of a block. Each cell is a statistic over seeds.
type Line struct {
	Name  string              `json:"name"`
	Cells []results.Statistic `json:"cells"`
}

// sheet returns a block as a sheet. Its chart has a group of bars for each row and a series for each column.
func (b *Block) sheet() table.Sheet {
	if b.Map != "" {
		return b.mapSheet()
	}
	s := table.Sheet{Title: b.Name, Columns: []table.Column{{Header: ""}}}
	chart := table.Chart{Kind: table.Bars, Title: b.Name, YTitle: b.Unit}
	other := table.Chart{Kind: table.Bars, YTitle: "%"}
	for i, column := range b.Columns {
		of, unit := &chart, b.Unit
		if strings.HasSuffix(column, " %") && unit != "%" { // a share needs its own axis
			of, unit = &other, "%"
		}
		s.Columns = append(s.Columns, table.Column{Header: column, Unit: unit, Format: table.General},
			table.Column{Header: column + " ±", Unit: unit, Format: table.General})
		of.Series = append(of.Series, table.Series{Name: strings.TrimSuffix(column, " %"), Column: 2*i + 1, ErrorColumn: 2*i + 2})
	}
	for _, line := range b.Rows {
		cells := []table.Cell{table.S(line.Name)}
		for i := range min(len(line.Cells), len(b.Columns)) {
			cells = append(cells, sheets.Mean(&line.Cells[i]), sheets.Half(&line.Cells[i]))
		}
		for len(cells) < len(s.Columns) {
			cells = append(cells, table.Missing("no value"))
		}
		s.Rows = append(s.Rows, cells)
	}
	for _, c := range []table.Chart{chart, other} {
		if len(c.Series) > 0 {
			s.Charts = append(s.Charts, c)
		}
	}
	if len(s.Charts) > 1 {
		s.Charts[1].Title = "shares of " + b.Name
	}
	return s
}

// mapSheet returns a map as a sheet, with a row for each of the map's values.
func (b *Block) mapSheet() table.Sheet {
	number := func(name string) table.Cell {
		v, err := strconv.ParseFloat(name, 64)
		if err != nil {
			return table.S(name)
		}
		return table.N(v)
	}
	s := table.Sheet{Title: b.Name, Columns: []table.Column{{Header: b.Map, Format: table.General}}}
	chart := table.Chart{Kind: table.Map, Title: b.Name, XTitle: b.XLabel, YTitle: b.Map, ZTitle: "arrived [" + b.Unit + "]", YMax: 100}
	for i, column := range b.Columns {
		chart.Series = append(chart.Series, table.Series{Name: column, Column: i + 1})
		s.Columns = append(s.Columns, table.Column{Header: column + " %", Format: table.Fixed1})
	}
	for _, line := range b.Rows {
		cells := []table.Cell{number(line.Name)}
		for i := range line.Cells {
			cells = append(cells, sheets.Mean(&line.Cells[i]))
		}
		s.Rows = append(s.Rows, cells)
	}
	s.Charts = []table.Chart{chart}
	return s
}

// print prints the block as a table, unless it is a map. Experiments print their maps themselves.
func (b *Block) print(page *text.Page) {
	if b.Map != "" {
		return
	}
	unit := ""
	if b.Unit != "" {
		unit = ", " + b.Unit
	}
	page.Printf("\n")
	page.Say("", "%s%s", b.Name, unit)
	g := &table.Grid{Columns: []table.GridColumn{{Header: ""}}}
	for _, column := range b.Columns {
		g.Columns = append(g.Columns, table.GridColumn{Header: column, Right: true, Prose: true})
	}
	for _, line := range b.Rows {
		row := []string{line.Name}
		for i := range line.Cells {
			row = append(row, value(&line.Cells[i]))
		}
		g.Add(row...)
	}
	page.Grid(g)
}

// value returns a statistic as text. The interval is omitted if it is missing or 0.
func value(s *results.Statistic) string {
	mean, half := text.FormatRoundedParts(s, 1)
	if half == "" || half == "0" {
		return mean
	}
	return mean + " ± " + half
}
