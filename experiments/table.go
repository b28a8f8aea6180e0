package experiments

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// TableSchema heads the document of a table.
const TableSchema = "olafctl.table/v2"

// Table is what an experiment found that fills cells, in one or more blocks.
type Table struct {
	Schema     string             `json:"schema"`
	Experiment string             `json:"experiment"`
	Artefact   string             `json:"artefact"`
	Config     any                `json:"config"`
	Quick      bool               `json:"quick,omitempty"`
	Short      string             `json:"short,omitempty"` // says that it has too few seeds to be judged
	Terms      []string           `json:"terms,omitempty"` // of a comparison of systems, printed above it
	Blocks     []Block            `json:"blocks"`
	Statements []string           `json:"statements"`
	PaperRows  []results.PaperRow `json:"paper,omitempty"`
	Partial    bool               `json:"partial,omitempty"` // left before its end: the statements say how much of it there is
	err        error
}

// Block is one grid of cells of the same unit.
type Block struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Columns []string `json:"columns"`
	Rows    []Line   `json:"rows"`
}

// Line is one row of a block: a statistic over seeds a column.
type Line struct {
	Name  string              `json:"name"`
	Cells []results.Statistic `json:"cells"`
}

// NewTable starts the table of an experiment.
func NewTable(experiment, artefact string, o *Options, config any) *Table {
	return &Table{Schema: TableSchema, Experiment: experiment, Artefact: artefact, Config: config, Quick: o.Quick}
}

// TooShort returns a line for a comparison of fewer seeds than it takes to be judged; empty for one of enough.
func TooShort(seeds, enough int) string {
	if seeds >= enough {
		return ""
	}
	return fmt.Sprintf("too short: %d of %s; no order below is judged", seeds, olaf.Plural(enough, "seed"))
}

// Say adds a statement.
func (t *Table) Say(format string, args ...any) {
	t.Statements = append(t.Statements, fmt.Sprintf(format, args...))
}

// Compare sets ours beside what the paper says of this artefact.
func (t *Table) Compare(ours paper.Ours) { t.PaperRows = paper.Compare(ours, t.Experiment) }

// Fail says that the table rests on a run that must not be used.
func (t *Table) Fail(err error) { t.err = err }

// Document is the JSON form.
func (t *Table) Document() any { return t }

// Paper compares with the published numbers.
func (t *Table) Paper() []results.PaperRow { return t.PaperRows }

// Err is nil when every run was complete and valid.
func (t *Table) Err() error { return t.err }

// Table lists every cell.
func (t *Table) Table() (header []string, rows [][]string) {
	header = []string{"block", "row", "column", "unit", "mean", "sd", "ci95", "min", "max", "n"}
	for _, b := range t.Blocks {
		for _, line := range b.Rows {
			for i := range line.Cells {
				c := &line.Cells[i]
				rows = append(rows, []string{b.Name, line.Name, b.Columns[i], b.Unit, text.Exact(c.Mean), text.Exact(c.SD), text.Exact(c.CI95),
					text.Exact(c.Min), text.Exact(c.Max), fmt.Sprint(c.N)})
			}
		}
	}
	return header, rows
}

// TableSheets lays out the document of a kept table.
func TableSheets(document []byte) ([]table.Sheet, error) {
	t := new(Table)
	if err := json.Unmarshal(document, t); err != nil {
		return nil, fmt.Errorf("lay out a table: %w", err)
	}
	return t.Sheets(), nil
}

// Sheets is a sheet with a chart for every block: a group of bars a row, a series a column.
func (t *Table) Sheets() []table.Sheet {
	var all []table.Sheet
	for i := range t.Blocks {
		s := t.Blocks[i].sheet()
		s.Name = sheetName(t.Experiment, t.Artefact, fmt.Sprintf("%d %s", i+1, t.Blocks[i].Name))
		all = append(all, s)
	}
	return all
}

func (b *Block) sheet() table.Sheet {
	s := table.Sheet{Title: b.Name, Columns: []table.Column{{Header: ""}}}
	chart := table.Chart{Kind: table.Bars, Title: b.Name, YTitle: b.Unit}
	other := table.Chart{Kind: table.Bars, YTitle: "%"}
	for i, column := range b.Columns {
		of, unit := &chart, b.Unit
		if strings.HasSuffix(column, " %") && unit != "%" { // a share needs its own axis
			of, unit = &other, "%"
		}
		s.Columns = append(s.Columns, table.Column{Header: column, Unit: unit, Format: table.General}, table.Column{Header: column + " ±", Unit: unit, Format: table.General})
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

// WriteText prints the blocks, then the paper's numbers, then what can and cannot be said.
func (t *Table) WriteText(w io.Writer, v text.View) error {
	p := text.NewPage(w, v)
	quick := ""
	if t.Quick {
		quick = " (quick: fewer seeds than its own)"
	}
	p.Say("", "%s: %s%s", t.Experiment, t.Artefact, quick)
	if t.Short != "" {
		p.Say("", "%s", t.Short)
	}
	for _, term := range t.Terms {
		p.Say("  ", "%s", term)
	}
	for i := range t.Blocks {
		t.Blocks[i].print(p)
	}
	p.Printf("\n")
	if len(t.PaperRows) > 0 {
		p.Paper(t.PaperRows)
	}
	for _, s := range t.Statements {
		p.Say("- ", "%s", s)
	}
	return p.Err()
}

// print is the block as a table.
func (b *Block) print(page *text.Page) {
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

// value leaves out an interval of nothing, as of what does not depend on the seed.
func value(s *results.Statistic) string {
	mean, half := text.RoundedParts(s, 1)
	if half == "" || half == "0" {
		return mean
	}
	return mean + " ± " + half
}
