package experiments

import (
	"fmt"
	"io"
	"strconv"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// FigureSchema heads the document of a figure.
const FigureSchema = "olafctl.figure/v3"

// Series is one curve: a statistic over seeds at every x.
type Series struct {
	Name string              `json:"name"`
	X    []float64           `json:"x"`
	Y    []results.Statistic `json:"y"`
}

// Last is the statistic at the end of a curve.
func (s *Series) Last() results.Statistic {
	if len(s.Y) == 0 {
		return Describe(nil)
	}
	return s.Y[len(s.Y)-1]
}

// PaperSeries is the name of the series that holds what the paper printed; a figure shows it as crosses.
const PaperSeries = "paper"

// Panel is one pair of axes, of one unit.
type Panel struct {
	Name string `json:"name"`
	// Group names the figure that panels share; one without stands alone.
	Group  string   `json:"group,omitempty"`
	XLabel string   `json:"x_label"` // with its unit
	YLabel string   `json:"y_label"`
	Series []Series `json:"series"`
}

// Figure is what an experiment that draws curves found.
type Figure struct {
	Schema     string             `json:"schema"`
	Experiment string             `json:"experiment"`
	Artefact   string             `json:"artefact"`
	Config     any                `json:"config"`
	Quick      bool               `json:"quick,omitempty"`
	Short      string             `json:"short,omitempty"` // says that it has too few seeds to be judged
	Partial    bool               `json:"partial,omitempty"`
	Panels     []Panel            `json:"panels"`
	Statements []string           `json:"statements"`
	PaperRows  []results.PaperRow `json:"paper,omitempty"`
	err        error
	simulated  *bench.Simulated // nil of a figure of anything else
}

// NewFigure starts the figure of an experiment.
func NewFigure(experiment, artefact string, o *Options, config any) *Figure {
	return &Figure{Schema: FigureSchema, Experiment: experiment, Artefact: artefact, Config: config, Quick: o.Quick}
}

// Say adds a statement.
func (f *Figure) Say(format string, args ...any) {
	f.Statements = append(f.Statements, fmt.Sprintf(format, args...))
}

// Compare sets ours beside what the paper says of this figure.
func (f *Figure) Compare(ours paper.Ours) { f.PaperRows = paper.Compare(ours, f.Experiment) }

// Fail says that the figure rests on a run that must not be used.
func (f *Figure) Fail(err error) { f.err = err }

// Over says which simulations the figure is over; it is as partial and as valid as they are.
func (f *Figure) Over(s *bench.Simulated) { f.simulated, f.Partial = s, s.Partial }

// Document is the JSON form.
func (f *Figure) Document() any { return f }

// Paper compares with the published statements.
func (f *Figure) Paper() []results.PaperRow { return f.PaperRows }

// Err is nil when every run was complete, and, of a simulation, valid.
func (f *Figure) Err() error {
	if f.simulated != nil {
		return f.simulated.Err()
	}
	return f.err
}

// Simulated is what a figure of simulations is over; nil of any other.
func (f *Figure) Simulated() *bench.Simulated { return f.simulated }

// Table lists every point of every curve.
func (f *Figure) Table() (header []string, rows [][]string) {
	header = []string{"panel", "series", "x", "mean", "sd", "ci95", "min", "max", "n"}
	for _, p := range f.Panels {
		for _, s := range p.Series {
			for i, y := range s.Y {
				rows = append(rows, []string{p.Name, s.Name, strconv.FormatFloat(s.X[i], 'g', -1, 64),
					text.Exact(y.Mean), text.Exact(y.SD), text.Exact(y.CI95), text.Exact(y.Min), text.Exact(y.Max), strconv.Itoa(y.N)})
			}
		}
	}
	return header, rows
}

// WriteText prints a table for each panel, what came out beside the paper, then what can and cannot be said.
func (f *Figure) WriteText(w io.Writer, v text.View) error {
	p := text.NewPage(w, v)
	quick := ""
	if f.Quick {
		quick = " (quick: fewer or shorter runs than the figure's own)"
	}
	p.Say("", "%s: %s%s", f.Experiment, f.Artefact, quick)
	if f.Short != "" {
		p.Say("", "%s", f.Short)
	}
	for i := range f.Panels {
		f.Panels[i].print(p)
	}
	p.Printf("\n")
	p.Paper(f.PaperRows)
	for _, s := range f.Statements {
		p.Say("- ", "%s", s)
	}
	if f.simulated != nil {
		p.Say("", "%s", f.simulated.Validity())
	}
	return p.Err()
}

// print is the panel as a table, with a line for each x.
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
				row = append(row, text.Rounded(&s.Y[i], 1))
			}
		}
		g.Add(row...)
	}
	page.Grid(g)
}

// Describe is the statistic of plain numbers.
func Describe(values []float64) results.Statistic {
	floats := make([]results.Float, len(values))
	for i, v := range values {
		floats[i] = results.Float(v)
	}
	return results.Describe(floats, "no run reached this point")
}
